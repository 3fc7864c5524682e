"""Reductions of rows, however short: the same order of operations, bit for bit."""

import functools

import numpy as np
import pytest

import cuvil

OPS = {"sum": (np.add, 0), "prod": (np.multiply, 1), "max": (np.maximum, -np.inf), "min": (np.minimum, np.inf)}


@functools.cache
def program(dtype: str, names: tuple) -> cuvil.runtime.Module:
    lines = [f"  %{name} = reduce_{name} %x {{axes = [1]}}" for name in names]
    results = ", ".join(f"%{name}" for name in names)
    text = f"func @main(%x: {dtype}[N,K]) {{\n" + "\n".join(lines) + f"\n  return {results}\n}}"
    return cuvil.compile(text.encode(), target="native")


def folded(op: np.ufunc, neutral: float, x: np.ndarray) -> np.ndarray:
    """Rows of up to 16 values as 16 lanes, of which the upper half joins the lower, again and again."""
    lanes = np.full((len(x), 16), neutral, x.dtype)
    lanes[:, : x.shape[1]] = op(lanes[:, : x.shape[1]], x)
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = op(lanes[:, :half], lanes[:, half:])
    return lanes


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 7, 8, 9, 16])
@pytest.mark.parametrize("rows", [1, 15, 16, 50])
def test_rows_of_floats(rows: int, size: int):
    x = np.random.default_rng(size).standard_normal((rows, size)).astype(np.float32)
    x[::3] *= -0.0
    if size:
        x[rows // 2, size // 2] = np.nan
    got = list(program("f32", (*OPS, "mean")).run({"x": x}).values())
    with np.errstate(invalid="ignore"):
        want = [folded(op, neutral, x) for op, neutral in OPS.values()]
        want.append(want[0] / np.float32(size))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [1, 3, 8, 9])
def test_rows_of_integers(size: int):
    x = np.random.default_rng(size).integers(-(2**31), 2**31, (37, size)).astype(np.int32)
    got = list(program("i32", ("sum", "prod", "max", "min")).run({"x": x}).values())
    for a, (op, _) in zip(got, OPS.values(), strict=True):
        np.testing.assert_array_equal(a, op.reduce(x, axis=1, keepdims=True, dtype=np.int32))
