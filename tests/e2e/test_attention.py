"""Attention as one kernel, against NumPy in float64: shapes, masks, and places in memory that it reads and writes."""

from itertools import product

import numpy as np
import pytest

import cuvil

# Heads are an axis of what the model has, so queries, keys, values and the result are strided.
TEXT = """
func @main(%q: f32[B,S,3,{d}], %k: f32[B,T,3,{d}], %v: f32[B,T,3,{w}]{more}) {{
  %1 = transpose %q {{perm = [0,2,1,3]}}
  %2 = transpose %k {{perm = [0,2,3,1]}}
  %3 = transpose %v {{perm = [0,2,1,3]}}
  {mask}
  %5 = attention %1, %2, %3, {name} {{scale = 0.3, nan_to_zero = {zero}}}
  %6 = transpose %5 {{perm = [0,2,1,3]}}
  return %6
}}
"""
MASKS = {
    "none": ("", "", "_"),
    "keys": (", %m: f32[B,1,1,T]", "%4 = broadcast %m {shape = [B,3,S,T]}", "%4"),
    "scores": (", %m: f32[B,3,S,T]", "", "%m"),
    "bools": (", %m: bool[S,T]", "%4 = broadcast %m {shape = [B,3,S,T]}", "%4"),
    "turned": (", %m: f32[T,S]", "%8 = transpose %m {perm = [1,0]}\n %4 = broadcast %8 {shape = [B,3,S,T]}", "%4"),
}


def attention(q, k, v, mask):
    """Heads are axis 2 of all."""
    scores = np.einsum("bshd,bthd->bhst", q, k) * np.float64(np.float32(0.3))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        return np.einsum("bhst,bthw->bshw", powers / powers.sum(-1, keepdims=True), v)


def mask_of(kind: str, batch: int, s: int, t: int, random: np.random.Generator):
    shape = {"keys": (batch, 1, 1, t), "scores": (batch, 3, s, t), "bools": (s, t), "turned": (t, s)}.get(kind)
    if shape is None:
        return None
    return random.uniform(size=shape) < 0.7 if kind == "bools" else random.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("kind", MASKS)
def test_any_sizes(kind: str, tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Compiled once for all lengths; the same bits on each level with fma, and for any number of threads."""
    more, mask_text, name = MASKS[kind]
    random = np.random.default_rng(1)
    d, w = (32, 32) if kind == "none" else (5, 17)
    module = cuvil.compile(TEXT.format(d=d, w=w, more=more, mask=mask_text, name=name, zero="false").encode())
    module.save(tmp_path / "attention.cuvil")
    for batch, s, t in [*product([1], [0, 1, 7, 70], [1, 7, 64, 130]), (2, 33, 1), (0, 3, 3)]:
        q, k, v = (
            random.normal(size=size).astype(np.float32)
            for size in ((batch, s, 3, d), (batch, t, 3, d), (batch, t, 3, w))
        )
        feeds = {"q": q, "k": k, "v": v}
        mask = mask_of(kind, batch, s, t, random)
        if mask is not None:
            feeds["m"] = mask
        want = attention(q, k, v, mask.T if kind == "turned" else mask)
        bits = set()
        for level, threads in (("v2", 1), ("v3", 1), ("v4", 1), ("v4", 2)):
            if level > module.level:
                continue
            monkeypatch.setenv("CUVIL_ISA", level)
            got = cuvil.runtime.load_module(tmp_path / "attention.cuvil", threads=threads).run(feeds)["output"]
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6, err_msg=f"{batch} {s} {t} on {level}")
            if level != "v2":
                bits.add(got.tobytes())
        assert len(bits) == (module.level != "v2")


def run(kind: str, zero: str = "false", **feeds: np.ndarray) -> np.ndarray:
    more, mask_text, name = MASKS[kind]
    text = TEXT.format(d=4, w=4, more=more, mask=mask_text, name=name, zero=zero)
    return cuvil.compile(text.encode(), target="native").run(feeds)["output"]


def ones(length: int) -> np.ndarray:
    return np.ones((1, length, 3, 4), np.float32)


def test_a_row_whose_mask_is_all_false_is_nan():
    mask = np.zeros((2, 100), bool)
    mask[1, 99] = True
    y = run("bools", q=ones(2), k=ones(100), v=ones(100), m=mask)
    assert np.isnan(y[:, 0]).all()
    np.testing.assert_array_equal(y[:, 1], ones(1)[:, 0])


def test_nan_may_count_as_zero():
    """Rows without keys, and those with a NaN, are sums of 0 * v."""
    mask = np.ones((3, 70), bool)
    mask[0] = False
    q, v = ones(3), ones(70)
    q[0, 1, 1, 0] = np.nan
    v[0, 3, 2, 1] = np.inf
    y = run("bools", "true", q=q, k=ones(70), v=v, m=mask)[0]
    assert (y[0, :2] == 0).all()
    assert (y[1, 0] == 1).all()
    assert (y[1, 1] == 0).all()
    assert np.isnan(y[0, 2]).tolist() == [False, True, False, False]
    assert y[2, 2].tolist() == [1, np.inf, 1, 1]


def test_blocks_of_keys_without_weight_do_not_matter():
    mask = np.full((1, 1, 1, 200), -np.inf, np.float32)
    mask[..., 150] = 0
    v = np.arange(200, dtype=np.float32)[None, :, None, None] * np.ones((1, 1, 3, 4), np.float32)
    np.testing.assert_array_equal(run("keys", q=ones(1), k=ones(200), v=v, m=mask), 150 * ones(1))


def test_nan_and_infinity_spread_as_softmax_has_it():
    q, k, v = ones(3), ones(70), ones(70)
    q[0, 0, 0, 0] = np.nan
    q[0, 1, 1, 0] = np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run("none", q=q, k=k, v=v), attention(q, k, v, None).astype(np.float32))
    v[0, 69, 2, 3] = np.nan
    assert np.isnan(run("none", q=ones(1), k=k, v=v)[0, 0]).tolist() == [[False] * 4, [False] * 4, [False] * 3 + [True]]


def test_large_scores():
    random = np.random.default_rng(2)
    q, k, v = (
        random.normal(size=(1, n, 3, 4)).astype(np.float32) * scale for n, scale in ((5, 300), (150, 1), (150, 1))
    )
    np.testing.assert_allclose(run("none", q=q, k=k, v=v), attention(q, k, v, None), rtol=1e-4, atol=1e-4)


def test_no_keys_give_zeros():
    assert (run("none", q=ones(2), k=ones(0), v=ones(0)) == 0).all()
