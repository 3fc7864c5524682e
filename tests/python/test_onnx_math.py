"""Elementwise operators, normalisations, reductions and losses of ONNX against their definitions, written in NumPy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import model, node, value

import cuvil

F32, F64, I32, I64, U8, BOOL = (
    getattr(onnx.TensorProto, name) for name in ("FLOAT", "DOUBLE", "INT32", "INT64", "UINT8", "BOOL")
)
TYPES = {"float32": F32, "float64": F64, "int32": I32, "int64": I64, "uint8": U8, "bool": BOOL}

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(0, 2, (3, 6, 5)).astype(np.float32)
SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 1e6, -1e6, 3e38, np.inf, -np.inf, np.nan], np.float32)
SCALE, BIAS = (RANDOM.normal(1, 1, 6).astype(np.float32) for _ in range(2))
ROW_SCALE, ROW_BIAS = (RANDOM.normal(1, 1, 5).astype(np.float32) for _ in range(2))
LABELS = np.array([[0, 5, 2, 1, 3], [4, 4, 5, 0, 0], [1, 2, 3, 4, 5]], np.int64)
COUNTS = np.array([-7, -1, 0, 1, 3, 12], np.int32)


def run(
    op: str, arrays: list[np.ndarray | None], outputs: int, opset: int, attributes: dict[str, Any]
) -> list[np.ndarray]:
    """With all sizes open, but for those of 1: what broadcasts must be known."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    given = [(n, a) for n, a in zip(names, arrays, strict=True) if a is not None]
    sizes = {n: [1 if size == 1 else f"{n}_{k}" for k, size in enumerate(a.shape)] for n, a in given}
    inputs = [value(n, sizes[n], TYPES[a.dtype.name]) for n, a in given]
    results = [f"y{i}" for i in range(outputs)]
    module = cuvil.compile(
        model([node(op, names, results, **attributes)], inputs, results, opset=opset), target="native"
    )
    found = module.run(dict(given))
    return [found[r] for r in results]


