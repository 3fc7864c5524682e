"""Networks of many kinds: right values, and the same bits for levels with FMA, any number of threads and any run."""

import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import NETWORKS, inputs_of
from samples import compile_with, program

import cuvil

Outputs = dict[str, np.ndarray]


@pytest.fixture(scope="module", params=["resnet18", *NETWORKS])
def network(request: pytest.FixtureRequest, folder: Path) -> tuple[Path, Path]:
    """The ONNX file of a network, and the module made of it."""
    if request.param == "resnet18":
        return request.getfixturevalue("resnet18_onnx"), request.getfixturevalue("resnet18")
    path = folder / f"{request.param}.onnx"
    onnx.save(NETWORKS[request.param](), path)
    return path, compile_with(path, path.with_suffix(".cuvil"))


def feeds_of(network: tuple[Path, Path]) -> list[Outputs]:
    model = onnx.load(network[0])
    return [inputs_of(model, seed) for seed in (1, 2)]


def assert_close(got: Outputs, want: Outputs) -> None:
    for name, expected in want.items():
        assert got[name].shape == expected.shape
        scale = np.abs(expected).max()
        assert np.abs(got[name] - expected).max() <= 1e-5 * scale, name


def load(module: Path, level: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> cuvil.Module | None:
    """The module at one level; nothing where this CPU has not got it."""
    monkeypatch.setenv("CUVIL_ISA", level)
    try:
        return cuvil.runtime.load_module(module, threads=threads)
    except cuvil.Unsupported as error:
        if level == "v2" or "this processor has" not in str(error):
            raise
        return None


def test_values(network: tuple[Path, Path]):
    session = onnxruntime.InferenceSession(network[0], providers=["CPUExecutionProvider"])
    module = cuvil.runtime.load_module(network[1])
    for feeds in feeds_of(network):
        want = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True))
        assert_close(module.run(feeds), want)


@pytest.mark.parametrize("levels", [("v2",), ("v3", "v4")])
def test_the_same_bits(network: tuple[Path, Path], levels: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    feeds, want = feeds_of(network), []
    for level in levels:
        for threads in (1, 2, 4):
            module = load(network[1], level, threads, monkeypatch)
            if module is None:
                continue
            assert module.level == level
            runs = [module.run(feeds[i % 2]) for i in range(4)]  # each input twice, after the other one
            want = want or runs[:2]
            for i, run in enumerate(runs):
                for name, array in run.items():
                    assert array.tobytes() == want[i % 2][name].tobytes(), f"{name} at {level}, {threads} threads"


def test_without_fma(network: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch):
    want = [cuvil.runtime.load_module(network[1]).run(feeds) for feeds in feeds_of(network)]
    module = load(network[1], "v2", 1, monkeypatch)
    for feeds, expected in zip(feeds_of(network), want, strict=True):
        assert_close(module.run(feeds), expected)


def test_the_interpreter_agrees(network: tuple[Path, Path], tmp_path: Path):
    np.savez(tmp_path / "inputs.npz", **feeds_of(network)[0])
    command = [*program(), "verify", network[1], tmp_path / "inputs.npz", "--model", network[0]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
