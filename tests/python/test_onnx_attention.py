"""Attention, rotary embeddings, and what keeps a state from step to step, against the definitions of ONNX."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model, node, value

import cuvil

TYPES = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE, "bool": onnx.TensorProto.BOOL}
TYPES["int64"] = onnx.TensorProto.INT64
RANDOM = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def run(
    op: str,
    arrays: list[np.ndarray | None],
    outputs: int,
    opset: int,
    open_axes: dict[int, dict[int, str]] | None = None,
    domain: str = "",
    **attributes: Any,
) -> list[np.ndarray]:
    """`open_axes` names sizes that are open, by input and axis."""
    feeds, inputs, names = {}, [], []
    for i, array in enumerate(arrays):
        names.append("" if array is None else f"x{i}")
        if array is None:
            continue
        shape: list[int | str] = list(array.shape)
        for axis, symbol in (open_axes or {}).get(i, {}).items():
            shape[axis] = symbol
        feeds[f"x{i}"] = array
        inputs.append(value(f"x{i}", shape, TYPES[array.dtype.name]))
    results = [f"y{i}" for i in range(outputs)]
    made = model([node(op, names, results, domain=domain, **attributes)], inputs, results, opset=opset)
    if domain:
        made.opset_import.append(helper.make_opsetid(domain, 1))
    found = cuvil.compile(made, target="native").run(feeds)
    return [found[r] for r in results]


def attention(q, k, v, bias=0.0, scale: float | None = None, cap: float = 0):
    """[B,H,S,D]; heads of keys are shared by neighbours. Rows without keys are 0."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    scores = (np.tanh(scores / cap) * cap if cap else scores) + bias
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(top), 0, top))
    return powers / np.maximum(powers.sum(-1, keepdims=True), 1e-300) @ v


def heads(x: np.ndarray, count: int) -> np.ndarray:
    return x.reshape(*x.shape[:2], count, -1).swapaxes(1, 2)


def bias_of(keep: np.ndarray) -> np.ndarray:
    return np.where(keep, 0, -np.inf)


Q, K, V = normal(2, 4, 5, 8), normal(2, 2, 7, 8), normal(2, 2, 7, 6)
OPEN = {0: {0: "B", 2: "S"}, 1: {0: "B", 2: "T"}, 2: {0: "B", 2: "T"}}


@pytest.mark.parametrize("open_axes", [None, OPEN], ids=["fixed", "open"])
def test_grouped_heads(open_axes):
    (y,) = run("Attention", [Q, K, V], 1, 23, open_axes)
    np.testing.assert_allclose(y, attention(Q, K, V), rtol=1e-5, atol=1e-6)


def test_flat_heads_and_a_past():
    q, k, v, past_k, past_v = (
        normal(2, 3, 24),
        normal(2, 3, 24),
        normal(2, 3, 12),
        normal(2, 3, 4, 8),
        normal(2, 3, 4, 4),
    )
    flat = {"q_num_heads": 3, "kv_num_heads": 3}
    y, all_k, all_v = run("Attention", [q, k, v, None, past_k, past_v], 3, 23, is_causal=1, **flat)
    want_k = np.concatenate([past_k, heads(k, 3)], 2)
    want_v = np.concatenate([past_v, heads(v, 3)], 2)
    np.testing.assert_array_equal(all_k, want_k)
    np.testing.assert_array_equal(all_v, want_v)
    keep = np.arange(7) <= np.arange(3)[:, None] + 4
    want = attention(heads(q, 3), want_k, want_v, bias_of(keep)).swapaxes(1, 2).reshape(2, 3, 12)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["bool", "float", "short"])
def test_masks(kind: str):
    """A row that no key takes part in is 0, and keys behind a short mask take none."""
    mask = RANDOM.uniform(size=(4, 5, 5 if kind == "short" else 7)) < 0.6
    mask[1, 2] = False
    bias = bias_of(np.pad(mask, ((0, 0), (0, 0), (0, 7 - mask.shape[-1]))))
    given = normal(4, 5, 7) + bias.astype(np.float32) if kind == "float" else mask
    (y,) = run("Attention", [Q, K, V, given], 1, 23, OPEN if kind == "bool" else None)
    want = attention(Q, K, V, given if kind == "float" else bias)
    assert (y[:, 1, 2] == 0).all()
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