def fixed(op: str, arrays: list[np.ndarray], opset: int, attributes: dict[str, Any]) -> np.ndarray:
    """With the sizes of the arrays."""
    inputs = [value(f"x{i}", a.shape, TYPES[a.dtype.name]) for i, a in enumerate(arrays)]
    names = [f"x{i}" for i in range(len(arrays))]
    module = cuvil.compile(model([node(op, names, "y", **attributes)], inputs, ["y"], opset=opset), target="native")
    return module.run(dict(zip(names, arrays, strict=True)))["y"]


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def normal(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def column(v: np.ndarray) -> np.ndarray:
    return v[:, None]


def log_sum_exp(x: np.ndarray, axis: int) -> np.ndarray:
    return np.log(np.exp(x.astype(np.float64)).sum(axis, keepdims=True))


Case = tuple[str, list[np.ndarray], int, dict[str, Any], Callable[[], np.ndarray]]
CASES: list[Case] = [
    ("Elu", [X], 17, {"alpha": 2.0}, lambda: np.where(X < 0, 2 * np.expm1(X.astype(np.float64)), X)),
    ("Celu", [X], 17, {"alpha": 2.0}, lambda: np.maximum(X, 0) + np.minimum(0, 2 * np.expm1(X.astype(np.float64) / 2))),
    ("Shrink", [X], 17, {"lambd": 1.5, "bias": 0.5}, lambda: np.select([X > 1.5, X < -1.5], [X - 0.5, X + 0.5])),
    ("ThresholdedRelu", [X], 17, {"alpha": 0.7}, lambda: np.where(np.greater(X, np.float32(0.7)), X, 0)),
    ("Gelu", [X], 20, {}, lambda: X * (1 + erf(X / math.sqrt(2))) / 2),
    ("Swish", [X], 24, {"alpha": 0.5}, lambda: X / (1 + np.exp(-0.5 * X.astype(np.float64)))),
    ("Pow", [X, COUNTS[:5].astype(np.int64)], 17, {}, lambda: X.astype(np.float64) ** COUNTS[:5]),
    ("Pow", [COUNTS, np.array([2.5], np.float64)], 17, {}, lambda: np.array([0, 0, 0, 1, 15, 498], np.int32)),
    ("Pow", [COUNTS, np.array([5], np.uint8)], 17, {}, lambda: COUNTS**5),
    ("Mod", [X, X[::-1]], 17, {"fmod": 1}, lambda: np.fmod(X, X[::-1])),
    ("Mod", [COUNTS, np.array([-3], np.int32)], 17, {}, lambda: np.mod(COUNTS, -3)),
    ("Mod", [COUNTS, np.array([-3], np.int32)], 17, {"fmod": 1}, lambda: np.fmod(COUNTS, -3)),
    ("BitShift", [COUNTS.astype(np.uint8), np.array([1], np.uint8)], 17, {"direction": "LEFT"},
     lambda: COUNTS.astype(np.uint8) << 1),
    ("BitwiseNot", [COUNTS], 18, {}, lambda: ~COUNTS),
    ("BitCast", [SPECIAL], 26, {"to": I32}, lambda: SPECIAL.view(np.int32)),
    ("IsInf", [SPECIAL], 17, {"detect_negative": 0}, lambda: np.isposinf(SPECIAL)),
    ("Sin", [SPECIAL], 17, {}, lambda: np.array([math.sin(v) if math.isfinite(v) else math.nan for v in SPECIAL])),
    ("ReduceMean", [COUNTS], 17, {}, lambda: np.array([1], np.int32)),
    ("ReduceL2", [COUNTS], 17, {"keepdims": 0}, lambda: np.array(math.isqrt(204), np.int32)),
    ("ReduceLogSumExp", [X * 100], 17, {"axes": [1]}, lambda: log_sum_exp(X * np.longdouble(100), 1)),
    ("Hardmax", [X], 17, {"axis": 1}, lambda: np.equal(X, X.max(1, keepdims=True)).astype(np.float32)),
    ("LayerNormalization", [X, ROW_SCALE, ROW_BIAS], 17, {}, lambda: normal(X, (2,)) * ROW_SCALE + ROW_BIAS),
    ("LayerNormalization", [X, column(SCALE), ROW_BIAS], 17, {"axis": 2},
     lambda: normal(X, (2,)) * column(SCALE) + ROW_BIAS),
    ("RMSNormalization", [X, ROW_SCALE], 23, {},
     lambda: X / np.sqrt((X.astype(np.float64) ** 2).mean(2, keepdims=True) + 1e-5) * ROW_SCALE),
    ("InstanceNormalization", [X, SCALE, BIAS], 17, {}, lambda: normal(X, (2,)) * column(SCALE) + column(BIAS)),
    ("MeanVarianceNormalization", [X], 17, {"axes": [0, 2]},
     lambda: (X - X.mean((0, 2), keepdims=True)) / X.std((0, 2), keepdims=True)),
    ("LpNormalization", [X], 17, {"axis": 1, "p": 1}, lambda: X / np.abs(X).sum(1, keepdims=True)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[f"{c[0]}_{i}" for i, c in enumerate(CASES)])
def test_definition(case: Case):
    op, arrays, opset, attributes, expected = case
    want = expected()
    for got in (run(op, arrays, 1, opset, attributes)[0], fixed(op, arrays, opset, attributes)):
        if want.dtype.kind == "f":
            assert got.dtype == arrays[0].dtype
            np.testing.assert_allclose(got, want.astype(np.float64), rtol=3e-6, atol=3e-6)
        else:
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


def test_operators_broadcast_one_side_before_opset_7():
    rows = np.abs(X[:, 0, 0]) + 1
    for op, f in (("Add", np.add), ("Div", np.divide), ("Pow", np.power)):
        x = np.abs(X)
        got = fixed(op, [x, rows], 6, {"broadcast": 1, "axis": 0})
        np.testing.assert_allclose(got, f(x, rows[:, None, None]), rtol=1e-6)
        np.testing.assert_allclose(fixed(op, [x, ROW_SCALE], 6, {"broadcast": 1}), f(x, ROW_SCALE), rtol=1e-6)
    got = fixed("Less", [X, SCALE], 6, {"broadcast": 1, "axis": 1})
    np.testing.assert_array_equal(got, column(SCALE) > X)
    matrix, weight = X[0], X[1].T
    want = matrix.astype(np.float64) @ weight + SCALE
    np.testing.assert_allclose(fixed("Gemm", [matrix, weight, SCALE], 6, {"broadcast": 1}), want, rtol=1e-5)


def test_normalization_by_place():
    """Before opset 9 batch normalisation may have parameters for each element of an image."""
    scale, bias, mean = (RANDOM.normal(0, 1, (6, 5)).astype(np.float32) for _ in range(3))
    variance = RANDOM.uniform(1, 2, (6, 5)).astype(np.float32)
    (got,) = run("BatchNormalization", [X, scale, bias, mean, variance], 1, 8, {"spatial": 0})
    np.testing.assert_allclose(got, (X - mean) / np.sqrt(variance + 1e-5) * scale + bias, rtol=1e-5, atol=1e-5)


def test_losses_of_open_numbers_of_classes():
    log_probabilities = X - np.log(np.exp(X).sum(1, keepdims=True))
    want = -np.take_along_axis(log_probabilities, LABELS[:, None], 1)[:, 0].mean()
    (got,) = run("SoftmaxCrossEntropyLoss", [X, LABELS], 1, 13, {})
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_inference_is_told_by_an_attribute_before_opset_7():
    got = fixed("PRelu", [X, SCALE], 6, {})
    np.testing.assert_allclose(got, np.where(X < 0, column(SCALE) * X, X), rtol=1e-6)
    mean, variance = (RANDOM.uniform(1, 2, 6).astype(np.float32) for _ in range(2))
    got = fixed("BatchNormalization", [X, SCALE, BIAS, mean, variance], 6, {"is_test": 1})
    want = (X - column(mean)) / np.sqrt(column(variance) + 1e-5) * column(SCALE) + column(BIAS)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(fixed("Dropout", [X], 6, {"is_test": 1}), X)
    with pytest.raises(cuvil.Unsupported, match="is_test is 0"):
        fixed("Dropout", [X], 6, {})


@pytest.mark.parametrize("n", [0, 1, 2, 5, 33])
def test_determinants(n: int):
    x = RANDOM.normal(0, 1, (4, n, n))
    x[1:2, :1] = 0  # no pivot
    x[2:3, :1, :1] = 0  # another pivot
    want = np.linalg.det(x)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 3e-5)):
        got = run("Det", [x.astype(dtype)], 1, 11, {})[0]
        assert got.dtype == dtype
        np.testing.assert_allclose(got, want, rtol=tolerance * 10, atol=tolerance * max(1, np.abs(want).max()))


