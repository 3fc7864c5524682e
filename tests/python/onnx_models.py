"""ONNX models for tests, in few words."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

Size = int | str | None
F16, F32, I64 = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def value(name: str, shape: Sequence[Size] | None, dtype: int = F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name: str, *shape: int, dtype: type = np.float32) -> onnx.TensorProto:
    """A tensor of ones."""
    return numpy_helper.from_array(np.ones(shape, dtype), name)


def ints(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str | onnx.ValueInfoProto],
    weights: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
) -> onnx.ModelProto:
    """Nothing is checked. Of outputs that are given by name only, nothing is declared."""
    declared = [onnx.ValueInfoProto(name=o) if isinstance(o, str) else o for o in outputs]
    graph = helper.make_graph(nodes, "graph", inputs, declared, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(
    op: str, inputs: Sequence[str], outputs: Sequence[str] | str, name: str = "", domain: str = "", **attributes: object
) -> onnx.NodeProto:
    outputs = [outputs] if isinstance(outputs, str) else outputs
    return helper.make_node(op, inputs, outputs, name=name, domain=domain, **attributes)


X = value("x", ["N", 8])


def mixed_faults() -> onnx.ModelProto:
    """Three faults that do not depend on each other, and nodes behind them that are fine."""
    return model(
        [
            node("MatMul", ["x", "encoder.weight"], "hidden", "/encoder/MatMul"),
            node("Relu", ["hidden"], "active", "/encoder/Relu"),
            node("Softmax", ["x"], "scores", "/head/Softmax", axis=3),
            node("TfIdfVectorizer", ["x"], "sampled", "/words/TfIdfVectorizer"),
            node("Add", ["active", "sampled"], "sum", "/Add"),
        ],
        [X],
        ["sum", "scores"],
        [weight("encoder.weight", 16, 8)],
    )


def unsupported_operators() -> onnx.ModelProto:
    nodes = [node("FancyNorm", ["x"], "h0", "/norm.0/FancyNorm", "com.example")]
    nodes += [node("FancyNorm", [f"h{i}"], f"h{i + 1}", f"/norm.{i + 1}/FancyNorm", "com.example") for i in range(5)]
    nodes += [node("TfIdfVectorizer", ["h5"], "y", "/TfIdfVectorizer")]
    return model(nodes, [X], ["y"])


def half_precision() -> onnx.ModelProto:
    nodes = [node("Relu", ["x"], "a", "/1/Relu"), node("MatMul", ["a", "w"], "b", "/MatMul")]
    nodes += [node("Relu", ["b"], "y", "/2/Relu")]
    return model(nodes, [value("x", ["N", 8], F16)], ["y"], [weight("w", 8, 8, dtype=np.float16)])


def data_dependent_shape() -> onnx.ModelProto:
    return model([node("Reshape", ["x", "shape"], "y", "/Reshape")], [X, value("shape", ["K"], I64)], ["y"])


def contradictory_output() -> onnx.ModelProto:
    return model([node("Relu", ["x"], "y", "/Relu")], [X], [value("y", ["N", 9])])


def contradictory_convolution() -> onnx.ModelProto:
    nodes = [node("Conv", ["image", "conv.weight", "conv.bias"], "y", "/conv/Conv")]
    return model(
        nodes, [value("image", ["N", 3, 8, 8])], ["y"], [weight("conv.weight", 4, 2, 3, 3), weight("conv.bias", 4)]
    )


def odd_names() -> onnx.ModelProto:
    nodes = [node("Add", ["a\nb", 'say "hi"'], "*/ y", "näme; rm -rf /")]
    return model(nodes, [value("a\nb", [2]), value('say "hi"', [3])], ["*/ y"])


def cycle() -> onnx.ModelProto:
    nodes = [node("Add", ["x", "b"], "a", "/first"), node("Relu", ["a"], "b", "/second")]
    return model(nodes, [X], ["b"])


def undefined_value() -> onnx.ModelProto:
    return model([node("Add", ["x", "bias"], "y", "/Add")], [X], ["y", "z"])


def unknown_attribute() -> onnx.ModelProto:
    return model([node("Relu", ["x"], "y", "/Relu", negative_slope=0.1)], [X], ["y"])


def old_opset() -> onnx.ModelProto:
    return model([node("Relu", ["x"], "y", "/Relu")], [X], ["y"], opset=5)


def outside_data() -> onnx.ModelProto:
    """Weights in a file that is not the model's."""
    tensor = weight("w", 8)
    onnx.external_data_helper.set_external_data(tensor, "../../etc/passwd", 0, 32)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    return model([node("Add", ["x", "w"], "y", "/Add")], [X], ["y"], [tensor])


def truncated() -> bytes:
    whole = model([node("Add", ["x", "w"], "y", "/Add")], [X], ["y"], [weight("w", 8)])
    return whole.SerializeToString()[:90]


def text_file() -> bytes:
    return b"<!DOCTYPE html>\n<title>404 Not Found</title>\n"


def empty() -> bytes:
    return b""


# By the name of the file with the message, tests/errors/onnx/<name>.txt.
BROKEN = {
    maker.__name__: maker
    for maker in (
        contradictory_convolution,
        contradictory_output,
        cycle,
        data_dependent_shape,
        empty,
        half_precision,
        mixed_faults,
        odd_names,
        old_opset,
        outside_data,
        text_file,
        truncated,
        undefined_value,
        unknown_attribute,
        unsupported_operators,
    )
}
