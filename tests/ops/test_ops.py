"""Each op of the table against its reference in NumPy, in float64, on every level that this CPU has.

The table says which shapes and dtypes an op is tried on. One module holds all cases of an op, so it is compiled once.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuvil
from cuvil import ir

DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "u64": np.uint64,
    "u32": np.uint32,
    "u16": np.uint16,
    "u8": np.uint8,
    "bool": np.bool_,
}
# Relative to an element, and to the largest of the result: what polynomials may differ by, and sums.
TOLERANCE = {"f32": 2e-6, "f64": 1e-12}

RECORDS = [record for record in ir.op_table() if record["reference"] and record["tests"]]


def truncated_division(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        with np.errstate(divide="ignore", invalid="ignore"):
            return a / b
    wide = [[int(x) for x in v.ravel()] for v in (a, b)]
    quotients = [
        0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(*wide, strict=True)
    ]
    bits = a.dtype.itemsize * 8
    wrapped = [q & ((1 << bits) - 1) for q in quotients]
    return np.array(wrapped, dtype=f"u{a.dtype.itemsize}").view(a.dtype).reshape(a.shape)


NAMES = {"np": np, "truncated_division": truncated_division, "erf": np.vectorize(math.erf, otypes=[np.float64])}


def cases_of(record: dict[str, Any]) -> list[tuple[str, list[tuple[int, ...]]]]:
    return [(dtype, shapes) for dtype in record["tests"]["dtypes"] for shapes in record["tests"]["shapes"]]


def operands(record: dict[str, Any], random: np.random.Generator, dtype: str, shapes: list[tuple[int, ...]]):
    low, high = record["tests"]["low"], record["tests"]["high"]
    values = []
    for shape in shapes:
        v = random.uniform(low, high, shape)
        if dtype[0] == "u":
            v = np.abs(v)
        values.append((v >= 1 if dtype == "bool" else v).astype(DTYPES[dtype]))
    return values


def program_of(record: dict[str, Any]) -> ir.Program:
    program = ir.Program(record["name"])
    f = program.function("main")
    for case, (dtype, shapes) in enumerate(cases_of(record)):
        names = record["operands"]
        inputs = [
            f.input(f"{names[min(i, len(names) - 1)]}{i}_{case}", f"{dtype}[{','.join(map(str, shape))}]")
            for i, shape in enumerate(shapes)
        ]
        f.output(f"y{case}", f.op(record["name"], inputs))
    return program


def reference(record: dict[str, Any], values: list[np.ndarray]) -> np.ndarray:
    exact = [v.astype(np.float64) if v.dtype.kind == "f" else v for v in values]
    with np.errstate(all="ignore"):
        return np.asarray(eval(record["reference"], NAMES | dict(zip(record["operands"], exact, strict=True))))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("record", RECORDS, ids=[record["name"] for record in RECORDS])
def test_op(record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module = cuvil.compile(program_of(record))
    module.save(tmp_path / "op.cuvil")
    best = module.level
    levels = [level for level in ("v2", "v3", "v4") if level <= best]

    random = np.random.default_rng(7)
    cases = cases_of(record)
    values = [operands(record, random, dtype, shapes) for dtype, shapes in cases]
    feeds = dict(zip([port.name for port in module.inputs], [v for case in values for v in case], strict=True))
    results = {}
    for level in levels:
        monkeypatch.setenv("CUVIL_ISA", level)
        loaded = cuvil.runtime.load_module(tmp_path / "op.cuvil", threads=1)
        assert loaded.level == level
        results[level] = loaded.run(feeds)

    for case, (dtype, shapes) in enumerate(cases):
        want = reference(record, values[case])
        for level in levels:
            got = results[level][f"y{case}"]
            where = f"{dtype} {shapes} on {level}"
            assert got.shape == want.shape, where
            if got.dtype.kind == "f":
                rtol = TOLERANCE[dtype]
                atol = rtol * np.max(np.abs(want), initial=1, where=np.isfinite(want))
                np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=where)
            else:
                assert got.dtype == (np.bool_ if want.dtype == np.bool_ else DTYPES[dtype]), where
                np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=where)
        fma = [results[level][f"y{case}"] for level in levels if level != "v2"]
        assert all(same_bits(fma[0], other) for other in fma[1:]), f"{dtype} {shapes}: levels differ in bits"


@pytest.mark.parametrize("record", RECORDS, ids=[record["name"] for record in RECORDS])
def test_symbolic_sizes_give_the_same_bits(record: dict[str, Any]):
    """One rank, all sizes open: the code for any shape answers as the code for one shape."""
    dtype = record["tests"]["dtypes"][0]
    shapes = max(record["tests"]["shapes"], key=lambda s: (len(s[0]), s))
    if any(shape != shapes[0] for shape in shapes) or not shapes[0]:
        pytest.skip("sizes of this op are tried in tests of its own")
    symbols = ",".join(f"S{i}" for i in range(len(shapes[0])))
    fixed, symbolic = ir.Program(), ir.Program()
    for program, sizes in ((fixed, ",".join(map(str, shapes[0]))), (symbolic, symbols)):
        f = program.function("main")
        f.output("y", f.op(record["name"], [f.input(f"x{i}", f"{dtype}[{sizes}]") for i in range(len(shapes))]))
    values = operands(record, np.random.default_rng(3), dtype, shapes)
    feeds = {f"x{i}": v for i, v in enumerate(values)}
    a, b = (cuvil.compile(program, target="native").run(feeds)["y"] for program in (fixed, symbolic))
    assert same_bits(a, b)
