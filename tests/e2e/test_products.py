"""Matrix products that read and write in place what transposes, slices and broadcasts would copy."""

import numpy as np
import pytest

import cuvil

CASES = {
    "transposed left side": (
        "(%a: f32[K,M], %b: f32[K,N])",
        "%1 = transpose %a {perm = [1,0]}\n %2 = matmul %1, %b\n return %2",
        lambda a, b: a.T @ b,
        {"a": (37, 29), "b": (37, 33)},
    ),
    "one transposed column": (
        "(%a: f32[K,M], %b: f32[K,N])",
        "%1 = transpose %a {perm = [1,0]}\n %2 = matmul %1, %b\n return %2",
        lambda a, b: a.T @ b,
        {"a": (37, 1), "b": (37, 20)},
    ),
    "transposed stack": (
        "(%a: f32[B,S,H,K], %b: f32[B,S,H,K])",
        "%1 = transpose %a {perm = [0,2,1,3]}\n %2 = transpose %b {perm = [0,2,3,1]}\n %3 = matmul %1, %2\n"
        "%4 = relu %3\n %5 = transpose %4 {perm = [1,0,2,3]}\n return %5",
        lambda a, b: np.maximum(np.einsum("bshk,bthk->hbst", a, b), 0),
        {"a": (2, 19, 3, 5), "b": (2, 19, 3, 5)},
    ),
    "result of a stack against one matrix": (
        "(%a: f32[S,B,K], %b: f32[N,K], %c: f32[S,B,N])",
        "%1 = transpose %a {perm = [1,0,2]}\n %2 = transpose %b {perm = [1,0]}\n %3 = matmul %1, %2\n"
        "%4 = transpose %3 {perm = [1,0,2]}\n %5 = add %4, %c\n return %5",
        lambda a, b, c: a @ b.T + c,
        {"a": (7, 3, 20), "b": (18, 20), "c": (7, 3, 18)},
    ),
    "parts of one tensor": (
        "(%x: f32[3,S,40])",
        "%1 = slice %x {starts = [2,0,3], sizes = [1,S,20], steps = [1,1,1]}\n"
        "%2 = slice %x {starts = [0,0,39], sizes = [1,S,20], steps = [1,1,-1]}\n"
        "%3 = transpose %2 {perm = [0,2,1]}\n %4 = matmul %1, %3\n return %4",
        lambda x: x[2:, :, 3:23] @ x[:1, :, 39:19:-1].transpose(0, 2, 1),
        {"x": (3, 21, 40)},
    ),
    "strides that are sums": (
        "(%a: f32[3,S,4], %b: f32[3,T,4])",
        "%1 = concat %a, %b {axis = 1}\n %2 = transpose %1 {perm = [0,2,1]}\n %3 = matmul %1, %2\n"
        "%4 = transpose %3 {perm = [1,0,2]}\n return %4",
        lambda a, b: np.einsum("ask,atk->sat", c := np.concatenate([a, b], 1), c),
        {"a": (3, 17, 4), "b": (3, 5, 4)},
    ),
    "repeated matrices": (
        "(%a: f32[B,2,3,M,K], %b: f32[2,K,N])",
        "%1 = reshape %b {shape = [2,1,K,N]}\n %2 = broadcast %1 {shape = [B,2,3,K,N]}\n %3 = matmul %a, %2\nreturn %3",
        lambda a, b: a @ b[:, None],
        {"a": (2, 2, 3, 15, 4), "b": (2, 4, 17)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_strides(case: str):
    inputs, body, want, shapes = CASES[case]
    random = np.random.default_rng(0)
    feeds = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    got = cuvil.compile(f"func @main{inputs} {{\n{body}\n}}".encode(), target="native").run(feeds)["output"]
    np.testing.assert_allclose(got, want(*(v.astype(np.float64) for v in feeds.values())), rtol=1e-5, atol=1e-5)
