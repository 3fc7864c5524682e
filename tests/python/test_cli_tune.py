"""cuvil tune, and what takes its files."""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_models import model, node, value

import cuvil

KERNELS = ["conv2d_blocked", "conv2d_winograd2", "conv2d_winograd4"]
CHOICE = "conv2d 3x3 16 to 32 channels, 12 x 12"


@pytest.fixture
def convolution(tmp_path: Path) -> Path:
    weights = np.random.default_rng(1).standard_normal((32, 16, 3, 3)).astype(np.float32)
    layer = node("Conv", ["x", "w"], "y", pads=[1, 1, 1, 1])
    inputs = [value("x", [1, 16, 12, 12])]
    path = tmp_path / "one.onnx"
    onnx.save(model([layer], inputs, [value("y", None)], [numpy_helper.from_array(weights, "w")]), path)
    return path


def test_measures_each_kernel(cli, convolution: Path, tmp_path: Path):
    done = cli("tune", convolution, "--duration", 0.05)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(CHOICE + "\n")
    assert all(kernel in done.stdout for kernel in KERNELS)
    assert "as estimated" in done.stdout
    tuning = json.loads((tmp_path / "one.tuning.json").read_text())
    assert list(tuning["cuvil_kernels"]) == [CHOICE]
    assert tuning["cuvil_kernels"][CHOICE] in KERNELS
    assert cli("compile", convolution, "--tuning", "one.tuning.json").returncode == 0


def test_a_file_decides_the_kernel(cli, convolution: Path, tmp_path: Path):
    file = tmp_path / "by_hand.json"
    x = np.random.default_rng(2).standard_normal((1, 16, 12, 12)).astype(np.float32)
    results = []
    for kernel in KERNELS:
        file.write_text(json.dumps({"cuvil_kernels": {CHOICE: kernel, "of another model": KERNELS[0]}}))
        assert cli("compile", convolution, "--tuning", file, "-o", "one.cuvil").returncode == 0
        assert f" {kernel} " in cli("inspect", "one.cuvil", "--kernels").stdout
        module = cuvil.compile(os.fspath(convolution), tuning=file)
        assert cuvil.runtime.load_module(tmp_path / "one.cuvil").manifest["steps"] == module.manifest["steps"]
        results.append(module(x)["y"])
    np.testing.assert_allclose(results[1], results[0], atol=1e-4)
    np.testing.assert_allclose(results[2], results[0], atol=1e-4)


def test_what_is_no_tuning_file(cli, convolution: Path, tmp_path: Path):
    file = tmp_path / "bad.json"
    for text in ("", "[" * 100_000, "{}", '{"cuvil_kernels": 1}', '{"cuvil_kernels": {"a": 1}}'):
        file.write_text(text)
        done = cli("compile", convolution, "--tuning", file)
        assert done.returncode == 1
        assert "bad.json' " in done.stderr
        with pytest.raises(ValueError, match=r"bad\.json' is no tuning file"):
            cuvil.compile(os.fspath(convolution), tuning=file)
    file.write_text(json.dumps({"cuvil_kernels": {CHOICE: "conv2d_winograd9"}}))
    unknown = cli("compile", convolution, "--tuning", file)
    assert unknown.returncode == 1
    assert f"error[unknown-kernel]: there is no kernel 'conv2d_winograd9' for '{CHOICE}'" in unknown.stderr
    assert cli("compile", convolution, "--tuning", "nowhere.json").returncode == 1
    with pytest.raises(FileNotFoundError):
        cuvil.compile(os.fspath(convolution), tuning="nowhere.json")


def test_nothing_to_choose(cli, mlp_text: Path):
    done = cli("tune", mlp_text)
    assert done.returncode == 0
    assert "leaves no choice" in done.stdout
    assert not mlp_text.with_suffix(".tuning.json").exists()
