"""Whole messages about ONNX models that cannot be compiled: each in tests/errors/onnx.

With CUVIL_BLESS=1 in the environment the files are written anew.
"""

import os
from pathlib import Path

import pytest
from onnx_models import BROKEN
from samples import MLP

MESSAGES = Path(__file__).parent.parent / "errors" / "onnx"


@pytest.mark.parametrize("name", BROKEN)
def test_message(cli, tmp_path: Path, name: str):
    broken = BROKEN[name]()
    (tmp_path / "model.onnx").write_bytes(broken if isinstance(broken, bytes) else broken.SerializeToString())
    done = cli("compile", "model.onnx", "-o", "out.cuvil")
    assert done.returncode == 1
    assert done.stdout == ""
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    expected = MESSAGES / f"{name}.txt"
    if os.environ.get("CUVIL_BLESS"):
        expected.write_text(done.stderr)
    assert done.stderr == expected.read_text()
    seen = cli("inspect", "model.onnx")
    assert (seen.returncode, seen.stderr) == (1, done.stderr)
    assert "can be compiled" not in seen.stdout


def test_every_message_has_its_model():
    assert {file.stem for file in MESSAGES.iterdir()} == set(BROKEN)


def test_files_that_are_not_there(cli, tmp_path: Path):
    done = cli("compile", "nothing.onnx")
    assert (done.returncode, done.stderr) == (1, 'error[file-not-found]: there is no file "nothing.onnx"\n')
    for verb in ("inspect", "run", "bench"):
        done = cli(verb, "nothing.cuvil")
        assert (done.returncode, done.stderr) == (1, 'error[file-not-found]: there is no file "nothing.cuvil"\n'), verb
        done = cli(verb, tmp_path)
        assert (done.returncode, done.stderr) == (1, f'error[is-a-directory]: "{tmp_path}" is a directory\n'), verb
        (tmp_path / "cut.cuvil").write_bytes(b"\x7fELF")
        done = cli(verb, "cut.cuvil")
        assert (done.returncode, done.stderr[:19]) == (1, "error[bad-artifact]"), verb
    (tmp_path / "model.cuir").write_text(MLP)
    done = cli("compile", "model.cuir", "-o", "/dev/full")
    assert (done.returncode, done.stderr) == (
        1,
        'error[cannot-write]: cannot write "/dev/full": not a regular file\n',
    )
    done = cli("compile", tmp_path)
    assert (done.returncode, done.stderr) == (1, f'error[is-a-directory]: "{tmp_path}" is a directory\n')
