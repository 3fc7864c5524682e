"""Operators whose reads, writes or order depend on data, from ONNX to results, against NumPy."""

import itertools

import numpy as np
import pytest
from onnx import helper as oh
from onnx import numpy_helper as nh

import cuvil

RANDOM = np.random.default_rng(5)


def run(op: str, inputs: list, outputs: int = 1, opset: int = 21, open_sizes: bool = False, **attributes):
    """All inputs are fed, so nothing of them is known when compiling; `open_sizes`: not even their sizes."""
    names = [f"x{i}" if v is not None else "" for i, v in enumerate(inputs)]
    feeds = {n: np.asarray(v) for n, v in zip(names, inputs, strict=True) if n}
    shapes = {n: [f"{n}_{k}" for k in range(v.ndim)] if open_sizes else v.shape for n, v in feeds.items()}
    ports = [oh.make_tensor_value_info(n, oh.np_dtype_to_tensor_dtype(v.dtype), shapes[n]) for n, v in feeds.items()]
    results = [f"y{i}" for i in range(outputs)]
    graph = oh.make_graph(
        [oh.make_node(op, names, results, **attributes)],
        "g",
        ports,
        [oh.make_empty_tensor_value_info(r) for r in results],
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=10)
    y = cuvil.compile(model, target="native").run(feeds)
    values = [y[r] for r in results]
    return values[0] if outputs == 1 else values


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_and_scatter_elements(axis: int):
    x, indices = normal(4, 5, 6), RANDOM.integers(-4, 4, (3, 2, 3))
    cut = x[: 4 if axis == 0 else 3, : 5 if axis == 1 else 2, : 6 if axis == -1 else 3]
    want = np.take_along_axis(cut, np.where(indices < 0, indices + x.shape[axis], indices), axis)
    assert np.array_equal(run("GatherElements", [x, indices], axis=axis), want)

    updates = normal(3, 2, 3)
    combine = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    for reduction, f in combine.items():
        want = x.copy()
        for at in np.ndindex(indices.shape):
            to = list(at)
            to[axis] = indices[at]
            want[tuple(to)] = f(want[tuple(to)], updates[at])
        assert np.array_equal(run("ScatterElements", [x, indices, updates], axis=axis, reduction=reduction), want)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_nd(reduction: str):
    x, indices, updates = (
        RANDOM.integers(-9, 9, (5, 4, 3)),
        RANDOM.integers(-4, 4, (7, 2, 2)),
        RANDOM.integers(-9, 9, (7, 2, 3)),
    )
    f = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    want = x.copy()
    for at in np.ndindex(indices.shape[:-1]):
        to = tuple(indices[at])
        want[to] = f(want[to], updates[at])
    assert np.array_equal(run("ScatterND", [x, indices, updates], reduction=reduction), want)


def test_gather_nd():
    x, indices = normal(2, 3, 4, 5), RANDOM.integers(-2, 2, (2, 6, 2))
    assert np.array_equal(run("GatherND", [x, indices]), np.array([[x[tuple(i)] for i in row] for row in indices]))
    want = np.array([[x[b][tuple(i)] for i in indices[b]] for b in range(2)])
    assert np.array_equal(run("GatherND", [x, indices], batch_dims=1), want)


def test_wrong_indices_are_named():
    with pytest.raises(RuntimeError, match="index 5 is out of range for axis 1 of size 5"):
        run("GatherElements", [normal(4, 5), np.full((4, 1), 5)], axis=1)
    with pytest.raises(RuntimeError, match="index -6 is out of range for axis 1 of size 5"):
        run("ScatterND", [normal(4, 5), np.array([[0, 0], [1, -6]]), normal(2)])


def ranked(x: np.ndarray, axis: int, largest: bool) -> np.ndarray:
    """A NaN is greater than all numbers; equal ones by position."""
    key = np.where(np.isnan(x), np.inf, x)
    return np.argsort(-key if largest else key, axis=axis, kind="stable")


@pytest.mark.parametrize(("largest", "axis"), list(itertools.product([True, False], [0, 1, -1])))
def test_top_k(largest: bool, axis: int):
    x = np.round(normal(4, 6, 5) * 2)
    x[0, 2, 3] = np.nan
    for k in (0, 1, 3, x.shape[axis]):
        values, positions = run("TopK", [x, np.array([k])], 2, axis=axis, largest=int(largest))
        want = np.take(ranked(x, axis, largest), np.arange(k), axis)
        assert np.array_equal(positions, want)
        assert np.array_equal(values, np.take_along_axis(x, want, axis), equal_nan=True)