def test_windows_over_a_cache_outside():
    lengths = np.array([7, 4], np.int64)
    attributes = {"left_window_size": 2, "right_window_size": 1}
    (y,) = run("Attention", [Q, K, V, None, None, None, lengths], 1, 25, **attributes)
    key, query = np.arange(7), (np.arange(5)[:, None] + (lengths - 5)[:, None, None])[:, None]
    keep = (key < lengths[:, None, None, None]) & (key >= query - 2) & (key <= query + 1)
    np.testing.assert_allclose(y, attention(Q, K, V, bias_of(keep)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", range(4))
def test_scores_and_probabilities(mode: int):
    mask = normal(5, 7)
    y, *_, scores = run(
        "Attention", [Q, K, V, mask], 4, 23, softcap=2.0, scale=0.5, qk_matmul_output_mode=mode, softmax_precision=11
    )
    raw = Q.astype(np.float64) @ np.repeat(K, 2, 1).swapaxes(-1, -2) * 0.5
    capped = np.tanh(raw / 2) * 2
    powers = np.exp(capped + mask)
    want = [raw, capped, capped + mask, powers / powers.sum(-1, keepdims=True)][mode]
    np.testing.assert_allclose(scores, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y, attention(Q, K, V, mask, 0.5, 2), rtol=1e-5, atol=1e-6)


def test_flex_attention_changes_scores_and_probabilities():
    double = helper.make_graph(
        [node("Add", ["s", "s"], "t")], "double", [value("s", [2, 4, 5, 7])], [value("t", [2, 4, 5, 7])]
    )
    half = helper.make_graph(
        [node("Constant", [], "h", value_float=0.5), node("Mul", ["p", "h"], "r")],
        "half",
        [value("p", [2, 4, 5, 7])],
        [value("r", [2, 4, 5, 7])],
    )
    (y,) = run("FlexAttention", [Q, K, V], 1, 26, domain="ai.onnx.preview", score_mod=double, prob_mod=half)
    np.testing.assert_allclose(y, attention(Q, K, V, scale=2 / np.sqrt(8)) / 2, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("size", [0, 4])
def test_rotary_embedding(interleaved: int, size: int):
    x, places = normal(2, 3, 5, 8), RANDOM.integers(0, 10, (2, 5))
    turned = size or 8
    angles = normal(10, turned // 2)
    cosine, sine = np.cos(angles), np.sin(angles)
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": size}
    want = x.astype(np.float64)
    first = (
        (slice(0, turned, 2), slice(1, turned, 2))
        if interleaved
        else (slice(0, turned // 2), slice(turned // 2, turned))
    )
    a, b = (want[..., part].copy() for part in first)
    c, s = (table[places][:, None] for table in (cosine, sine))
    want[..., first[0]], want[..., first[1]] = a * c - b * s, a * s + b * c
    (y,) = run("RotaryEmbedding", [x, cosine, sine, places], 1, 23, {0: {2: "S"}, 3: {1: "S"}}, **attributes)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)
    flat = x.swapaxes(1, 2).reshape(2, 5, 24)
    (y,) = run("RotaryEmbedding", [flat, cosine[places], sine[places]], 1, 23, num_heads=3, **attributes)
    np.testing.assert_allclose(y, want.swapaxes(1, 2).reshape(2, 5, 24), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("steps", [0, 1, 6])
def test_linear_attention(rule: str, steps: int):
    q, k, v = normal(2, steps, 4 * 3), normal(2, steps, 2 * 3), normal(2, steps, 2 * 5)
    state, decay, beta = normal(2, 2, 3, 5), -np.abs(normal(2, steps, 2 * 3)), np.abs(normal(2, steps, 2))
    y, last = run(
        "LinearAttention",
        [q, k, v, state, decay if "gated" in rule else None, beta if "delta" in rule else None],
        2,
        27,
        {i: {1: "T"} for i in (0, 1, 2, 4, 5)},
        q_num_heads=4,
        kv_num_heads=2,
        update_rule=rule,
    )
    s, results = state.astype(np.float64), []
    for t in range(steps):
        now = [x[:, t].reshape(2, -1, size) for x, size in ((q, 3), (k, 3), (v, 5), (decay, 3))]
        if "gated" in rule:
            s = s * np.exp(now[3])[..., None]
        new = now[2]
        if "delta" in rule:
            new = beta[:, t, :, None] * (new - np.einsum("bhk,bhkv->bhv", now[1], s))
        s = s + now[1][..., None] * new[:, :, None]
        results.append(np.einsum("bhk,bhkv->bhv", now[0], np.repeat(s, 2, 1)) / np.sqrt(3))
    want = np.stack(results, 1).reshape(2, steps, 20) if steps else np.zeros((2, 0, 20))
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last, s, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [1, 9])
@pytest.mark.parametrize("has_past", [False, True])
def test_causal_convolution(length: int, has_past: bool):
    x, w, b, past = normal(2, 6, length), normal(6, 1, 4), normal(6), normal(2, 6, 3)
    y, state = run(
        "CausalConvWithState", [x, w, b, past if has_past else None], 2, 27, {0: {2: "L"}}, activation="silu"
    )
    whole = np.concatenate([past if has_past else np.zeros_like(past), x], 2).astype(np.float64)
    z = sum(whole[:, :, i : i + length] * w[:, 0, i, None] for i in range(4)) + b[:, None]
    np.testing.assert_allclose(y, z / (1 + np.exp(-z)), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(state, whole[:, :, length:].astype(np.float32))


def test_heads_that_cannot_be_shared():
    with pytest.raises(cuvil.Unsupported, match="3 heads of queries cannot share 2 heads of keys"):
        run("Attention", [normal(1, 3, 4, 8), normal(1, 2, 4, 8), normal(1, 2, 4, 8)], 1, 23)
