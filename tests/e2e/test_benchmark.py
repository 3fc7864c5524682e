"""The benchmark of bench/: it measures, and its report says what was measured."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))

pytest.importorskip("torch", reason="the benchmark's networks are PyTorch's")


def measure(*options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "bench/measure.py", *options]
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def test_measures_and_reports(tmp_path: Path):
    peers = "cuvil,onnxruntime"
    done = measure(
        "--models", "mlp", "--peers", peers, "--threads", "1", "--rounds", 2, "--seconds", 0.05, "--work", tmp_path
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    model = results["models"]["mlp"]
    for peer in peers.split(","):
        one = model["peers"][peer]["threads"]["1"]
        assert 0 < one["median"] <= one["p99"]
        assert one["error"] < 1e-5
        assert one["spread"] >= 0
        assert model["peers"][peer]["shipped_bytes"] > 10_000
    assert sum(step["multiplications"] for step in model["steps"]) == 32 * 64 + 64 * 64 + 64

    import report

    page = report.page_part(results)
    ratio = report.ratios(model, "onnxruntime")[0]
    assert f"| {ratio:.2f} |" in page
    assert results["processor"] in page
    assert f">{ratio:.2f}</text>" in report.chart(results)


def test_wrong_options():
    done = measure("--models", "resnet19")
    assert done.returncode == 2
    assert "no 'resnet19'; there are mlp, " in done.stderr
