"""Weights of matrix products in narrower types."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_models import model, node, value

import cuvil

K = 300


def layer(transposed: bool, w: np.ndarray) -> onnx.ModelProto:
    """y = relu(x @ w + b) for x of M rows, which is read by columns where it is transposed."""
    b = np.linspace(-1, 1, w.shape[1], dtype=np.float32)
    nodes = [node("Gemm", ["x", "w", "b"], "z", transA=int(transposed)), node("Relu", ["z"], "y")]
    inputs = [value("x", [K, "M"] if transposed else ["M", K])]
    return model(nodes, inputs, [value("y", None)], [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])


def weights(columns: int = 83) -> np.ndarray:
    """Columns of very different sizes, one of zeros."""
    random = np.random.default_rng(1)
    w = random.normal(size=(K, columns)) * np.exp(random.uniform(-6, 2, columns))
    w[:, 5] = 0
    return w.astype(np.float32)


# How far each weight may be rounded: by half a unit in the last of 8 or 11 digits, by half a step.
ROUNDING = {
    "bf16-weights": lambda w: np.abs(w) * 2.0**-8,
    "f16-weights": lambda w: np.maximum(np.abs(w) * 2.0**-11, 2.0**-25),
    "int8-weights": lambda w: np.broadcast_to(np.abs(w).max(0) / 127 * 0.5001, w.shape),
}


@pytest.mark.parametrize("precision", ROUNDING)
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_outputs_are_as_far_off_as_weights_are_rounded(
    precision: str, transposed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    w, random = weights(), np.random.default_rng(2)
    source = layer(transposed, w)
    wide, narrow = cuvil.compile(source, target="native"), cuvil.compile(source, precision=precision)
    best = narrow.level
    path = tmp_path / "narrow.cuvil"
    narrow.save(path)
    for m in (0, 1, 2, 7, 150):
        x = random.normal(size=(m, K)).astype(np.float32)
        feeds = {"x": np.ascontiguousarray(x.T) if transposed else x}
        want = wide.run(feeds)["y"]
        rounding = np.abs(x).astype(np.float64) @ ROUNDING[precision](w.astype(np.float64))
        arithmetic = 1e-5 * (np.abs(x) @ np.abs(w) + 1)
        bits = set()
        for level, threads in (("v2", 1), ("v3", 1), ("v3", 2), ("v4", 1), ("v4", 2)):
            if level > best:
                continue
            monkeypatch.setenv("CUVIL_ISA", level)
            got = cuvil.runtime.load_module(path, threads=threads).run(feeds)["y"]
            assert got.shape == want.shape
            assert (np.abs(got.astype(np.float64) - want) <= rounding + arithmetic).all(), f"{m} rows on {level}"
            if level != "v2":
                bits.add(got.tobytes())
        assert len(bits) == (best != "v2"), f"{m} rows"


@pytest.mark.parametrize(
    ("precision", "bytes_of_weight"), [("bf16-weights", 2), ("f16-weights", 2), ("int8-weights", 1)]
)
@pytest.mark.parametrize("optimize_for", ["latency", "size"])
def test_the_file_is_smaller(precision: str, bytes_of_weight: int, optimize_for: str, tmp_path: Path):
    w, sizes, manifests = weights(192), [], []
    for p in ("f32", precision):
        module = cuvil.compile(layer(False, w), precision=p, optimize_for=optimize_for, levels=["v3"])
        module.save(tmp_path / "module.cuvil")
        sizes.append((tmp_path / "module.cuvil").stat().st_size)
        manifests.append(module.manifest)
    assert sizes[0] - sizes[1] > 0.95 * w.size * (4 - bytes_of_weight)
    assert manifests[0]["weights"]["precision"] == "f32"
    assert manifests[1]["weights"]["precision"] == precision
    assert manifests[1]["weights"]["bytes"] < 1.05 * w.size * bytes_of_weight
    assert [step["kernel"] for step in manifests[1]["steps"]] == [
        {"bf16-weights": "gemm_bf16", "f16-weights": "gemm_f16", "int8-weights": "gemm_i8"}[precision]
    ]


@pytest.mark.parametrize("precision", ROUNDING)
def test_a_table_of_rows_that_is_a_products_weights(precision: str):
    w = weights()
    nodes = [
        node("Gather", ["table", "ids"], "rows"),
        node("Transpose", ["table"], "w"),
        node("MatMul", ["x", "w"], "y"),
    ]
    inputs = [value("ids", ["N"], onnx.TensorProto.INT64), value("x", ["M", 83])]
    source = model(nodes, inputs, [value("rows", None), value("y", None)], [numpy_helper.from_array(w, "table")])
    narrow = cuvil.compile(source, target="native", precision=precision)
    assert "gather_packed" in [step["kernel"] for step in narrow.manifest["steps"]]
    ids, x = np.array([0, 299, -1, 5, 77]), np.random.default_rng(2).normal(size=(3, 83)).astype(np.float32)
    got = narrow.run({"ids": ids, "x": x})
    rounding = ROUNDING[precision](w.T.astype(np.float64)).T
    assert (np.abs(got["rows"] - w[ids]) <= rounding[ids]).all()
    assert (
        np.abs(got["y"] - x @ w.T.astype(np.float64)) <= np.abs(x) @ rounding.T + 1e-5 * (np.abs(x) @ np.abs(w.T) + 1)
    ).all()


def test_what_a_type_cannot_hold_is_refused():
    w = weights()
    w[3, 4] = 1e6
    with pytest.raises(cuvil.Unsupported, match='weight "w" holds 1000000, for which f16 has no number'):
        cuvil.compile(layer(False, w), precision="f16-weights")
    w[3, 4] = np.inf
    for precision in ROUNDING:
        with pytest.raises(cuvil.Unsupported, match='weight "w" holds inf'):
            cuvil.compile(layer(False, w), precision=precision)
    cuvil.compile(layer(False, w), levels=["v3"])
