"""Fourier transforms, windows, mel filters and affine grids, against NumPy."""

import numpy as np
import pytest
from onnx import helper as oh

import cuvil

RANDOM = np.random.default_rng(3)


def run(op: str, inputs: list, opset: int = 20, **attributes):
    """All inputs are fed, so no size is known when compiling."""
    names = [f"x{i}" if v is not None else "" for i, v in enumerate(inputs)]
    feeds = {n: np.asarray(v) for n, v in zip(names, inputs, strict=True) if n}
    ports = [oh.make_tensor_value_info(n, oh.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()]
    graph = oh.make_graph(
        [oh.make_node(op, names, ["y"], **attributes)], "g", ports, [oh.make_empty_tensor_value_info("y")]
    )
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", opset)], ir_version=9)
    return cuvil.compile(model, target="native").run(feeds)["y"]


def as_complex(x: np.ndarray) -> np.ndarray:
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0].astype(complex)


def as_parts(x: np.ndarray) -> np.ndarray:
    return np.stack([x.real, x.imag], -1)


@pytest.mark.parametrize("n", [1, 2, 9, 16])
def test_dft(n: int):
    for parts in (1, 2):
        x = RANDOM.normal(size=(2, n, 3, parts))
        for inverse in (0, 1):
            want = (np.fft.ifft if inverse else np.fft.fft)(as_complex(x), axis=1)
            np.testing.assert_allclose(run("DFT", [x], 17, inverse=inverse), as_parts(want), atol=1e-12)
    x = RANDOM.normal(size=(2, n, 3, 1))
    for length in (n, n + 3, max(1, n - 2)):
        want = np.fft.rfft(x[..., 0], length, axis=1)
        np.testing.assert_allclose(run("DFT", [x, np.array(length)], 17, onesided=1), as_parts(want), atol=1e-12)
        spectrum = as_parts(want)
        spectrum[:, 0, :, 1] = 0
        if length % 2 == 0:
            spectrum[:, -1, :, 1] = 0
        back = np.fft.irfft(as_complex(spectrum), length, axis=1)[..., None]
        got = run("DFT", [spectrum, np.array(length)], 17, onesided=1, inverse=1)
        np.testing.assert_allclose(got, back, atol=1e-12)


def test_dft_along_an_axis_that_data_names():
    x = RANDOM.normal(size=(2, 5, 3, 1))
    for axis in (0, 1, 2, -2, -3, -4):
        along = axis if axis >= 0 else axis + 1
        want = np.fft.rfft(x[..., 0], 4, axis=along)
        got = run("DFT", [x, np.array(4), np.array(axis)], 20, onesided=1)
        np.testing.assert_allclose(got, as_parts(want), atol=1e-12)
    for axis in (-1, 3, -5):
        with pytest.raises(RuntimeError, match="out of range"):
            run("DFT", [x, np.array(4), np.array(axis)], 20)


def test_stft():
    x, window = RANDOM.normal(size=(2, 50, 1)).astype(np.float32), np.hanning(16).astype(np.float32)
    frames = np.stack([x[:, 5 * i : 5 * i + 16, 0] for i in range(7)], 1)
    want = as_parts(np.fft.rfft(frames * window, axis=-1))
    got = run("STFT", [x, np.array(5), window, np.array(16)], 17)
    np.testing.assert_allclose(got, want, atol=2e-5)
    np.testing.assert_allclose(run("STFT", [x, np.array(5), window], 17), want, atol=2e-5)


@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(periodic: int):
    turns = {"HannWindow": (0.5, 0.5, 0), "HammingWindow": (25 / 46, 21 / 46, 0), "BlackmanWindow": (0.42, 0.5, 0.08)}
    for op, (a, b, c) in turns.items():
        t = 2 * np.pi * np.arange(10) / (10 if periodic else 9)
        want = a - b * np.cos(t) + c * np.cos(2 * t)
        got = run(op, [np.array(10)], 17, periodic=periodic)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("corners", [0, 1])
def test_affine_grid(corners: int):
    def places(n: int) -> np.ndarray:
        return np.linspace(-1, 1, n) if corners else (2 * np.arange(n) + 1) / n - 1

    theta = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
    z, y, x = np.meshgrid(places(3), places(4), places(5), indexing="ij")
    points = np.stack([x, y, z, np.ones_like(x)], -1)
    want = np.einsum("nij,dhwj->ndhwi", theta, points)
    np.testing.assert_allclose(
        run("AffineGrid", [theta, np.array([2, 1, 3, 4, 5])], align_corners=corners), want, atol=1e-5
    )
    flat = np.einsum("nij,hwj->nhwi", theta[:, :2, :3], points[0][..., [0, 1, 3]])
    got = run("AffineGrid", [theta[:, :2, :3].copy(), np.array([2, 1, 4, 5])], align_corners=corners)
    np.testing.assert_allclose(got, flat, atol=1e-5)
