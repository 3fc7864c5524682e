"""Sizes that only the data of an input shows, against NumPy."""

import itertools

import numpy as np
import pytest
from onnx import helper as oh
from onnx import numpy_helper as nh

import cuvil

RANDOM = np.random.default_rng(11)
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def compiled(op: str, feeds: dict, open_axes: bool, opset: int = 21, **attributes) -> cuvil.Module:
    def port(name: str, v: np.ndarray):
        shape = [f"{name}_{k}" for k in range(v.ndim)] if open_axes and name == "x" else v.shape
        return oh.make_tensor_value_info(name, oh.np_dtype_to_tensor_dtype(v.dtype), shape)

    node = oh.make_node(op, list(feeds), ["y"], **attributes)
    graph = oh.make_graph([node], "g", [port(n, v) for n, v in feeds.items()], [oh.make_empty_tensor_value_info("y")])
    return cuvil.compile(
        oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=10), target="native"
    )


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_reshape():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for open_axes in (False, True):
        m = compiled("Reshape", {"x": x, "shape": ints(0, 0, 0)}, open_axes)
        for shape in ((4, 3, 2), (0, -1, 2), (-1, 0, 0), (24, 1, 1), (0, 0, 0), (1, 1, -1)):
            want = [x.shape[i] if s == 0 else s for i, s in enumerate(shape)]
            assert np.array_equal(m.run({"x": x, "shape": ints(*shape)})["y"], x.reshape(want)), shape
        with pytest.raises(RuntimeError, match="must be equal, but are 24 and 20"):
            m.run({"x": x, "shape": ints(5, 4, 1)})
        with pytest.raises(RuntimeError, match=r"a size of the new shape is -?\d+, expected at least 0"):
            m.run({"x": x, "shape": ints(-3, -8, 1)})
    empty = np.zeros((0, 4), np.float32)
    m = compiled("Reshape", {"x": empty, "shape": ints(0, -1)}, True)
    assert m.run({"x": empty, "shape": ints(0, -1)})["y"].shape == (0, 4)
    m = compiled("Reshape", {"x": empty, "shape": ints(3, 0)}, True, allowzero=1)
    assert m.run({"x": empty, "shape": ints(3, 0)})["y"].shape == (3, 0)


def test_sizes_whose_product_exceeds_64_bits():
    m = compiled("Reshape", {"x": np.zeros(4, np.float32), "shape": ints(2, 2)}, False)
    with pytest.raises(RuntimeError, match="must be equal"):
        m.run({"x": np.zeros(4, np.float32), "shape": ints(20, 922337203685477581)})  # 4 more than 2**64


SLICES = [
    ((2, 5), [-1], [LOWEST], [1], [-1]),
    ((2, 5), [HIGHEST], [LOWEST], [-1], [-2]),
    ((5, 2), [-1], [HIGHEST], [0], [-1]),
    ((4, 3), [3], [1], [0], [1]),
    ((4, 5), [-1, 1], [LOWEST, HIGHEST], [0, 1], [-1, 3]),
    ((4, 5), [0, 4], [HIGHEST, LOWEST], [0, 1], [2**40, -(2**40)]),
    ((0, 3), [-1], [LOWEST], [0], [-1]),
    ((0, 3), [0], [5], [0], [2]),
    ((7, 3), [-3], [-1], [0], [1]),
    ((7, 3), [5], [-7], [0], [-2]),
]


def sliced(x: np.ndarray, starts: list, ends: list, axes: list, steps: list) -> np.ndarray:
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        n = x.shape[axis]
        low, high = (0, n) if step > 0 else (-1, n - 1)
        first = min(max(start + n if start < 0 else start, 0), high)
        last = min(max(end + n if end < 0 else end, low), high)
        x = np.take(x, np.arange(first, last, step), axis)
    return x


