"""Writes inputs for the fuzz targets to start from: make_corpus.py FOLDER [WRITE_ARTIFACTS]

FOLDER gets a folder for each target. WRITE_ARTIFACTS is the program of that name, which makes the artifacts. What is
kept of them, and of what fuzzing found, is in corpus/; scripts/fuzz --keep chooses it.
"""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
F32, I64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
X = [2, 3, 4, 4]

# Operator, operands (a shape: an input; an array: an initializer; None: left out), number of results, attributes.
CALLS = [
    ("Add", [["N", 3], ["N", 1]], 1, {}),
    ("Relu", [X], 1, {}),
    ("Clip", [X, np.float32(0), np.float32(6)], 1, {}),
    ("Conv", [X, np.ones([4, 3, 3, 3], "f4"), np.ones(4, "f4")], 1, {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ("ConvTranspose", [X, np.ones([3, 2, 2, 2], "f4")], 1, {"strides": [2, 2], "output_padding": [1, 0]}),
    ("MaxPool", [["N", 3, "H", "W"]], 2, {"kernel_shape": [2, 3], "ceil_mode": 1}),
    ("AveragePool", [X], 1, {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER", "count_include_pad": 1}),
    ("GlobalAveragePool", [X], 1, {}),
    ("LpPool", [X], 1, {"kernel_shape": [2, 2], "p": 3}),
    ("BatchNormalization", [X, *[np.ones(3, "f4")] * 4], 1, {"epsilon": 0.1}),
    ("LayerNormalization", [X, np.ones(4, "f4")], 1, {"axis": -1}),
    ("GroupNormalization", [[2, 4, 3], np.ones(4, "f4"), np.ones(4, "f4")], 1, {"num_groups": 2}),
    ("InstanceNormalization", [X, np.ones(3, "f4"), np.ones(3, "f4")], 1, {}),
    ("MatMul", [["B", "T", 8], np.ones([8, 4], "f4")], 1, {}),
    ("Gemm", [["N", 8], np.ones([4, 8], "f4"), np.ones(4, "f4")], 1, {"transB": 1, "alpha": 0.5}),
    ("Einsum", [[2, 3, 4], [2, 4, 5]], 1, {"equation": "bij,bjk->bik"}),
    ("Softmax", [["N", 5]], 1, {"axis": -1}),
    ("LogSoftmax", [[2, 5]], 1, {"axis": 0}),
    ("ReduceMean", [["N", 3, 4], np.array([1, -1])], 1, {"keepdims": 0}),
    ("ArgMax", [["N", 5]], 1, {"axis": 1, "keepdims": 0}),
    ("TopK", [["N", 5], np.array([2])], 2, {"axis": -1}),
    ("CumSum", [[2, 5], np.int64(1)], 1, {"exclusive": 1, "reverse": 1}),
    ("Reshape", [["N", 6], np.array([-1, 2, 3])], 1, {}),
    ("Transpose", [["N", 2, 3]], 1, {"perm": [2, 0, 1]}),
    ("Concat", [["N", 2], ["N", 3]], 1, {"axis": 1}),
    ("Split", [["N", 7], np.array([3, 4])], 2, {"axis": 1}),
    ("Slice", [["N", 9], np.array([-7]), np.array([1 << 40]), np.array([1]), np.array([2])], 1, {}),
    ("Gather", [["N", 4], np.array([[1, -1]])], 1, {"axis": 1}),
    ("GatherND", [["N", 4], np.array([[1, 2]])], 1, {}),
    ("GatherElements", [[2, 4], np.array([[1, 0]])], 1, {"axis": 1}),
    ("ScatterND", [[4, 4], np.array([[1], [2]]), [2, 4]], 1, {"reduction": "add"}),
    ("ScatterElements", [[2, 4], np.array([[1, 0]]), [1, 2]], 1, {"axis": 1}),
    ("Pad", [["N", 3], np.array([0, 1, 2, 0]), np.float32(1)], 1, {"mode": "reflect"}),
    ("Expand", [[3, 1], np.array([2, 1, 4])], 1, {}),
    ("Tile", [["N", 2], np.array([2, 3])], 1, {}),
    ("Squeeze", [["N", 1, 2], np.array([1])], 1, {}),
    ("Unsqueeze", [["N", 2], np.array([0, -1])], 1, {}),
    ("Flatten", [["N", 2, 3]], 1, {"axis": 1}),
    ("Shape", [["N", 2, 3]], 1, {"start": 0, "end": 2}),
    ("Size", [["N", 2]], 1, {}),
    ("ConstantOfShape", [np.array([2, 3])], 1, {"value": numpy_helper.from_array(np.array([1.5], "f4"))}),
    ("Range", [np.int64(0), np.int64(9), np.int64(2)], 1, {}),
    ("Cast", [["N", 2]], 1, {"to": I64}),
    ("Where", [np.array([True, False]), ["N", 2], ["N", 1]], 1, {}),
    ("OneHot", [np.array([1, 2]), np.int64(4), np.array([0, 1], "f4")], 1, {"axis": -1}),
    ("NonZero", [["N", 2]], 1, {}),
    ("Trilu", [["N", 4, 4], np.int64(-1)], 1, {"upper": 0}),
    ("Resize", [["N", 3, 4, 4], None, np.array([1, 1, 2, 1.5], "f4")], 1, {"mode": "linear"}),
    ("GridSample", [X, [2, 5, 5, 2]], 1, {"padding_mode": "border", "align_corners": 1}),
    ("DepthToSpace", [["N", 8, 2, 2]], 1, {"blocksize": 2, "mode": "CRD"}),
    ("LSTM", [[5, 2, 3], np.ones([1, 16, 3], "f4"), np.ones([1, 16, 4], "f4")], 3, {"hidden_size": 4}),
    ("GRU", [["T", 1, 3], np.ones([2, 12, 3], "f4"), np.ones([2, 12, 4], "f4")], 2,
     {"hidden_size": 4, "direction": "bidirectional"}),
    ("Attention", [[1, 2, "T", 4], [1, 2, "T", 4], [1, 2, "T", 4]], 1, {"is_causal": 1}),
    ("RotaryEmbedding", [[1, 2, 3, 4], np.ones([5, 2], "f4"), np.ones([5, 2], "f4"), np.array([[0, 1, 2]])], 1, {}),
    ("QuantizeLinear", [["N", 4], np.float32(0.1), np.uint8(3)], 1, {}),
    ("DequantizeLinear", [np.arange(4, dtype="i1"), np.float32(0.1), np.int8(3)], 1, {}),
    ("DFT", [[1, 8, 1]], 1, {}),
    ("NegativeLogLikelihoodLoss", [[2, 3], np.array([0, 2])], 1, {"reduction": "mean"}),
    ("Dropout", [["N", 2]], 2, {}),
    ("SequenceConstruct", [["N", 2], ["N", 3]], 1, {}),
]  # fmt: skip


def model_of(op: str, operands: list, results: int, attributes: dict) -> bytes:
    """A model of one call and a Relu behind it, so that rules and fusion see two nodes."""
    inputs, weights, names = [], [], []
    for i, operand in enumerate(operands):
        names.append("" if operand is None else f"x{i}")
        if isinstance(operand, list):
            inputs.append(helper.make_tensor_value_info(f"x{i}", F32, operand))
        elif operand is not None:
            weights.append(numpy_helper.from_array(np.asarray(operand), f"x{i}"))
    outputs = [f"y{i}" for i in range(results)]
    nodes = [helper.make_node(op, names, outputs, **attributes), helper.make_node("Relu", ["y0"], ["z"])]
    return model(nodes, inputs, [*outputs, "z"] if len(op) % 2 else ["z"], weights)


def model(nodes: list, inputs: list, outputs: list[str], weights: list = (), functions: list = ()) -> bytes:
    """A file without more than the importer needs."""
    ports = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "g", inputs, ports, list(weights))
    opsets = [helper.make_opsetid("", 23)] + [helper.make_opsetid("f", 1)] * bool(functions)
    return helper.make_model(graph, ir_version=10, opset_imports=opsets, functions=list(functions)).SerializeToString()


def control_flow() -> dict[str, bytes]:
    node, value = helper.make_node, helper.make_tensor_value_info
    empty = helper.make_empty_tensor_value_info
    then = helper.make_graph([node("Relu", ["x"], ["t"])], "t", [], [empty("t")])
    other = helper.make_graph([node("Slice", ["x", "s", "e"], ["u"])], "u", [], [empty("u")])
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Concat", ["a", "x"], ["b"], axis=0), node("Size", ["b"], ["n"])],
        "b",
        [value("i", I64, []), value("go", BOOL, []), value("a", F32, ["K", 3])],
        [empty("on"), empty("b"), empty("n")],
    )
    step = helper.make_graph(
        [node("Add", ["a", "e"], ["b"]), node("Identity", ["b"], ["c"])],
        "s",
        [value("a", F32, [3]), value("e", F32, [3])],
        [empty("b"), empty("c")],
    )
    x, condition = value("x", F32, ["N", 3]), value("c", BOOL, [])
    ends = [numpy_helper.from_array(np.array([k]), name) for name, k in (("s", 0), ("e", 2))]
    count = numpy_helper.from_array(np.int64(3), "m")
    start = numpy_helper.from_array(np.zeros(3, "f4"), "z")
    scale = helper.make_function(
        "f", "Scale", ["v"], ["w"], [node("LeakyRelu", ["v"], ["w"])], [helper.make_opsetid("", 23)], ["alpha"]
    )
    scale.node[0].attribute.add(name="alpha", ref_attr_name="alpha", type=1)
    return {
        "If": model([node("If", ["c"], ["y"], then_branch=then, else_branch=other)], [x, condition], ["y"], ends),
        "Loop": model([node("Loop", ["m", "", "x"], ["y", "n"], body=body)], [x], ["y", "n"], [count]),
        "Scan": model([node("Scan", ["z", "x"], ["y", "q"], body=step, num_scan_inputs=1)], [x], ["y", "q"], [start]),
        "Function": model([node("Scale", ["x"], ["y"], domain="f", alpha=0.5)], [x], ["y"], [], [scale]),
    }


def arrays() -> dict[str, bytes]:
    """.npy and .npz files of all kinds."""
    made = {
        "f32": np.arange(6, dtype="<f4").reshape(2, 3),
        "big": np.arange(3, dtype=">i8"),
        "fortran": np.asfortranarray(np.ones([2, 3], "f8")),
        "empty": np.zeros([0, 3], "i4"),
        "scalar": np.float16(1),
        "complex": np.ones(2, ">c8"),
        "bool": np.array([True, False]),
        "text": np.array(["a", "bc", "ü€😀"]),
        "big_text": np.array([["a", "b"]]).astype(">U3"),
        "bytes": np.array([b"a", b"bc"]),
        "void": np.zeros(2, "V2"),
    }
    files = {}
    for name, array in made.items():
        stream = io.BytesIO()
        np.save(stream, array)
        files[name] = stream.getvalue()
    for name, version in (("version2", (2, 0)), ("version3", (3, 0))):
        stream = io.BytesIO()
        np.lib.format.write_array(stream, made["f32"], version)
        files[name] = stream.getvalue()
    for name, save in (("stored", np.savez), ("deflated", np.savez_compressed)):
        stream = io.BytesIO()
        save(stream, x=made["f32"], y=made["text"])
        files[name] = stream.getvalue()
    return files


def texts() -> dict[str, bytes]:
    """What the golden tests put in, and the texts that are refused."""
    files = [*(ROOT / "tests/golden").rglob("*.cuir"), *(ROOT / "tests/errors/ir").glob("*.cuir")]
    return {f"{f.parent.name}-{f.stem}": f.read_bytes().partition(b"\n---\n")[0] + b"\n" for f in sorted(files)}


def main() -> None:
    folder = Path(sys.argv[1])
    inputs = {"onnx": {call[0]: model_of(*call) for call in CALLS} | control_flow(), "npy": arrays(), "ir": texts()}
    for target, files in inputs.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / target / name).write_bytes(content)
    if len(sys.argv) > 2:
        (folder / "artifact").mkdir(exist_ok=True)
        subprocess.run([sys.argv[2], folder / "artifact"], check=True)


if __name__ == "__main__":
    main()