def test_more_than_there_is():
    with pytest.raises((RuntimeError, ValueError), match="the size of the axis, less k,"):
        run("TopK", [normal(3), np.array([4])], 2)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_arg_extremes(op: str):
    x = RANDOM.integers(-3, 3, (4, 6, 5)).astype(np.float32)
    f = np.argmax if op == "ArgMax" else np.argmin
    for axis in (0, 1, -1):
        assert np.array_equal(run(op, [x], axis=axis), f(x, axis=axis, keepdims=True))
        last = x.shape[axis] - 1 - f(np.flip(x, axis), axis=axis)
        assert np.array_equal(run(op, [x], axis=axis, keepdims=0, select_last_index=1, open_sizes=True), last)
    x[1, 2, 3] = np.nan
    assert run(op, [x.ravel()], keepdims=0) == np.flatnonzero(np.isnan(x))[0]


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_cumulative(axis: int):
    x = RANDOM.integers(-3, 4, (3, 20, 5)).astype(np.float64)
    for exclusive, reverse in itertools.product([0, 1], [0, 1]):
        for op, f, neutral in (("CumSum", np.cumsum, 0), ("CumProd", np.cumprod, 1)):
            y = np.flip(x, axis) if reverse else x
            want = f(y, axis=axis)
            if exclusive:
                want = np.concatenate([np.full_like(np.take(y, [0], axis), neutral), np.delete(want, -1, axis)], axis)
            want = np.flip(want, axis) if reverse else want
            got = run(op, [x, np.array(axis)], opset=26, exclusive=exclusive, reverse=reverse)
            assert np.array_equal(got, want), (op, exclusive, reverse)


@pytest.mark.parametrize("is_sorted", [0, 1])
def test_unique(is_sorted: int):
    for x, axis in (
        (RANDOM.integers(0, 6, 40), None),
        (RANDOM.integers(0, 2, (9, 3)), 0),
        (RANDOM.integers(0, 2, (2, 9, 2)), 1),
    ):
        want, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.ravel()
        if not is_sorted:
            order = np.argsort(first)
            rank = np.argsort(order)
            want, first, inverse, counts = np.take(want, order, axis or 0), first[order], rank[inverse], counts[order]
        attributes = {} if axis is None else {"axis": axis}
        got = run("Unique", [x], 4, sorted=is_sorted, **attributes)
        for a, b in zip(got, (want, first, inverse, counts), strict=True):
            assert np.array_equal(a, b)


def test_choices_of_bools():
    x, keep = normal(3, 4), np.array([False, True, True])
    assert np.array_equal(run("Compress", [x, keep], axis=0), np.compress(keep, x, 0))
    assert np.array_equal(run("Compress", [x, keep]), np.compress(keep, x))
    assert np.array_equal(run("NonZero", [x > 0], open_sizes=True), np.nonzero(x > 0))


def test_one_hot_and_triangles():
    indices, values = np.array([[0, -1], [7, 2]]), np.array([3.0, 5.0], np.float32)
    want = np.full((2, 3, 2), 3, np.float32)
    want[0, 0, 0] = want[0, 2, 1] = want[1, 2, 1] = 5
    assert np.array_equal(run("OneHot", [indices, np.array(3), values], axis=1), want)
    x = normal(2, 4, 5)
    for k, upper in itertools.product((-6, -1, 0, 2, 7), (0, 1)):
        want = np.triu(x, k) if upper else np.tril(x, k)
        assert np.array_equal(run("Trilu", [x, np.array(k)], upper=upper, open_sizes=True), want)
    assert np.array_equal(run("EyeLike", [x[0]], k=1), np.eye(4, 5, 1, np.float32))


def suppressed(boxes: np.ndarray, scores: np.ndarray, most: int, iou: float, least: float) -> list:
    picked = []
    for b, c in np.ndindex(scores.shape[:2]):
        kept: list = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            if len(kept) == most or not scores[b, c, i] > least:
                break
            for j in kept:
                p, q = boxes[b, i], boxes[b, j]
                h, w = np.minimum(p[2:], q[2:]) - np.maximum(p[:2], q[:2])
                common = max(h, 0) * max(w, 0)
                if common / (np.prod(p[2:] - p[:2]) + np.prod(q[2:] - q[:2]) - common) > iou:
                    break
            else:
                kept.append(i)
        picked += [[b, c, i] for i in kept]
    return picked


