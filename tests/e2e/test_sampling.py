"""Operators that read images at places which data gives."""

import numpy as np
import pytest
from onnx import numpy_helper
from onnx_models import I64, model, node, value

import cuvil

RANDOM = np.random.default_rng(11)


def values(*shape: int) -> np.ndarray:
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def run(op, inputs, weights=None, opset=22, **attributes):
    """One node; a name that begins with _ is an input left out."""
    weights = weights or {}
    names = ["" if name.startswith("_") else name for name in [*inputs, *weights]]
    ports = [value(k, x.shape, I64 if x.dtype == np.int64 else 1) for k, x in inputs.items() if k in names]
    constants = [numpy_helper.from_array(w, k) for k, w in weights.items()]
    module = cuvil.compile(model([node(op, names, "y", **attributes)], ports, ["y"], constants, opset), target="native")
    return module.run({k: x for k, x in inputs.items() if k in names})["y"]


def test_a_grid_of_all_elements_gives_the_image():
    for spatial in ((5,), (4, 6), (3, 4, 5)):
        x = values(2, 3, *spatial)
        axes = [np.linspace(-1, 1, n, dtype=np.float32) for n in spatial]
        grid = np.stack(np.meshgrid(*axes, indexing="ij")[::-1], axis=-1)
        grid = np.broadcast_to(grid, (2, *grid.shape)).copy()
        for mode in ("linear", "nearest", "cubic"):
            got = run("GridSample", {"x": x, "grid": grid}, align_corners=1, mode=mode)
            np.testing.assert_allclose(got, x, atol=2e-6)


def test_grids_outside_of_the_image():
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
    grid = np.zeros((1, 1, 9, 2), np.float32)
    places = np.arange(-2.0, 7.0)
    grid[..., 0] = (places + 0.5) / 4 * 2 - 1
    wanted = {
        "zeros": [0, 0, 0, 1, 2, 3, 0, 0, 0],
        "border": [0, 0, 0, 1, 2, 3, 3, 3, 3],
        "reflection": [1, 0, 0, 1, 2, 3, 3, 2, 1],
    }
    for mode, want in wanted.items():
        np.testing.assert_allclose(run("GridSample", {"x": x, "g": grid}, padding_mode=mode)[0, 0, 0], want, atol=1e-6)
    grid[...] = np.nan
    run("GridSample", {"x": x, "g": grid})


def test_deformed_windows_that_are_not_deformed():
    x, w, bias = values(2, 6, 7, 8), values(4, 3, 3, 2), values(4)
    options = {"strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2], "group": 2}
    want = run("Conv", {"x": x}, {"w": w, "b": bias}, **options)
    offset, mask = np.zeros((2, 2 * 12, *want.shape[2:]), np.float32), np.ones((2, 12, *want.shape[2:]), np.float32)
    got = run("DeformConv", {"x": x, "w": w, "o": offset, "b": bias, "m": mask}, offset_group=2, **options)
    np.testing.assert_allclose(got, want, atol=1e-5)
    shifted = run("DeformConv", {"x": x, "w": w, "o": offset + 100, "b": bias, "m": mask}, offset_group=2, **options)
    np.testing.assert_array_equal(shifted, np.broadcast_to(bias.reshape(4, 1, 1), shifted.shape))


def test_regions():
    x = values(2, 3, 8, 8)
    rois, images = np.array([[0, 0, 8, 8], [2, 4, 6, 8]], np.float32), np.array([1, 0], np.int64)
    got = run("RoiAlign", {"x": x, "r": rois, "i": images}, output_height=4, output_width=4, sampling_ratio=2)
    want = x[1].reshape(3, 4, 2, 4, 2).mean((2, 4))
    np.testing.assert_allclose(got[0], want, atol=1e-6)
    assert got.shape == (2, 3, 4, 4)
    boxes = np.array([[1, 0, 0, 7, 7], [0, 2, 4, 5, 7]], np.float32)
    got = run("MaxRoiPool", {"x": x, "r": boxes}, pooled_shape=[2, 2])
    np.testing.assert_array_equal(got[0], x[1].reshape(3, 2, 4, 2, 4).max((2, 4)))
    np.testing.assert_array_equal(got[1], x[0, :, 4:, 2:6].reshape(3, 2, 2, 2, 2).max((2, 4)))
    with pytest.raises(RuntimeError, match="region 1 is of an image that does not exist; there are 2"):
        run("RoiAlign", {"x": x, "r": rois, "i": np.array([1, 2], np.int64)})


@pytest.mark.parametrize("is_known", [True, False])
def test_windows_added_up(is_known: bool):
    x, sizes = values(1, 2 * 6, 16), {"image": np.array([5, 5]), "block": np.array([2, 3])}
    got = run("Col2Im", {"x": x} | ({} if is_known else sizes), sizes if is_known else {}, pads=[0, 1, 0, 0])
    want = np.zeros((1, 2, 5, 6))
    for at, tap in np.ndindex(16, 6):
        want[0, :, at // 4 + tap // 3 : at // 4 + tap // 3 + 1, at % 4 + tap % 3] += x[0, tap::6, at].reshape(2, 1)
    np.testing.assert_allclose(got, want[..., 1:], atol=1e-6)
    if not is_known:
        for block, message in (([0, 3], "at least 1"), ([5, 1], "must be equal"), ([3, 2], "must be equal")):
            with pytest.raises(RuntimeError, match=message):
                run("Col2Im", {"x": x} | sizes | {"block": np.array(block)}, {}, pads=[0, 1, 0, 0])
