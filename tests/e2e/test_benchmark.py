"""The benchmark of bench/: it measures, and its report says what was measured."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))

pytest.importorskip("torch", reason="the benchmark's networks are PyTorch's")


def measure(*options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "bench/measure.py", *options]
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def measure_mlp(peers: str, folder: Path) -> dict:
    options = ("--threads", "1", "--rounds", 2, "--seconds", 0.05, "--work", folder)
    done = measure("--models", "mlp", "--peers", peers, *options)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text())


def test_measures_and_reports(tmp_path: Path):
    results = measure_mlp("cuvil,cuvil-size,onnxruntime", tmp_path)
    model = results["models"]["mlp"]
    for entry in model["peers"].values():
        one = entry["threads"]["1"]
        assert 0 < one["median"] <= one["p99"]
        assert one["error"] < 1e-5
        assert one["spread"] >= 0
        assert entry["model_bytes"] > 10_000
        assert one["library_bytes"] > 100_000
    ours = model["peers"]["cuvil"]["threads"]["1"]
    assert 0 < model["from_c"]["first_output"] < ours["first_output"]
    assert model["from_c"]["peak_bytes"] < ours["peak_bytes"]
    assert sum(step["multiplications"] for step in model["steps"]) == 32 * 64 + 64 * 64 + 64
    assert results["peak"] > 1

    import chart
    import report
    from figures import ratios

    page = report.page_part(results)
    ratio = ratios(model, "onnxruntime")[0]
    assert f"| {ratio:.2f} |" in page
    assert results["processor"] in page
    assert f">{ratio:.2f}</text>" in chart.chart(results)
    assert f"| {ratio:.2f} |" in report.readme_part(results)


def test_a_peer_that_fails_is_shown(tmp_path: Path):
    """Its file is damaged; the others are measured all the same."""
    import report
    from model import Model

    Model(tmp_path / "mlp").write()
    (tmp_path / "mlp/model.onnx").write_bytes(b"no model")
    results = measure_mlp("cuvil,onnxruntime", tmp_path)
    failures = [entry["failure"] for entry in results["models"]["mlp"]["peers"].values()]
    assert len(failures) == 2
    assert all(failure and str(tmp_path) not in failure for failure in failures)
    page = report.page_part(results)
    assert "| mlp | no | no |" in page
    assert f"- ONNX Runtime cannot run mlp: {failures[1]}" in page


def test_rewrites_between_the_marks(tmp_path: Path):
    import report

    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    for part in ("first", "second"):
        report.rewrite(page, part)
        assert page.read_text() == f"before\n{report.BEGIN}\n{part}\n{report.END}\nafter\n"
    for name in ("README.md", "docs/performance.md"):
        assert report.BEGIN in (ROOT / name).read_text()


def test_a_busy_core_is_busy_as_long_as_it_is_wanted():
    import machine

    core = min(os.sched_getaffinity(0))
    with machine.busy_core(core) as other:
        time.sleep(0.5)
        assert other.poll() is None
        assert os.sched_getaffinity(other.pid) == {core}
    assert other.poll() is not None


def test_wrong_options():
    done = measure("--models", "resnet19")
    assert done.returncode == 2
    assert "no 'resnet19'; there are mlp, " in done.stderr