@pytest.mark.parametrize(("shape", "starts", "ends", "axes", "steps"), SLICES)
def test_slice(shape: tuple, starts: list, ends: list, axes: list, steps: list):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    want = sliced(x, starts, ends, axes, steps)
    feeds = {"x": x, "starts": ints(*starts), "ends": ints(*ends), "axes": ints(*axes), "steps": ints(*steps)}
    for known in ([], ["axes"], ["axes", "steps"]):
        graph = oh.make_graph(
            [oh.make_node("Slice", list(feeds), ["y"])],
            "g",
            [
                oh.make_tensor_value_info(n, oh.np_dtype_to_tensor_dtype(v.dtype), ["A", "B"] if n == "x" else v.shape)
                for n, v in feeds.items()
                if n not in known
            ],
            [oh.make_empty_tensor_value_info("y")],
            [nh.from_array(feeds[n], n) for n in known],
        )
        m = cuvil.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10), target="native")
        y = m.run({n: v for n, v in feeds.items() if n not in known})["y"]
        np.testing.assert_array_equal(y, want, strict=True, err_msg=str(known))


def test_a_step_of_zero():
    feeds = {"x": np.zeros(4, np.float32), "starts": ints(0), "ends": ints(4), "axes": ints(0), "steps": ints(0)}
    with pytest.raises(RuntimeError, match="a step is 0"):
        compiled("Slice", feeds, False).run(feeds)


def test_expand_tile_and_constant_of_shape():
    x = np.arange(3, dtype=np.float32).reshape(3, 1)
    m = compiled("Expand", {"x": x, "shape": ints(2, 1, 4)}, False)
    for shape in ((2, 1, 4), (1, 3, 1), (0, 3, 2)):
        assert np.array_equal(
            m.run({"x": x, "shape": ints(*shape)})["y"], np.broadcast_to(x, np.broadcast_shapes(x.shape, shape))
        )
    with pytest.raises(RuntimeError, match="a size of the new shape is neither 1 nor 3"):
        m.run({"x": x, "shape": ints(1, 2, 1)})
    with pytest.raises(RuntimeError, match="a size of the new shape is -2, expected at least 0"):
        m.run({"x": x, "shape": ints(-2, 1, 1)})

    m = compiled("Tile", {"x": x, "repeats": ints(1, 1)}, True)
    for repeats in ((2, 3), (0, 1), (1, 1)):
        assert np.array_equal(m.run({"x": x, "repeats": ints(*repeats)})["y"], np.tile(x, repeats))

    m = compiled("ConstantOfShape", {"shape": ints(1, 1)}, False, value=nh.from_array(np.array([7], np.int32)))
    for shape in ((2, 3), (0, 5), (1, 1)):
        assert np.array_equal(m.run({"shape": ints(*shape)})["y"], np.full(shape, 7, np.int32))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.float32, np.float64])
def test_range(dtype: type):
    m = compiled("Range", {n: np.zeros((), dtype) for n in ("start", "limit", "delta")}, False)
    ranges = [
        (0, 5, 1),
        (3, 3, 1),
        (5, 0, -2),
        (0, 5, -1),
        (1, 10, 3),
        (1, 11, 3),
        (-4, 4, 8),
        (4, -5, -3),
        (7, 9, 100),
    ]
    for start, limit, delta in ranges:
        y = m.run({"start": dtype(start), "limit": dtype(limit), "delta": dtype(delta)})["y"]
        assert np.array_equal(y, np.arange(start, limit, delta, dtype))
        assert y.dtype == dtype


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode: str):
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    m = compiled("Pad", {"x": x, "pads": ints(0, 0, 0, 0)}, True, mode=mode)
    for pads in ((1, 2, 0, 1), (0, 0, 0, 0), (7, 0, 5, 9), (0, -1, 0, 2), (-1, 0, -1, -3)):
        low, high = np.array(pads[:2]), np.array(pads[2:])
        cut = x[tuple(slice(-min(a, 0), n + min(b, 0)) for a, b, n in zip(low, high, x.shape, strict=True))]
        want = np.pad(cut, list(zip(low.clip(0), high.clip(0), strict=True)), mode=mode)
        assert np.array_equal(m.run({"x": x, "pads": ints(*pads)})["y"], want), pads


def test_pad_all_axes_of_images():
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    feeds = {"x": x, "pads": ints(1, 0, -1, 2, 0, 3, 1, -2)}
    want = np.pad(x[:, :, 1:, :2], ((1, 0), (0, 3), (0, 1), (2, 0)))
    for opset in (11, 21):
        assert np.array_equal(compiled("Pad", feeds, True, opset).run(feeds)["y"], want)


