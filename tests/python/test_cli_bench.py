"""cuvil bench."""

import json
import os
import re
import sys
from pathlib import Path

import onnx
import pytest
from samples import onnx_model


def bench(cli, *arguments: object) -> dict:
    done = cli("bench", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_percentiles_and_threads(cli, mlp_file: Path):
    done = cli("bench", mlp_file, "--shape", "x:2x4", "--threads", "1,2", "--iterations", "200")
    assert done.returncode == 0, done.stderr
    heading, columns, *rows = done.stdout.splitlines()
    assert re.fullmatch(r".*mlp\.cuvil: level v\d, x: f32\[2,4\]", heading)
    for word in ("threads", "runs", "min", "p50", "p90", "p99", "p99.9", "mean", "runs/s"):
        assert word in columns.split()
    assert [row.split()[:3] for row in rows] == [["cuvil", "1", "200"], ["cuvil", "2", "200"]]
    data = bench(cli, mlp_file, "--size", "N=2", "-n", "50", "--warmup", "0", "--percentiles", "50,99.5", "-t", "1")
    (result,) = data["results"]
    assert data["inputs"] == {"x": "f32[2,4]"}
    assert (result["threads"], result["runs"]) == (1, 50)
    seconds = result["seconds"]
    assert list(seconds) == ["min", "mean", "p50", "p99.5"]
    assert 0 < seconds["min"] <= seconds["p50"] <= seconds["p99.5"]
    assert result["runs_per_second"] == pytest.approx(1 / seconds["mean"])


def test_duration_and_inputs(cli, mlp_file: Path):
    (result,) = bench(cli, mlp_file, "-i", "x=1,2,3,4", "--duration", "0.05", "-t", "1")["results"]
    assert result["runs"] * result["seconds"]["mean"] < 1
    assert result["runs"] > 10


def test_layers(cli, mlp_file: Path):
    arguments = (mlp_file, "--shape", "x:2x4", "-n", "20", "--layers", "-t", "1")
    (layers,) = bench(cli, *arguments)["layers"]
    steps = layers["steps"]
    assert [step["runs"] for step in steps] == [20] * len(steps)
    assert "matmul relu" in [step["ops"] for step in steps]
    done = cli("bench", *arguments)
    assert re.search(r"steps, 1 thread: .* in all, medians, slowest first", done.stdout)
    shares = [float(share) for share in re.findall(r"([\d.]+) %", done.stdout)]
    assert len(shares) == len(steps)
    assert shares == sorted(shares, reverse=True)


def test_beside_onnxruntime(cli, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    onnx.save(onnx_model(), tmp_path / "m.onnx")
    arguments = ("m.onnx", "--shape", "x:3x4", "-n", "10", "-t", "1", "--compare", "onnxruntime")
    own, peer = bench(cli, *arguments, "--json")["results"]
    assert own["who"] == "cuvil"
    assert peer["who"].startswith("onnxruntime 1.")
    assert own["runs"] == peer["runs"] == 10
    done = cli("bench", *arguments)
    assert re.search(r"1 thread: onnxruntime [\d.]+ takes [\d.]+ times as long as cuvil", done.stdout)
    empty = tmp_path / "python"
    empty.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    empty.chmod(0o755)
    done = cli("bench", *arguments, env={**os.environ, "CUVIL_PYTHON": str(empty)})
    assert done.returncode == 1
    assert "no Python with onnxruntime" in done.stderr
    onnx.save(onnx_model("Relu"), tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the size N is open; give it as --size N=1, or the shape as --input x=random:1x4"),
        (["--size", "M=1"], r"no open size 'M'.*; it has N"),
        (["--shape", "z:1"], "no input 'z'"),
        (["--shape", "x"], "--shape: 'x' is not of the form"),
        (["--threads", "0"], "--threads: '0' is no whole number from 1 to"),
        (["--percentiles", "101"], "from 0 to 100"),
        (["--iterations", "-1"], "--iterations: '-1' is no whole number from 1 on"),
        (["--duration", "short"], "--duration: 'short' is no number from 0 on"),
        (["--iterations", "5", "--duration", "1"], "excludes"),
        (["--compare", "tensorrt"], "onnxruntime"),
        (["--compare", "onnxruntime"], "needs the model"),
    ],
)
def test_wrong_usage(cli, mlp_file: Path, arguments: list[str], words: str):
    done = cli("bench", mlp_file, *arguments)
    assert done.returncode == 2
    assert re.search(words, done.stderr), done.stderr
