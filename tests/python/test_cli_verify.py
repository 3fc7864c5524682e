"""cuvil verify."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from samples import TWO, onnx_model

INT64_MAX = np.iinfo(np.int64).max


def verify(cli, *arguments: object, status: int = 0) -> dict:
    done = cli("verify", *arguments, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def model(nodes: list, x: list, y: list, **weights: np.ndarray) -> onnx.ModelProto:
    value, f32 = helper.make_tensor_value_info, TensorProto.FLOAT
    initializers = [numpy_helper.from_array(w, name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "g", [value("x", f32, x)], [value("y", f32, y)], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    """The batch norm becomes part of the convolution, which rounds otherwise."""
    random = np.random.default_rng(0)
    spread = {name: random.uniform(0.5, 2, 4).astype(np.float32) for name in ("scale", "bias", "mean", "variance")}
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("Conv", ["a", "w"], ["b"], name="conv"),
        helper.make_node("BatchNormalization", ["b", *spread], ["c"], name="norm"),
        helper.make_node("Mul", ["c", "c"], ["y"], name="square"),
    ]
    w = random.normal(size=(4, 8, 3, 3)).astype(np.float32)
    path = tmp_path / "folded.onnx"
    onnx.save(model(nodes, [1, 8, 8, 8], [1, 4, 6, 6], w=w, **spread), path)
    return path


def test_against_the_reference(cli, folded: Path):
    done = cli("verify", folded)
    assert done.returncode == 0, done.stderr
    heading, against, columns, row = done.stdout.splitlines()
    assert heading.endswith("x: f32[1,8,8,8]")
    assert against == "against the reference interpreter"
    assert columns.split() == ["output", "type", "max", "abs", "max", "rel", "max", "ulp", "mean", "abs", "worst"]
    assert row.startswith("y       f32[1,4,6,6]")
    assert row.endswith("within tolerance")
    data = verify(cli, folded, "--threads", "2", "--isa", "v2", "--target", "cpu-x86-64")
    assert (data["level"], data["passes"]) == ("v2", True)
    (output,) = data["outputs"]
    assert output["elements"] == 144
    assert output["tolerance"]["relative"] == 1e-3


def test_sizes_and_seeds(cli, tmp_path: Path):
    onnx.save(onnx_model(), tmp_path / "m.onnx")
    done = cli("verify", "m.onnx")
    assert done.returncode == 2
    assert "the size N is open; give it as --size N=1" in done.stderr
    done = cli("verify", "m.onnx", "--size", "N=1", "--size", "batch=2")
    assert (done.returncode, "no open size 'batch'" in done.stderr) == (2, True)
    assert verify(cli, "m.onnx", "--size", "N=0")["inputs"] == {"x": "f32[0,4]"}
    expected = np.zeros((2, 4), np.float32)
    np.save(tmp_path / "zeros.npy", expected)
    worst = [
        verify(cli, "m.onnx", "--size", "N=2", "--seed", seed, "--expected", "zeros.npy", status=1)["outputs"][0]
        for seed in (1, 1, 2)
    ]
    assert worst[0] == worst[1] != worst[2]


def test_inputs_of_one_shape_differ(cli, tmp_path: Path):
    (tmp_path / "two.cuir").write_text(TWO)
    np.savez(tmp_path / "zeros.npz", sum=np.zeros(3, np.float32), difference=np.zeros(3, np.float32))
    data = verify(cli, "two.cuir", "--size", "N=3", "--expected", "zeros.npz", status=1)
    assert [output["outside"] for output in data["outputs"]] == [3, 3]


def test_expected_arrays(cli, tmp_path: Path):
    (tmp_path / "two.cuir").write_text(TWO)
    a, b = np.array([1, 2, np.nan], np.float32), np.array([3, np.inf, 0], np.float32)
    np.savez(tmp_path / "in.npz", a=a, b=b)
    np.savez(tmp_path / "out.npz", sum=a + b, difference=a - b)
    arguments = ("verify", "two.cuir", "in.npz", "--max-ulp", "0", "--expected")
    assert cli(*arguments, "out.npz").returncode == 0
    np.savez(tmp_path / "out.npz", sum=a + b, difference=a - b + np.float32([0.5, 0, 0]))
    done = cli(*arguments, "out.npz")
    assert done.returncode == 1
    assert "DIFFERS: 1 of 3 elements" in done.stdout
    assert "at [0]: -2, expected -1.5" in done.stdout
    assert cli(*arguments, "out.npz", "--atol", "0.5").returncode == 0
    np.savez(tmp_path / "out.npz", sum=a + b)
    done = cli(*arguments, "out.npz")
    assert (done.returncode, "does not hold the output 'difference'" in done.stderr) == (1, True)
    np.savez(tmp_path / "out.npz", sum=a, difference=b, quotient=a)
    assert "holds 'quotient', which is no output" in cli(*arguments, "out.npz").stderr
    np.savez(tmp_path / "out.npz", sum=(a + b)[:2], difference=(a - b).astype(np.float64))
    done = cli(*arguments, "out.npz")
    assert done.returncode == 1
    assert "DIFFERS: it is f32[3], expected f32[2]" in done.stdout
    assert "DIFFERS: it is f32[3], expected f64[3]" in done.stdout


def test_a_module_and_its_model(cli, tmp_path: Path):
    onnx.save(onnx_model(), tmp_path / "relu.onnx")
    onnx.save(onnx_model("Exp"), tmp_path / "exp.onnx")
    assert cli("compile", "relu.onnx", "-o", "m.cuvil").returncode == 0
    arguments = ("verify", "m.cuvil", "--size", "N=2")
    assert cli(*arguments, "--model", "relu.onnx").returncode == 0
    assert cli(*arguments, "--model", "exp.onnx").returncode == 1
    assert "what should m.cuvil compute?" in cli(*arguments).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "torch"], "give it as --expected FILE.npz"),
        (["--against", "tensorflow"], "it is one of reference, onnxruntime, torch"),
        (["--expected", "y.npz", "--bisect"], "--bisect needs a side that knows the values inside"),
        (["--expected", "y.npz", "--against", "reference"], "--expected takes the place of --against"),
        (["--atol", "-1"], "--atol: '-1' is no number from 0 on"),
        (["--threads", "-1"], "--threads: '-1' is no whole number from 1 to"),
        (["--isa", "v1"], "native has no level 'v1'"),
    ],
)
def test_wrong_usage(cli, folded: Path, arguments: list[str], message: str):
    done = cli("verify", folded, *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_bisect_finds_where_rounding_begins(cli, folded: Path):
    assert "first node" not in cli("verify", folded, "--bisect").stdout
    done = cli("verify", folded, "--max-ulp", "0", "--bisect")
    assert done.returncode == 1
    assert 'first node that differs: "norm" (batch_norm) in folded.onnx' in done.stdout
    assert "input   b: f32[1,4,6,6], equal" in done.stdout
    assert "result  c: f32[1,4,6,6], max abs" in done.stdout
    data = verify(cli, folded, "--max-ulp", "0", "--bisect", status=1)
    assert data["bisect"]["node"] == "norm"


def test_bisect_tells_where_rounding_adds_up(cli, folded: Path):
    exact = verify(cli, folded, "--max-ulp", "0", "--bisect", status=1)
    before = exact["bisect"]["result"]["max_relative"]
    after = exact["outputs"][0]["max_relative"]
    assert before < after < 8 * before
    # The result of norm is off by less, that of square by more.
    arguments = ("--rtol", (before + after) / 2, "--bisect")
    found = verify(cli, folded, *arguments, status=1)["bisect"]
    assert found["node"] == "square"
    assert found["growth"]["node"] == "norm"
    assert 0 == found["growth"]["before"] < found["growth"]["after"] < 1e-5
    assert 'most is added by "norm" (batch_norm): from 0 to' in cli("verify", folded, *arguments).stdout


@pytest.fixture
def backwards() -> onnx.ModelProto:
    """A slice from -1 to INT64_MAX with step -1 is empty; ONNX Runtime takes the whole axis."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Slice", ["b", "start", "end", "axes", "steps"], ["c"], name="backwards"),
        helper.make_node("Exp", ["c"], ["d"], name="exp"),
        helper.make_node("ReduceSum", ["d"], ["y"], name="sum", keepdims=0),
    ]
    numbers = {"start": -1, "end": INT64_MAX, "axes": 1, "steps": -1}
    weights = {name: np.array([value], np.int64) for name, value in numbers.items()}
    return model(nodes, ["N", 5], [], w=np.eye(5, dtype=np.float32), **weights)


def test_against_onnxruntime(cli, folded: Path, backwards: onnx.ModelProto, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    data = verify(cli, folded, "--against", "onnxruntime")
    assert data["against"].startswith("onnxruntime 1.")
    onnx.save(backwards, tmp_path / "m.onnx")
    arguments = ("m.onnx", "--size", "N=3", "--bisect", "--against")
    found = verify(cli, *arguments, "onnxruntime", status=1)["bisect"]
    assert (found["node"], found["op"]) == ("backwards", "slice")
    assert found["inputs"][0]["passes"]
    assert found["result"]["mismatch"] == "it is f32[3,0], expected f32[3,5]"
    assert "bisect" not in verify(cli, *arguments, "reference")


def test_without_onnxruntime(cli, tmp_path: Path):
    onnx.save(onnx_model(), tmp_path / "m.onnx")
    environment = {"PATH": "/nowhere", "CUVIL_PYTHON": "/nowhere/python3"}
    done = cli("verify", "m.onnx", "--size", "N=1", "--against", "onnxruntime", env=environment)
    assert done.returncode == 1
    assert "pip install onnxruntime" in done.stderr