def test_pad_axes_and_value():
    x = np.arange(6, dtype=np.int64).reshape(2, 3)
    feeds = {"x": x, "pads": ints(1, 2), "value": np.array(2**60), "axes": ints(-1)}
    assert np.array_equal(
        compiled("Pad", feeds, False).run(feeds)["y"], np.pad(x, ((0, 0), (1, 2)), constant_values=2**60)
    )


def test_one_element_is_reflected():
    x = np.array([[5.0]], np.float32)
    feeds = {"x": x, "pads": ints(0, 2, 0, 3)}
    assert np.array_equal(compiled("Pad", feeds, True, mode="reflect").run(feeds)["y"], np.full((1, 6), 5, np.float32))


def test_split():
    x = np.arange(10, dtype=np.float32)
    node = oh.make_node("Split", ["x", "sizes"], ["a", "b"])
    ports = [oh.make_tensor_value_info("x", 1, ["N"]), oh.make_tensor_value_info("sizes", 7, [2])]
    graph = oh.make_graph([node], "g", ports, [oh.make_empty_tensor_value_info(n) for n in "ab"])
    m = cuvil.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8), target="native")
    for first in (0, 4, 10):
        y = m.run({"x": x, "sizes": ints(first, 10 - first)})
        assert np.array_equal(y["a"], x[:first])
        assert np.array_equal(y["b"], x[first:])
    with pytest.raises(RuntimeError, match="must be equal, but are 9 and 10"):
        m.run({"x": x, "sizes": ints(4, 5)})
    with pytest.raises(RuntimeError, match="the size of a part is -1, expected at least 0"):
        m.run({"x": x, "sizes": ints(11, -1)})


def test_a_negative_size_matters_only_in_a_branch_that_runs():
    cut = [oh.make_node("Pad", ["x", "pads"], ["a"])]
    keep = [oh.make_node("Identity", ["x"], ["b"])]
    then, other = (
        oh.make_graph(n, "g", [], [oh.make_empty_tensor_value_info(o)]) for n, o in ((cut, "a"), (keep, "b"))
    )
    graph = oh.make_graph(
        [oh.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        "g",
        [oh.make_tensor_value_info("c", 9, []), oh.make_tensor_value_info("x", 1, ["N", "M"])],
        [oh.make_empty_tensor_value_info("y")],
        [nh.from_array(ints(-3, -4, -2, 0), "pads")],
    )
    m = cuvil.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8), target="native")
    small, large = np.ones((3, 3), np.float32), np.ones((7, 6), np.float32)
    assert np.array_equal(m.run({"c": np.array(False), "x": small})["y"], small)
    assert m.run({"c": np.array(True), "x": large})["y"].shape == (2, 2)
    with pytest.raises(RuntimeError, match=r"the size that is left by negative padding is -[12], expected at least 0"):
        m.run({"c": np.array(True), "x": small})


def test_sizes_are_folded_where_they_are_known():
    """What float arithmetic makes of a fixed shape is a fixed shape."""
    nodes = [
        oh.make_node("Shape", ["x"], ["s"]),
        oh.make_node("Cast", ["s"], ["f"], to=1),
        oh.make_node("Mul", ["f", "half"], ["g"]),
        oh.make_node("Floor", ["g"], ["h"]),
        oh.make_node("Cast", ["h"], ["t"], to=7),
        oh.make_node("ConstantOfShape", ["t"], ["y"]),
    ]
    for size, is_known in ((9, True), ("N", False)):
        ports = [oh.make_tensor_value_info("x", 1, [size, 4])]
        graph = oh.make_graph(
            nodes, "g", ports, [oh.make_empty_tensor_value_info("y")], [nh.from_array(np.float32(0.5), "half")]
        )
        m = cuvil.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8), target="native")
        assert (tuple(m.outputs[0].shape) == (4, 2)) == is_known
        assert m.run({"x": np.zeros((9, 4), np.float32)})["y"].shape == (4, 2)


def test_slice_bounds():
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    m = compiled("Slice", {"x": x, "starts": ints(0), "ends": ints(0)}, True)
    for start, end in itertools.product((LOWEST, -9, -2, 0, 3, 9, HIGHEST), repeat=2):
        assert np.array_equal(m.run({"x": x, "starts": ints(start), "ends": ints(end)})["y"], x[start:end])


