"""What cuvil inspect says of steps and memory, and what cuvil compile writes beside a module."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
from samples import onnx_model

import cuvil


def test_parts_of_a_module(cli, mlp_file: Path):
    assert re.search(r"^operators\n +1  matmul\n +1  relu\n$", cli("inspect", mlp_file, "--ops").stdout)
    kernels = cli("inspect", mlp_file, "--kernels").stdout
    assert re.search(r"^ +\d+ +\?  +\w+ +matmul relu +f32\[N,3\]", kernels, re.MULTILINE)
    assert "operators" not in kernels
    both = cli("inspect", mlp_file, "--ops", "--memory").stdout
    assert "operators" in both
    assert "memory" in both


def test_estimates_of_the_planner(cli, mlp_file: Path):
    (wide,) = json.loads(cli("inspect", mlp_file, "--kernels", "--size", "N=100000", "--json").stdout)["estimates"]
    (one,) = json.loads(cli("inspect", mlp_file, "--kernels", "--size", "N=1", "--json").stdout)["estimates"]
    assert wide["seconds"] > 1000 * one["seconds"] > 0
    assert 0 < one["share_of_peak"] <= wide["share_of_peak"] <= 1
    text = cli("inspect", mlp_file, "--kernels", "--size", "N=100000").stdout
    assert re.search(r"^ +\d+ +[\d.]+ (us|ms) +\d+ %  \w+ +matmul relu", text, re.MULTILINE)


def test_memory(cli, mlp_file: Path):
    open_sizes = cli("inspect", mlp_file, "--memory").stdout
    assert re.search(r"peak +\? +of one run", open_sizes)
    assert "--size N=8" in open_sizes
    memory = json.loads(cli("inspect", mlp_file, "--memory", "--size", "N=1000", "--json").stdout)["memory"]
    assert memory["inputs"] == [{"name": "x", "bytes": 16000}]
    assert memory["outputs"] == [{"name": "y", "bytes": 12000}]
    assert memory["peak"] == memory["weights"] + memory["workspace"]["bytes"] + 28000
    assert memory["open"] == []
    assert re.search(r"peak +[\d.]+ kB", cli("inspect", mlp_file, "--memory", "--size", "N=1000").stdout)
    wrong = cli("inspect", mlp_file, "--memory", "--size", "M=8")
    assert wrong.returncode == 2
    assert "no open size 'M'" in wrong.stderr
    assert "--size is for --memory and --kernels" in cli("inspect", mlp_file, "--size", "N=8").stderr
    huge = cli("inspect", mlp_file, "--memory", "--size", f"N={1 << 62}")
    assert huge.returncode == 0
    assert re.search(r"peak +\?", huge.stdout)


def test_a_model_is_planned(cli, tmp_path: Path):
    onnx.save(onnx_model(), tmp_path / "m.onnx")
    done = cli("inspect", "m.onnx", "--kernels", "--memory", "--ops", "--size", "N=2")
    assert done.returncode == 0, done.stderr
    for words in ("operators\n       1  Relu", "relu"):
        assert words in done.stdout
    assert re.search(r"peak +\d+ bytes", done.stdout)
    onnx.save(onnx_model("NoSuchOp"), tmp_path / "bad.onnx")
    done = cli("inspect", "bad.onnx", "--kernels", "--ops")
    assert done.returncode == 1
    assert "NoSuchOp  (not supported)" in done.stdout


def test_the_graph_of_steps(cli, mlp_file: Path, tmp_path: Path):
    onnx.save(onnx_model(), tmp_path / "m.onnx")
    for file in (mlp_file, "m.onnx"):
        done = cli("inspect", file, "--graph", "steps.onnx")
        assert done.returncode == 0, done.stderr
        model = onnx.load(tmp_path / "steps.onnx")
        onnx.checker.check_model(model)
        assert [v.name for v in model.graph.input] == ["x"]
        assert [v.name for v in model.graph.output] == ["y"]
        dims = model.graph.input[0].type.tensor_type.shape.dim
        assert (dims[0].dim_param, dims[1].dim_value) == ("N", 4)
        assert {node.domain for node in model.graph.node} <= {"cuvil", ""}
    assert cli("inspect", mlp_file, "--graph", "no/steps.onnx").returncode == 1


def test_names_and_sums(cli, tmp_path: Path):
    text = """func @main(%x: f32[N,8]) -> f32[N,1] {
  %1 = reduce_max %x {axes = [1]}
  %2 = cum_sum %1 {axis = 0, exclusive = false, reverse = false}
  %3 = reduce_mean %x {axes = [1]}
  %4 = mul %2, %3
  return %4
}
"""
    (tmp_path / "m.cuir").write_text(text)
    done = cli("inspect", "m.cuir", "--kernels", "--memory")
    assert done.returncode == 0, done.stderr
    assert re.search(r" +\d+ +\? +reduce_max +reduce_max ", done.stdout)
    (formula,) = re.findall(r"workspace +\? +(.*)", done.stdout)
    assert formula.count("N") == 1


def test_a_value_that_leaves_twice(cli, tmp_path: Path):
    text = 'func @main(%x: f32[N]) -> (f32[N] "a", f32[N] "b", f32[N] "c") {\n %1 = neg %x\n return %1, %1, %x\n}'
    (tmp_path / "m.cuir").write_text(text)
    assert cli("inspect", "m.cuir", "--graph", "steps.onnx").returncode == 0
    onnx.checker.check_model(onnx.load(tmp_path / "steps.onnx"))


# ---- Beside a module


def test_report(cli, tmp_path: Path):
    onnx.save(onnx_model(), tmp_path / "m.onnx")
    assert cli("compile", "m.onnx", "--isa", "v3", "--report", "report.json").returncode == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["ok"] is True
    assert report["bytes"] == (tmp_path / "m.cuvil").stat().st_size
    assert [stage["name"] for stage in report["stages"]] == ["import", "optimize", "plan", "codegen", "write"]
    assert report["manifest"]["levels"] == ["v3"]
    assert report["diagnostics"] == []
    onnx.save(onnx_model("NoSuchOp"), tmp_path / "bad.onnx")
    assert cli("compile", "bad.onnx", "--report", "report.json").returncode == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["ok"] is False
    (diagnostic,) = report["diagnostics"]
    assert (diagnostic["code"], diagnostic["node"]) == ("unsupported-op", "the_node")
    assert cli("compile", "m.onnx", "--report", "no/report.json").returncode == 1


def test_attachments(cli, mlp_text: Path, tmp_path: Path):
    (tmp_path / "tokenizer.json").write_text("{}")
    assert cli("compile", mlp_text, "--attach", "tokenizer.json", "-o", "m.cuvil").returncode == 0
    assert "file tokenizer.json: 2 bytes" in cli("inspect", "m.cuvil").stdout
    assert cuvil.runtime.load_module(tmp_path / "m.cuvil").run({"x": np.ones((1, 4), np.float32)})
    done = cli("compile", mlp_text, "--attach", "none.json")
    assert done.returncode == 1
    assert "error[bad-attachment]: cannot read 'none.json'" in done.stderr
    module = cuvil.compile(mlp_text, attachments=[tmp_path / "tokenizer.json"], levels=["v2"])
    module.save(tmp_path / "m.cuvil")
    assert "file tokenizer.json" in cli("inspect", "m.cuvil").stdout


def test_dynamic_shapes(cli, tmp_path: Path):
    model = onnx_model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 5
    onnx.save(model, tmp_path / "m.onnx")
    assert cli("compile", "m.onnx", "--dynamic", "x:batch,4").returncode == 0
    assert "x: f32[batch,4]" in cli("inspect", "m.cuvil").stdout
    assert "y: f32[2,4]" in cli("run", "m.cuvil", "zeros:2x4").stdout
    module = cuvil.compile(model, dynamic_shapes={"x": ["N", "M"]}, levels=["v2"])
    assert module.run({"x": np.ones((3, 7), np.float32)})["y"].shape == (3, 7)
    for shape, words in (("x:N,5", "has size 4, not 5"), ("x:N", "has 2 axes"), ("z:N", "no input")):
        done = cli("compile", "m.onnx", "--dynamic", shape)
        assert done.returncode == 1
        assert "error[input-shape]" in done.stderr
        assert words in done.stderr
