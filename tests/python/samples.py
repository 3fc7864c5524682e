"""Small models and the program under test, for all tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

# y = relu(x @ w) for x: f32[N,4]; small, and with a weight.
MLP = """
weight "w" : f32[4,3] = [0.5, -1, 2, 1, 0, -0.25, 3, 1, 1, -2, 0.125, 4]
func @main(%x: f32[N,4]) -> (f32[N,3] "y") {
  %w = weight "w" : f32[4,3]
  %1 = matmul %x, %w
  %2 = relu %1
  return %2
}
"""

TWO = """
func @main(%a: f32[N], %b: f32[N]) -> (f32[N] "sum", f32[N] "difference") {
  %1 = add %a, %b
  %2 = sub %a, %b
  return %1, %2
}
"""

ENDLESS = """
func @main(%x: f32[2]) -> f32[2] {
  %go = constant true : bool[]
  %y = loop _, %go, %x {count = "k"} : f32[2] body (%i: i64[], %c: bool[], %v: f32[2]) {
    %w = neg %v : f32[2]
    return %c, %w
  }
  return %y
}
"""


def onnx_model(op: str = "Relu") -> onnx.ModelProto:
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    value = helper.make_tensor_value_info
    node = helper.make_node(op, ["x"], ["y"], name="the_node")
    graph = helper.make_graph([node], "g", [value("x", f32, ["N", 4])], [value("y", f32, ["N", 4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def big_onnx() -> onnx.ModelProto:
    """Takes seconds to compile: many different convolutions."""
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    nodes, weights, name, channels = [], [], "x", 8
    for i in range(60):
        w = np.full((8 + i, channels, 3, 3), 0.01, np.float32)
        weights.append(onnx.numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("Conv", [name, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        name, channels = f"r{i}", 8 + i
    value = helper.make_tensor_value_info
    inputs, outputs = [value("x", f32, [1, 8, 64, 64])], [value(name, f32, [1, channels, 64, 64])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def program() -> list[str]:
    """The command under test: $CUVIL, or the one that was installed with the package."""
    if "CUVIL" in os.environ:
        return os.environ["CUVIL"].split()
    beside = Path(sys.executable).with_name("cuvil")
    found = str(beside) if beside.exists() else shutil.which("cuvil")
    if not found:
        pytest.fail("there is no program cuvil: run scripts/build, or set CUVIL")
    return [found]


def compile_with(path: Path, out: Path, *options: str, **process: object) -> Path:
    """Compiles by the program and returns the module's file."""
    subprocess.run([*program(), "compile", str(path), "-o", str(out), "--quiet", *options], check=True, **process)
    return out