def test_axes():
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3)
    m = compiled("Squeeze", {"x": x, "axes": ints(0)}, True)
    for axis in (0, 2, -4, -2):
        assert np.array_equal(m.run({"x": x, "axes": ints(axis)})["y"], x.squeeze(axis))
    with pytest.raises(RuntimeError, match="must be equal"):
        m.run({"x": x, "axes": ints(1)})
    m = compiled("Unsqueeze", {"x": x, "axes": ints(0, 0)}, True)
    for axes in ((0, 1), (-1, 0), (5, 2)):
        assert np.array_equal(m.run({"x": x, "axes": ints(*axes)})["y"], np.expand_dims(x, axes))


def test_squeeze_without_axes():
    """Open sizes stay, and may be all but 1."""
    x = np.zeros((2, 1, 3), np.float32)
    port = oh.make_tensor_value_info("x", oh.np_dtype_to_tensor_dtype(x.dtype), ["N", 1, "M"])
    graph = oh.make_graph([oh.make_node("Squeeze", ["x"], ["y"])], "g", [port], [oh.make_empty_tensor_value_info("y")])
    m = cuvil.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 13)], ir_version=8), target="native")
    for shape in ((2, 1, 3), (0, 1, 5), (7, 1, 2)):
        x = RANDOM.normal(0, 1, shape).astype(np.float32)
        assert np.array_equal(m.run({"x": x})["y"], x.squeeze(1))
    with pytest.raises((RuntimeError, ValueError), match="size M is 1: without axes"):
        m.run({"x": np.zeros((2, 1, 1), np.float32)})


REDUCTIONS = {
    "ReduceSum": np.sum,
    "ReduceMean": lambda x, **how: np.sum(x, **how) / np.sum(np.ones_like(x), **how),
    "ReduceMax": lambda x, **how: np.max(x, initial=-np.inf, **how),
    "ReduceLogSumExp": lambda x, **how: np.log(np.sum(np.exp(x), **how)),
}


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("keep", [0, 1])
def test_reduce(op: str, keep: int):
    """One, two or all of three axes, in any order, counted from either end; x may be empty."""
    for count in (1, 2, 3):
        m = compiled(op, {"x": np.zeros((2, 3, 4), np.float32), "axes": ints(*range(count))}, True, keepdims=keep)
        for axes, shape in itertools.product(itertools.permutations((0, -2, 2), count), ((2, 3, 4), (0, 3, 1))):
            x = RANDOM.normal(0, 1, shape).astype(np.float32)
            with np.errstate(all="ignore"):
                want = REDUCTIONS[op](x.astype(np.float64), axis=axes, keepdims=bool(keep))
            np.testing.assert_allclose(m.run({"x": x, "axes": ints(*axes)})["y"], want, rtol=1e-5, atol=1e-6)


def test_reduce_other_elements():
    x = RANDOM.integers(-9, 9, (2, 3, 4))
    for dtype in (np.int64, np.int32, np.uint8, np.float64):
        m = compiled("ReduceSum", {"x": x.astype(dtype), "axes": ints(1)}, False)
        for axis in range(-3, 3):
            got = m.run({"x": x.astype(dtype), "axes": ints(axis)})["y"]
            assert np.array_equal(got, x.astype(dtype).sum(axis, dtype, keepdims=True))
            assert got.dtype == dtype
    m = compiled("ReduceMax", {"x": x > 0, "axes": ints(1)}, False)
    assert np.array_equal(m.run({"x": x > 0, "axes": ints(-1)})["y"], (x > 0).max(-1, keepdims=True))
    with pytest.raises(RuntimeError, match="out of range"):
        m.run({"x": x > 0, "axes": ints(3)})


def test_reduce_over_no_axes():
    """No axes mean all of them, or nothing is done."""
    x = RANDOM.normal(0, 1, (2, 3)).astype(np.float32)
    for noop, want in ((0, np.array([[x.sum()]])), (1, x)):
        m = compiled("ReduceSum", {"x": x, "axes": ints()}, True, noop_with_empty_axes=noop)
        np.testing.assert_allclose(m.run({"x": x, "axes": ints()})["y"], want, rtol=1e-6)


