"""Lists of known length dissolve into values; Scan is a loop over slices."""

import numpy as np
import pytest
from onnx import helper as oh
from onnx import numpy_helper as nh

import cuvil


def tensor(name: str, shape: list, dtype: int = 1):
    return oh.make_tensor_value_info(name, dtype, shape)


def compiled(nodes: list, inputs: list, outputs: list, weights: tuple = (), opset: int = 18) -> cuvil.Module:
    graph = oh.make_graph(nodes, "g", inputs, [oh.make_empty_tensor_value_info(o) for o in outputs], list(weights))
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=8)
    return cuvil.compile(model, target="native")


def number(name: str, value: int):
    return nh.from_array(np.array(value, np.int64), name)


def test_a_list_is_built_and_taken_apart():
    m = compiled(
        [
            oh.make_node("SequenceConstruct", ["x", "y"], ["s"]),
            oh.make_node("SequenceInsert", ["s", "y", "zero"], ["t"]),
            oh.make_node("SequenceErase", ["t", "last"], ["u"]),
            oh.make_node("SequenceAt", ["u", "zero"], ["a"]),
            oh.make_node("SequenceLength", ["t"], ["n"]),
            oh.make_node("ConcatFromSequence", ["t"], ["c"], axis=0),
            oh.make_node("OptionalHasElement", ["u"], ["has"]),
        ],
        [tensor("x", ["N"]), tensor("y", ["M"])],
        ["a", "n", "c", "has"],
        (number("zero", 0), number("last", -1)),
    )
    x, y = np.arange(3, dtype=np.float32), np.arange(5, dtype=np.float32)
    got = m.run({"x": x, "y": y})
    assert np.array_equal(got["a"], y)
    assert got["n"] == 3
    assert got["has"]
    assert np.array_equal(got["c"], np.concatenate([y, x, y]))


def test_positions_in_a_list_may_come_from_data():
    concat = [oh.make_node("ConcatFromSequence", ["t"], ["y"], axis=0)]
    inputs = [tensor(name, ["N", 2]) for name in "abc"] + [
        tensor("at", [], oh.np_dtype_to_tensor_dtype(np.dtype("i8")))
    ]
    build = oh.make_node("SequenceConstruct", ["a", "b"], ["s"])
    insert = compiled([build, oh.make_node("SequenceInsert", ["s", "c", "at"], ["t"]), *concat], inputs, ["y"])
    build = oh.make_node("SequenceConstruct", ["a", "b", "c"], ["s"])
    erase = compiled([build, oh.make_node("SequenceErase", ["s", "at"], ["t"]), *concat], inputs, ["y"])
    a, b, c = (np.full((3, 2), i, np.float32) for i in range(3))
    for m, valid in ((insert, range(-2, 3)), (erase, range(-3, 3))):
        for at in range(-5, 6):
            feeds = {"a": a, "b": b, "c": c, "at": np.array(at)}
            if at not in valid:
                with pytest.raises(RuntimeError, match="out of range"):
                    m.run(feeds)
                continue
            want = [a, b] if m is insert else [a, b, c]
            want.insert(at, c) if m is insert else want.pop(at)
            assert np.array_equal(m.run(feeds)["y"], np.concatenate(want)), at


def test_a_split_list_is_mapped():
    body = oh.make_graph(
        [oh.make_node("Mul", ["e", "w"], ["f"])], "body", [tensor("e", None), tensor("w", [2])], [tensor("f", None)]
    )
    m = compiled(
        [
            oh.make_node("SplitToSequence", ["x", "two"], ["s"], axis=0),
            oh.make_node("SequenceMap", ["s", "w"], ["t"], body=body),
            oh.make_node("ConcatFromSequence", ["t"], ["y"], axis=0),
            oh.make_node("SequenceAt", ["q", "i"], ["z"]),
            oh.make_node("SplitToSequence", ["x"], ["q"], axis=0, keepdims=0),
        ],
        [tensor("x", [5, 2]), tensor("w", [2]), tensor("i", [], 7)],
        ["y", "z"],
        (number("two", 2),),
    )
    x, w = np.arange(10, dtype=np.float32).reshape(5, 2), np.array([2, 3], np.float32)
    for i in (0, 4, -1):
        got = m.run({"x": x, "w": w, "i": np.array(i)})
        assert np.array_equal(got["y"], x * w)
        assert np.array_equal(got["z"], x[i])


def test_a_list_that_leaves_the_model_is_refused():
    with pytest.raises(cuvil.Unsupported, match='output "s" is a sequence'):
        compiled([oh.make_node("SequenceConstruct", ["x"], ["s"])], [tensor("x", ["N"])], ["s"])


@pytest.mark.parametrize("way", [0, 1])
def test_scan(way: int):
    body = oh.make_graph(
        [
            oh.make_node("Add", ["sum", "a"], ["next"]),
            oh.make_node("Mul", ["next", "b"], ["out"]),
            oh.make_node("Identity", ["a"], ["copy"]),
        ],
        "body",
        [tensor("sum", ["K"]), tensor("a", ["K"]), tensor("b", ["K"])],
        [tensor("next", ["K"]), tensor("out", ["K"]), tensor("copy", ["K"])],
    )
    node = oh.make_node(
        "Scan",
        ["start", "a", "b"],
        ["last", "outs", "copies"],
        body=body,
        num_scan_inputs=2,
        scan_input_axes=[0, 1],
        scan_input_directions=[way, 0],
        scan_output_axes=[1, 0],
        scan_output_directions=[0, way],
    )
    m = compiled(
        [node], [tensor("start", ["K"]), tensor("a", ["T", "K"]), tensor("b", ["K", "T"])], ["last", "outs", "copies"]
    )
    for t in (0, 1, 6):
        random = np.random.default_rng(t)
        start, a, b = random.integers(0, 9, 3), random.integers(0, 9, (t, 3)), random.integers(0, 9, (3, t))
        start, a, b = (v.astype(np.float32) for v in (start, a, b))
        walk = a[::-1] if way else a
        sums = start + np.cumsum(walk, 0)
        got = m.run({"start": start, "a": a, "b": b})
        assert np.array_equal(got["last"], sums[-1] if t else start)
        assert np.array_equal(got["outs"], sums.T * b)
        assert np.array_equal(got["copies"], walk[::-1] if way else walk)


@pytest.mark.parametrize("way", [0, 1])
def test_scan_of_a_batch(way: int):
    """As opset 8 has it: each sequence for itself."""
    body = oh.make_graph(
        [oh.make_node("Add", ["sum", "a"], ["next"]), oh.make_node("Neg", ["next"], ["out"])],
        "body",
        [tensor("sum", [2]), tensor("a", [2])],
        [tensor("next", [2]), tensor("out", [2])],
    )
    node = oh.make_node("Scan", ["", "start", "a"], ["last", "outs"], body=body, num_scan_inputs=1, directions=[way])
    m = compiled([node], [tensor("start", [3, 2]), tensor("a", [3, "T", 2])], ["last", "outs"], opset=8)
    for t in (0, 1, 6):
        random = np.random.default_rng(t)
        start, a = (random.integers(0, 9, shape).astype(np.float32) for shape in ((3, 2), (3, t, 2)))
        sums = start[:, None] + np.cumsum(a[:, ::-1] if way else a, 1)
        got = m.run({"start": start, "a": a})
        assert np.array_equal(got["last"], sums[:, -1] if t else start)
        assert np.array_equal(got["outs"], -sums)
