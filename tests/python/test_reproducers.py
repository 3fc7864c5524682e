"""Bugs of ours: exit status 3, and a file that shows the bug again."""

import re
from pathlib import Path

import pytest

import cuvil

# Text may say what only planning makes; this is a layout that no step reads.
BROKEN = """
func @main(%x: f32[1,3,4,4]) -> f32[1,3,4,4] {
  %1 = relayout %x : f32[1,3,4,4]{padded, halo=[1,1,1,1]}
  %2 = max_pool2d %1 {kernel = [1,1]} : f32[1,3,4,4]
  return %2
}
"""

WITHOUT_DATA = """
weight "w" : f32[70] hash 0123456789abcdef0123456789abcdef
func @main(%x: f32[70]) -> f32[70] {
  %w = weight "w" : f32[70]
  %1 = add %x, %w
  return %1
}
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.cuir"
    path.write_text(BROKEN)
    return path


@pytest.mark.parametrize("verb", ["compile", "run", "bench", "verify"])
def test_the_program_writes_a_reproducer(cli, broken: Path, verb: str, tmp_path: Path):
    done = cli(verb, broken)
    assert done.returncode == 3
    assert "This is a bug in Cuvil" in done.stderr
    (file,) = tmp_path.glob("cuvil-bug-*.cuir")
    assert str(file) in done.stderr
    text = file.read_text()
    version, command, error, *_ = text.splitlines()
    assert re.fullmatch(r"# An internal error of cuvil \S+, LLVM 19\S*, in plan\.", version)
    assert command.startswith("# Command: ")
    assert f"{verb} {broken}" in command
    assert "relayout of" in error
    assert "%1 = relayout %x" in text
    # The file shows the same, in the way that it says.
    (again,) = re.findall(r"^#   cuvil (compile .*)", text, re.MULTILINE)
    repeated = cli(*again.split())
    assert repeated.returncode == 3
    assert error.removeprefix("# Error: ") in repeated.stderr


def test_elsewhere_where_the_folder_is_not_writable(cli, broken: Path, tmp_path: Path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = cli("compile", broken, cwd="/proc", env={"TMPDIR": str(temporary)})
    assert done.returncode == 3
    assert list(temporary.glob("cuvil-bug-*.cuir"))


def test_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cuvil.InternalError) as caught:
        cuvil.compile(BROKEN.encode())
    assert caught.value.reproducer.parent == tmp_path
    assert "relayout" in caught.value.reproducer.read_text()
    assert cuvil.InternalError("").reproducer is None


def test_filled_weights(cli, tmp_path: Path):
    (tmp_path / "m.cuir").write_text(WITHOUT_DATA)
    refused = cli("compile", "m.cuir")
    assert refused.returncode == 1
    assert "--fill-weights" in refused.stderr
    assert cli("compile", "m.cuir", "--fill-weights", "-o", "a.cuvil").returncode == 0
    assert cli("compile", "m.cuir", "--fill-weights", "-o", "b.cuvil").returncode == 0
    assert (tmp_path / "a.cuvil").read_bytes() == (tmp_path / "b.cuvil").read_bytes()
    assert cli("verify", "m.cuir", "--fill-weights").returncode == 0