def test_reduce_over_axes_that_are_none():
    """Out of range or twice, also where there are as many as axes."""
    x = np.zeros((2, 3, 4), np.float32)
    for axes in ((9, 9, 9), (0, 1, 3), (0, 1, 1), (0, 1, -2), (-4, 0), (2, 2)):
        m = compiled("ReduceSum", {"x": x, "axes": ints(*axes)}, False)
        with pytest.raises(RuntimeError, match=r"out of range|an axis is named twice"):
            m.run({"x": x, "axes": ints(*axes)})
    with pytest.raises(cuvil.Unsupported, match="4 axes of 3"):
        compiled("ReduceSum", {"x": x, "axes": ints(0, 1, 2, 3)}, False)


def test_axis_beyond_both_ends():
    """An axis of size 1 is found from no place before the first."""
    for shape in ((2, 3, 1), (1, 1, 1), (0, 3, 1)):
        x = np.zeros(shape, np.float32)
        m = compiled("CumSum", {"x": x, "axis": np.array(0)}, False)
        for axis in (-4, -5, -6, 3):
            with pytest.raises(RuntimeError, match="out of range"):
                m.run({"x": x, "axis": np.array(axis)})


def test_reshape_by_a_count_that_is_0():
    """What -1 goes with is as many as there are ones in another input."""
    nodes = [
        oh.make_node("NonZero", ["flags"], ["found"]),
        oh.make_node("Shape", ["found"], ["shape"]),
        oh.make_node("Gather", ["shape", "one"], ["count"]),
        oh.make_node("Concat", ["open", "count"], ["to"], axis=0),
        oh.make_node("Reshape", ["x", "to"], ["y"]),
    ]
    ports = [oh.make_tensor_value_info(n, 1, [s]) for n, s in (("flags", 4), ("x", 12))]
    weights = [nh.from_array(ints(1), "one"), nh.from_array(ints(-1), "open")]
    graph = oh.make_graph(nodes, "g", ports, [oh.make_empty_tensor_value_info("y")], weights)
    m = cuvil.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10), target="native")
    x = np.arange(12, dtype=np.float32)
    for count in (1, 2, 3, 4):
        flags = np.array([1] * count + [0] * (4 - count), np.float32)
        assert np.array_equal(m.run({"flags": flags, "x": x})["y"], x.reshape(-1, count))
    with pytest.raises(RuntimeError, match="the number of elements that -1 goes with is 0, expected at least 1"):
        m.run({"flags": np.zeros(4, np.float32), "x": x})


def test_expand_to_a_size_whose_differences_multiply_to_0():
    """2^48 times 2^48 - 2^16 is 0 in 64 bits."""
    x = np.zeros(2**16 + 1, np.uint8)
    m = compiled("Expand", {"x": x, "shape": ints(1)}, True)
    assert m.run({"x": x, "shape": ints(1)})["y"].shape == x.shape
    for size in (2, 2**16, 2**32 + 1, 2**48 + 1, HIGHEST):
        with pytest.raises(RuntimeError, match="a size of the new shape is neither 1 nor"):
            m.run({"x": x, "shape": ints(size)})


def test_split_to_sequence():
    """Parts from data are checked before anything is cut."""
    nodes = [
        oh.make_node("SplitToSequence", ["x", "split"], ["parts"]),
        oh.make_node("SequenceAt", ["parts", "last"], ["y"]),
    ]
    ports = [oh.make_tensor_value_info("x", 1, [4]), oh.make_tensor_value_info("split", 7, [2])]
    graph = oh.make_graph(
        nodes, "g", ports, [oh.make_empty_tensor_value_info("y")], [nh.from_array(np.array(1), "last")]
    )
    m = cuvil.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10), target="native")
    x = np.arange(4, dtype=np.float32)
    assert np.array_equal(m.run({"x": x, "split": ints(1, 3)})["y"], x[1:])
    for split in ((10**9, 0), (0, 10**9), (3, 2)):
        with pytest.raises(RuntimeError, match="must be equal"):
            m.run({"x": x, "split": ints(*split)})