def test_layer_normalization_also_gives_mean_and_deviation():
    y, mean, inverse = run("LayerNormalization", [X, ROW_SCALE, ROW_BIAS], 3, 17, {"axis": -1})
    np.testing.assert_allclose(y, normal(X, (2,)) * ROW_SCALE + ROW_BIAS, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(mean, X.mean(2, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(X.var(2, keepdims=True) + 1e-5), rtol=1e-5)


@pytest.mark.parametrize("opset", [18, 21])
def test_group_normalization_scales_groups_then_channels(opset: int):
    scale, bias = (SCALE[:2], BIAS[:2]) if opset == 18 else (SCALE, BIAS)
    arrays = [X, scale, bias]
    got = fixed("GroupNormalization", arrays, opset, {"num_groups": 2})
    of_channel = [np.repeat(v, 3) if opset == 18 else v for v in (scale, bias)]
    groups = normal(X.reshape(3, 2, 3, 5), (2, 3)).reshape(X.shape)
    np.testing.assert_allclose(got, groups * column(of_channel[0]) + column(of_channel[1]), rtol=1e-5, atol=1e-5)
    (by_open_sizes,) = run("GroupNormalization", arrays, 1, opset, {"num_groups": 2})
    np.testing.assert_allclose(by_open_sizes, got, rtol=1e-6, atol=1e-6)
    with pytest.raises((RuntimeError, ValueError), match="6 channels do not form 4 groups"):
        run("GroupNormalization", [X, *([SCALE[:4], BIAS[:4]] if opset == 18 else [SCALE, BIAS])], 1, opset,
            {"num_groups": 4})  # fmt: skip


def test_batch_normalization_in_training():
    mean, variance = (RANDOM.uniform(1, 2, 6).astype(np.float32) for _ in range(2))
    arrays = [X, SCALE, BIAS, mean, variance]
    y, new_mean, new_variance = run("BatchNormalization", arrays, 3, 15, {"training_mode": 1, "momentum": 0.75})
    np.testing.assert_allclose(y, normal(X, (0, 2)) * column(SCALE) + column(BIAS), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(new_mean, mean * 0.75 + X.mean((0, 2)) * 0.25, rtol=1e-5)
    np.testing.assert_allclose(new_variance, variance * 0.75 + X.var((0, 2)) * 0.25, rtol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses(reduction: str):
    weights = np.abs(SCALE)
    log_probability = X.astype(np.float64) - log_sum_exp(X, 1)
    picked = np.take_along_axis(log_probability, LABELS[:, None], 1)[:, 0]
    weight = np.where(LABELS == 4, 0, weights[LABELS])
    loss = -picked * weight
    want = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / weight.sum()}[reduction]
    attributes = {"reduction": reduction, "ignore_index": 4}
    got = fixed("SoftmaxCrossEntropyLoss", [X, LABELS, weights], 13, attributes)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    scores = log_probability.astype(np.float32)
    got = fixed("NegativeLogLikelihoodLoss", [scores, LABELS, weights], 13, attributes)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses_of_classes_that_do_not_exist(op: str):
    x = np.full((2, 3), -np.inf, np.float32)
    for target in (-1, -3, 3, 100):
        labels = np.array([1, target])
        with pytest.raises(RuntimeError, match="out of range"):
            run(op, [x, labels], 1, 13, {"ignore_index": 5})
        if op == "NegativeLogLikelihoodLoss":
            (loss,) = run(op, [x, labels], 1, 13, {"ignore_index": target, "reduction": "none"})
            assert np.array_equal(loss, [np.inf, 0])


def test_empty_reductions():
    empty = np.zeros((2, 0), np.float32)
    for op, want in (("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -np.inf), ("ReduceLogSumExp", -np.inf)):
        arrays = [empty, np.array([1], np.int64)] if op == "ReduceSum" else [empty]
        inputs = [value("x", ["A", "B"])]
        constants = [onnx.numpy_helper.from_array(arrays[1], "axes")] if op == "ReduceSum" else []
        attributes = {} if op == "ReduceSum" else {"axes": [1]}
        names = ["x", "axes"] if constants else ["x"]
        module = cuvil.compile(model([node(op, names, "y", **attributes)], inputs, ["y"], constants), target="native")
        np.testing.assert_array_equal(module.run({"x": empty})["y"], np.full((2, 1), want, np.float32))
