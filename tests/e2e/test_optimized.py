"""What the passes make of a program computes what the program says: each with them and without them."""

import numpy as np
import pytest

import cuvil

REWRITING = ["CanonicalizePass", "FuseOperatorsPass", "CleanupPass"]


def elements(shape: tuple, seed: int, low: float = -1, high: float = 1) -> str:
    values = np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)
    return "[" + ", ".join(repr(float(v)) for v in values.ravel()) + "]"


# Keys by a transpose of axes that no kernel swaps itself, values by another one.
ATTENTION = """
func @main(%q: f32[B,S,3,8], %k: f32[B,T,3,8], %v: f32[B,T,3,8]) {
  %1 = transpose %q {perm = [0,2,1,3]} : f32[B,3,S,8]
  %2 = transpose %k {perm = [0,2,3,1]} : f32[B,3,8,T]
  %3 = transpose %v {perm = [0,2,1,3]} : f32[B,3,T,8]
  %root = constant 2.8284271 : f32[]
  %4 = broadcast %root {shape = [B,3,8,T]}
  %5 = div %2, %4
  %6 = matmul %1, %5
  %7 = softmax %6
  %8 = matmul %7, %3
  %9 = transpose %8 {perm = [0,2,1,3]}
  %10 = reshape %9 {shape = [B,S,24]}
  return %10
}
"""

CHANNELS_LAST = f"""
func @main(%x: f32[N,2,H,W]) {{
  %w = constant {elements((3, 2, 3, 3), 1)} : f32[3,2,3,3]
  %v = constant {elements((2, 3, 1, 1), 2)} : f32[2,3,1,1]
  %b = constant {elements((3,), 3)} : f32[3]
  %m = constant {elements((3,), 4, 0.5, 2)} : f32[3]
  %1 = conv2d %x, %w {{pads = [1,1,1,1]}}
  %2 = transpose %1 {{perm = [0,2,3,1]}} : f32[N,H,W,3]
  %3 = broadcast %b {{shape = [N,H,W,3]}}
  %4 = sub %2, %3
  %5 = broadcast %m {{shape = [N,H,W,3]}}
  %6 = div %4, %5
  %7 = relu %6
  %8 = transpose %7 {{perm = [0,3,1,2]}} : f32[N,3,H,W]
  %9 = conv2d %8, %v
  %10 = transpose %9 {{perm = [0,2,3,1]}} : f32[N,H,W,2]
  %11 = transpose %x {{perm = [0,2,3,1]}} : f32[N,H,W,2]
  %12 = add %10, %11
  %13 = pad %12 {{low = [0,1,0,0], high = [0,0,2,0]}}
  return %13
}}
"""

ONE_AXIS = f"""
func @main(%x: f32[N,2,1,L]) {{
  %w = constant {elements((3, 2, 1, 3), 1)} : f32[3,2,1,3]
  %b = constant {elements((3, 1), 3)} : f32[3,1]
  %1 = conv2d %x, %w {{pads = [0,1,0,1]}}
  %2 = reshape %1 {{shape = [N,3,L]}}
  %3 = broadcast %b {{shape = [N,3,L]}}
  %4 = mul %2, %3
  %5 = relu %4
  return %5
}}
"""

PRODUCT = f"""
func @main(%x: f32[N,S,4]) {{
  %w = constant {elements((4, 3), 1)} : f32[4,3]
  %b = constant {elements((3,), 2)} : f32[3]
  %m = constant {elements((3,), 3, 0.5, 2)} : f32[3]
  %1 = reshape %x {{shape = [N*S,4]}}
  %2 = matmul %1, %w
  %3 = broadcast %b {{shape = [N*S,3]}}
  %4 = add %2, %3
  %5 = batch_norm %4, %m, %b, %b, %m
  %6 = reshape %5 {{shape = [N,S,3]}}
  %7 = tanh %6
  return %7
}}
"""


WRITTEN_OUT = """
func @main(%x: f32[N,7], %g: f32[7], %b: f32[7]) {
  %ceps = constant 1e-5 : f32[]
  %eps = broadcast %ceps {shape = [N,1]}
  %ctwo = constant 2 : f32[]
  %two = broadcast %ctwo {shape = [N,7]}
  %mean = reduce_mean %x {axes = [1]}
  %m = broadcast %mean {shape = [N,7]}
  %c = sub %x, %m
  %q = pow %c, %two
  %v = reduce_mean %q {axes = [1]}
  %e = add %v, %eps
  %s = sqrt %e
  %d = broadcast %s {shape = [N,7]}
  %r = div %c, %d
  %bg = broadcast %g {shape = [N,7]}
  %scaled = mul %r, %bg
  %bb = broadcast %b {shape = [N,7]}
  %n = add %scaled, %bb
  %croot = constant 1.4142135 : f32[]
  %root = broadcast %croot {shape = [N,7]}
  %cone = constant 1 : f32[]
  %one = broadcast %cone {shape = [N,7]}
  %chalf = constant 0.5 : f32[]
  %half = broadcast %chalf {shape = [N,7]}
  %1 = div %n, %root
  %2 = erf %1
  %3 = add %2, %one
  %4 = mul %n, %3
  %5 = mul %4, %half
  %6 = sigmoid %5
  %7 = mul %5, %6
  return %7
}
"""


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (ATTENTION, {"q": (2, 5, 3, 8), "k": (2, 7, 3, 8), "v": (2, 7, 3, 8)}),
        (ATTENTION, {"q": (1, 1, 3, 8), "k": (1, 40, 3, 8), "v": (1, 40, 3, 8)}),
        (ATTENTION, {"q": (0, 5, 3, 8), "k": (0, 7, 3, 8), "v": (0, 7, 3, 8)}),
        (CHANNELS_LAST, {"x": (2, 2, 6, 5)}),
        (ONE_AXIS, {"x": (2, 2, 1, 19)}),
        (PRODUCT, {"x": (3, 5, 4)}),
        (WRITTEN_OUT, {"x": (5, 7), "g": (7,), "b": (7,)}),
    ],
)
def test_with_passes_as_without(text: str, shapes: dict):
    random = np.random.default_rng(0)
    feeds = {name: random.uniform(-2, 2, shape).astype(np.float32) for name, shape in shapes.items()}
    with_passes = cuvil.compile(text.encode(), target="native").run(feeds)["output"]
    without = cuvil.compile(text.encode(), target="native", disabled_passes=REWRITING).run(feeds)["output"]
    assert with_passes.shape == without.shape
    np.testing.assert_allclose(with_passes, without, rtol=2e-5, atol=2e-6)