def test_non_max_suppression():
    corners = RANDOM.uniform(0, 8, (2, 30, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + RANDOM.uniform(1, 4, (2, 30, 2)).astype(np.float32)], -1)
    scores = RANDOM.uniform(0, 1, (2, 3, 30)).astype(np.float32)
    for most, iou, least in ((30, 0.3, 0.2), (3, 0.5, 0.0), (0, 0.5, 0.0)):
        limits = [np.array(most), np.float32(iou), np.float32(least)]
        want = np.array(suppressed(boxes, scores, most, iou, least)).reshape(-1, 3)
        assert np.array_equal(run("NonMaxSuppression", [boxes, scores, *limits]), want)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ii->i", [(4, 4)]),
        ("iji,j", [(3, 4, 3), (4,)]),
        ("...ij,...jk", [(2, 1, 3, 4), (5, 4, 2)]),
        ("i,j,k->kj", [(2,), (3,), (4,)]),
        ("ij -> ", [(3, 4)]),
        ("ba", [(2, 3)]),
        ("bij,bj->b", [(2, 3, 4), (2, 4)]),
    ],
)
def test_einsum(equation: str, shapes: list):
    x = [RANDOM.integers(-4, 5, s).astype(np.float64) for s in shapes]
    assert np.array_equal(run("Einsum", x, equation=equation), np.einsum(equation, *x))


def test_blocks_move():
    x = normal(2, 12, 3, 2)
    for mode, order in (("DCR", (0, 3, 4, 1, 5, 2)), ("CRD", (0, 1, 4, 2, 5, 3))):
        split = (2, 2, 2, 3, 3, 2) if mode == "DCR" else (2, 3, 2, 2, 3, 2)
        want = x.reshape(split).transpose(order).reshape(2, 3, 6, 4)
        assert np.array_equal(run("DepthToSpace", [x], blocksize=2, mode=mode), want)
    y = normal(2, 3, 4, 6)
    want = y.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3)
    assert np.array_equal(run("SpaceToDepth", [y], blocksize=2), want)
    want = y.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3)
    assert np.array_equal(run("SpaceToDepth", [y], opset=28, blocksize=2, mode="CRD"), want)


def test_reverse_sequence():
    x, lengths = normal(3, 5, 2), np.array([5, 0, 3])
    want = x.copy()
    for b, n in enumerate(lengths):
        want[b, :n] = x[b, :n][::-1]
    assert np.array_equal(run("ReverseSequence", [x, lengths], batch_axis=0, time_axis=1), want)
    turned = np.swapaxes(x, 0, 1)
    assert np.array_equal(run("ReverseSequence", [turned, lengths]), np.swapaxes(want, 0, 1))


def test_center_crop_pad():
    x = normal(5, 4, 3)
    want = np.pad(x[1:4], ((0, 0), (1, 2), (0, 0)))
    assert np.array_equal(run("CenterCropPad", [x, np.array([3, 7, 3])]), want)


def test_tensor_scatter():
    cache, update, at = normal(2, 3, 6, 4), normal(2, 3, 2, 4), np.array([4, 1])
    want = cache.copy()
    for b in range(2):
        want[b, :, at[b] : at[b] + 2] = update[b]
    assert np.array_equal(run("TensorScatter", [cache, update, at], opset=24), want)
    want = cache.copy()
    for b, k in np.ndindex(2, 2):
        want[b, :, (at[b] + 1 + k) % 6] = update[b, :, k]
    assert np.array_equal(run("TensorScatter", [cache, update, at + 1], opset=24, mode="circular"), want)


def test_half_known_shapes_stay_known():
    """What a shape is made of is read by itself: 4 is known when compiling, the rest is not."""
    nodes = [
        oh.make_node("Concat", ["n", "four"], ["shape"], axis=0),
        oh.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    x, n = oh.make_tensor_value_info("x", 1, ["N"]), oh.make_tensor_value_info("n", 7, [1])
    graph = oh.make_graph(
        nodes, "g", [x, n], [oh.make_empty_tensor_value_info("y")], [nh.from_array(np.array([4]), "four")]
    )
    module = cuvil.compile(
        oh.make_model(graph, opset_imports=[oh.make_opsetid("", 21)], ir_version=10), target="native"
    )
    assert module.outputs[0].shape[1] == 4
    data = np.arange(12, dtype=np.float32)
    for value in (3, -1):
        assert np.array_equal(module.run({"x": data, "n": np.array([value])})["y"], data.reshape(3, 4))
