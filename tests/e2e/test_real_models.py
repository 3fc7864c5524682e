"""Whole models, compiled by the program, run from Python and the shell: right values."""

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from samples import program

import cuvil

ROOT = Path(__file__).parents[2]


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.abs(got.astype(np.float64) - want).max() / np.abs(want).max())


def reference(path: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The ONNX reference evaluator in float64: every initializer and input is widened first."""
    model = onnx.load(path)
    for i, tensor in enumerate(model.graph.initializer):
        if tensor.data_type == onnx.TensorProto.FLOAT:
            wide = onnx.numpy_helper.to_array(tensor).astype(np.float64)
            model.graph.initializer[i].CopyFrom(onnx.numpy_helper.from_array(wide, tensor.name))
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, {name: x.astype(np.float64) for name, x in feeds.items()})


def test_the_digits_are_read_right(digits: Path, digits_onnx: Path):
    samples = np.load(ROOT / "examples/digits/samples.npz")
    module = cuvil.runtime.load_module(digits)
    scores = module.run({"image": samples["image"]})["scores"]
    assert (scores.argmax(1) == samples["label"]).mean() > 0.9
    assert relative_error(scores, reference(digits_onnx, {"image": samples["image"]})[0]) < 1e-5


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_any_batch(digits: Path, batch: int):
    samples = np.load(ROOT / "examples/digits/samples.npz")["image"]
    module = cuvil.runtime.load_module(digits)
    scores = module.run({"image": samples[:batch]})["scores"]
    assert scores.shape == (batch, 10)
    for i in range(batch):
        one = module.run({"image": samples[i : i + 1]})["scores"]
        assert np.array_equal(one[0].view(np.uint32), scores[i].view(np.uint32))


def test_resnet18_against_torch(resnet18: Path, resnet18_onnx: Path, tmp_path: Path):
    torch = pytest.importorskip("torch", reason="PyTorch has no wheel for this Python")
    weights = {
        t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy())
        for t in onnx.load(resnet18_onnx).graph.initializer
    }
    x = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)
    want = run_with_torch(onnx.load(resnet18_onnx).graph, weights, torch.from_numpy(x)).numpy()
    got = cuvil.runtime.load_module(resnet18).run({"input": x})["output"]
    assert relative_error(got, want) < 1e-5


def run_with_torch(graph, weights: dict, x):
    """The few operators that a ResNet has, by PyTorch."""
    import torch
    import torch.nn.functional as F

    values = dict(weights) | {graph.input[0].name: x}
    for node in graph.node:
        a = {k.name: onnx.helper.get_attribute_value(k) for k in node.attribute}
        v = [values[name] for name in node.input]
        if node.op_type == "Conv":
            pad = a["pads"][:2] if "pads" in a else 0
            y = F.conv2d(v[0], v[1], v[2] if len(v) > 2 else None, a.get("strides", 1), pad)
        elif node.op_type == "BatchNormalization":
            y = F.batch_norm(v[0], v[3], v[4], v[1], v[2], eps=a.get("epsilon", 1e-5))
        elif node.op_type == "MaxPool":
            y = F.max_pool2d(v[0], a["kernel_shape"], a["strides"], a["pads"][:2])
        elif node.op_type == "Gemm":
            y = F.linear(v[0], v[1] if a.get("transB") else v[1].T, v[2])
        else:
            simple = {
                "Relu": lambda v: F.relu(v[0]),
                "Add": lambda v: v[0] + v[1],
                "GlobalAveragePool": lambda v: v[0].mean((2, 3), keepdim=True),
                "Flatten": lambda v: v[0].flatten(1),
            }
            y = simple[node.op_type](v)
        values[node.output[0]] = y
    with torch.no_grad():
        return values[graph.output[0].name]


def test_from_the_shell(digits: Path, tmp_path: Path):
    image = np.load(ROOT / "examples/digits/samples.npz")["image"][:2]
    np.save(tmp_path / "image.npy", image)
    command = [*program(), "run", str(digits), "--input", "image=@image.npy", "--output", "scores=@scores.npy"]
    subprocess.run(command, check=True, cwd=tmp_path)
    want = cuvil.runtime.load_module(digits).run({"image": image})["scores"]
    assert np.array_equal(np.load(tmp_path / "scores.npy"), want)
