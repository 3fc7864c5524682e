"""Convolutions, pools and resampling of ONNX models against their definitions, element by element in float64."""

import itertools
import math

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import model, node, value

import cuvil

RANDOM = np.random.default_rng(5)


def values(*shape: int) -> np.ndarray:
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def run(
    op: str,
    inputs: dict[str, np.ndarray],
    weights: dict[str, np.ndarray],
    outputs: int = 1,
    opset: int = 22,
    **attributes,
):
    """One node whose inputs come first and whose weights are constants; with fixed sizes, then with those of x open."""
    names = [f"y{i}" for i in range(outputs)]
    one = node(op, [*inputs, *weights], names, **attributes)
    constants = [numpy_helper.from_array(w, name) for name, w in weights.items() if name]
    results = []
    for is_open in (False, True):
        shapes = {k: list(x.shape) for k, x in inputs.items()}
        if is_open:
            shapes["x"] = [n if i == 1 else f"N{i}" for i, n in enumerate(shapes["x"])]
        ports = [value(k, shapes[k], helper.np_dtype_to_tensor_dtype(x.dtype)) for k, x in inputs.items()]
        module = cuvil.compile(model([one], ports, names, constants, opset), target="native")
        results.append([module.run(inputs)[name] for name in names])
    for fixed, open_ in zip(*results, strict=True):
        assert fixed.tobytes() == open_.tobytes()
    return results[0] if outputs > 1 else results[0][0]


def close(got: np.ndarray, want: np.ndarray, tolerance: float = 2e-6):
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * max(1, np.abs(want).max(initial=0)))


def convolved(x, w, strides, dilations, pads, groups):
    axes = x.ndim - 2
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)])
    extent = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:], strict=True)]
    sizes = [(n - e) // s + 1 for n, e, s in zip(padded.shape[2:], extent, strides, strict=True)]
    y = np.zeros((x.shape[0], w.shape[0], *sizes))
    share = w.shape[0] // groups
    for at in np.ndindex(*sizes):
        cut = tuple(slice(i * s, i * s + e, d) for i, s, e, d in zip(at, strides, extent, dilations, strict=True))
        window = padded[(slice(None), slice(None), *cut)]
        for g in range(groups):
            c = slice(g * w.shape[1], (g + 1) * w.shape[1])
            k = slice(g * share, (g + 1) * share)
            taps = range(1, x.ndim)
            y[(slice(None), k, *at)] = np.tensordot(window[:, c], w[k].astype(np.float64), axes=(taps, taps))
    return y


@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "spatial", "kernel", "strides", "dilations"),
    [
        (32, 32, 32, (9, 17), (3, 3), (1, 1), (1, 1)),
        (40, 40, 40, (12, 9), (5, 5), (2, 2), (1, 1)),
        (24, 24, 6, (7, 11), (3, 2), (1, 2), (2, 1)),
        (16, 16, 2, (6, 6), (1, 1), (1, 1), (1, 1)),
        (64, 32, 2, (6, 8), (3, 3), (1, 1), (1, 1)),
        (6, 12, 3, (6, 8), (3, 3), (2, 1), (1, 1)),
        (8, 4, 1, (30,), (5,), (2,), (3,)),
        (3, 4, 1, (5, 6, 7), (2, 3, 3), (1, 2, 1), (2, 1, 1)),
    ],
)
def test_conv(channels, outputs, groups, spatial, kernel, strides, dilations):
    x, w = values(2, channels, *spatial), values(outputs, channels // groups, *kernel)
    bias = values(outputs)
    pads = [1] * len(spatial) + [2] * len(spatial)
    options = {"strides": strides, "dilations": dilations, "pads": pads, "group": groups}
    want = convolved(x, w, strides, dilations, pads, groups) + bias.reshape(-1, *[1] * len(spatial))
    close(run("Conv", {"x": x}, {"w": w, "b": bias}, **options), want, 4e-6)


def transposed(x, w, strides, dilations, begin, sizes, groups):
    kernel = w.shape[2:]
    whole = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[2:], strides, kernel, dilations, strict=True)]
    room = [max(a, b + c) for a, b, c in zip(whole, begin, sizes, strict=True)]
    share, inputs = w.shape[1], x.shape[1] // groups
    y = np.zeros((x.shape[0], share * groups, *room))
    for at in np.ndindex(*x.shape[2:]):
        cut = tuple(
            slice(i * s, i * s + (k - 1) * d + 1, d) for i, s, k, d in zip(at, strides, kernel, dilations, strict=True)
        )
        for g in range(groups):
            c, k = slice(g * inputs, (g + 1) * inputs), slice(g * share, (g + 1) * share)
            part = np.tensordot(x[(slice(None), c, *at)].astype(np.float64), w[c].astype(np.float64), axes=1)
            y[(slice(None), k, *cut)] += part
    return y[(slice(None), slice(None), *(slice(b, b + n) for b, n in zip(begin, sizes, strict=True)))]


@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "spatial", "kernel", "strides", "dilations", "pads", "more"),
    [
        (32, 20, 1, (5, 6), (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (0, 0)),
        (16, 8, 1, (5, 7), (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), (1, 1)),
        (6, 5, 1, (4, 3), (4, 5), (3, 2), (2, 3), (2, 0, 1, 3), (2, 1)),
        (4, 3, 1, (3, 3), (1, 2), (3, 1), (1, 1), (0, 0, 0, 0), (0, 0)),
        (4, 3, 1, (2, 2), (3, 4), (3, 30000), (4, 7), (0, 1, 0, 2), (0, 0)),  # nearly all phases without a tap
        (6, 9, 3, (4, 5), (3, 3), (2, 1), (1, 1), (1, 1, 1, 1), (0, 0)),
        (3, 2, 1, (9,), (4,), (2,), (1,), (1, 1), (0,)),
        (2, 3, 1, (3, 4, 3), (2, 3, 2), (2, 1, 2), (1, 2, 1), (0, 1, 0, 1, 1, 0), (1, 0, 0)),
    ],
)
def test_conv_transpose(channels, outputs, groups, spatial, kernel, strides, dilations, pads, more):
    x, w, bias = values(2, channels, *spatial), values(channels, outputs // groups, *kernel), values(outputs)
    n = len(spatial)
    sizes = [
        (spatial[i] - 1) * strides[i] + more[i] + (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[n + i]
        for i in range(n)
    ]
    want = transposed(x, w, strides, dilations, pads[:n], sizes, groups) + bias.reshape(-1, *[1] * n)
    options = {"strides": strides, "dilations": dilations, "pads": pads, "output_padding": more, "group": groups}
    close(run("ConvTranspose", {"x": x}, {"w": w, "b": bias}, **options), want, 4e-6)
    close(run("ConvTranspose", {"x": x, "w": w, "b": bias}, {}, **options), want, 4e-6)


@pytest.mark.parametrize(
    ("channels", "outputs", "spatial", "kernel", "pads"),
    [
        (3, 64, (64, 64), (7, 7), (3, 3, 3, 3)),
        (3, 40, (61, 67), (7, 7), (3, 3, 3, 3)),
        (3, 64, (64, 57), (7, 7), (2, 0, 3, 4)),
        (4, 33, (63, 66), (8, 7), (2, 3, 3, 1)),
        (4, 64, (64, 63), (5, 6), (2, 2, 1, 3)),
    ],
)
def test_a_large_window_that_moves_by_two_over_few_channels(channels, outputs, spatial, kernel, pads):
    x, w = values(2, channels, *spatial), values(outputs, channels, *kernel)
    attributes = {"strides": (2, 2), "pads": pads}
    want = convolved(x, w, (2, 2), (1, 1), pads, 1)
    one = node("Conv", ["x", "w"], ["y"], **attributes)
    for sizes in [x.shape, ("N", channels, "H", "W")]:
        ports = [value("x", list(sizes))]
        module = cuvil.compile(
            model([one], ports, ["y"], [numpy_helper.from_array(w, "w")]), target="native", threads=2
        )
        assert "conv2d_phased" in [step["kernel"] for step in module.manifest["steps"]]
        close(module.run({"x": x})["y"], want, 4e-6)


@pytest.mark.parametrize("tall", [False, True], ids=["alone", "beside a window of 3 x 1"])
@pytest.mark.parametrize(("stride", "size"), [(1, 14), (2, 28), (2, 13), (3, 20)])
def test_a_convolution_that_a_depthwise_one_reads(stride: int, size: int, tall: bool):
    """The first layer only lays x out in blocks; the window of 3 x 1 gives x a halo above and below."""
    x, w = values(1, 16, size, size), [values(16, 16, 3, 3), values(40, 16, 1, 1), values(40, 1, 3, 3)]
    nodes = [
        node("Conv", ["x", "w0"], "image", pads=[1] * 4),
        node("Conv", ["image", "w1"], "between", strides=[stride] * 2),
        node("Conv", ["between", "w2"], "y", pads=[1] * 4, group=40),
    ]
    weights = [numpy_helper.from_array(array, f"w{i}") for i, array in enumerate(w)]
    image = convolved(x, w[0], [1, 1], [1, 1], [1] * 4, 1)
    between = convolved(image, w[1], [stride] * 2, [1, 1], [0] * 4, 1)
    want = {"y": convolved(between, w[2], [1, 1], [1, 1], [1] * 4, 40)}
    if tall:
        column = values(16, 16, 3, 1)
        weights.append(numpy_helper.from_array(column, "column"))
        nodes.append(node("Conv", ["image", "column"], "z", pads=[1, 0, 1, 0]))
        want["z"] = convolved(image, column, [1, 1], [1, 1], [1, 0, 1, 0], 1)
    for sizes in ([1, 16, size, size], ["N", 16, "H", "W"]):
        module = cuvil.compile(model(nodes, [value("x", sizes)], list(want), weights), target="native")
        # Checks of open sizes stand between the two where the stride divides them.
        is_one_step = "conv2d_depthwise" in [step["kernel"] for step in module.manifest["steps"]]
        assert is_one_step or (sizes[0] == "N" and stride > 1)
        got = module.run({"x": x})
        for name, expected in want.items():
            close(got[name], expected, 1e-5)


def test_bounds_that_are_no_numbers():
    x, w = values(1, 16, 6, 6), values(16, 16, 1, 1)
    nodes = [node("Conv", ["x", "w", "b"], "c"), node("Max", ["c", "nan"], "y")]
    constants = {"w": w, "b": values(16), "nan": np.array([np.nan], np.float32)}
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    module = cuvil.compile(model(nodes, [value("x", [1, 16, 6, 6])], ["y"], weights), target="native")
    assert np.isnan(module.run({"x": x})["y"]).all()


def test_conv_transpose_to_a_given_shape():
    x, w = values(1, 2, 3, 3), values(2, 4, 3, 3)
    got = run("ConvTranspose", {"x": x}, {"w": w}, strides=[2, 2], auto_pad="SAME_UPPER")
    close(got, transposed(x, w, (2, 2), (1, 1), (0, 0), (6, 6), 1), 4e-6)


def pooled(x, kernel, strides, dilations, pads, reduce):
    axes = len(kernel)
    extent = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    sizes = [(x.shape[2 + i] + pads[i] + pads[axes + i] - extent[i]) // strides[i] + 1 for i in range(axes)]
    y = np.zeros((*x.shape[:2], *sizes))
    for n, c, *at in np.ndindex(*y.shape):
        taps = []
        for tap in np.ndindex(*kernel):
            where = tuple(i * s - p + t * d for i, s, p, t, d in zip(at, strides, pads, tap, dilations, strict=False))
            if all(0 <= i < size for i, size in zip(where, x.shape[2:], strict=True)):
                taps.append((n, c, *where))
        y[(n, c, *at)] = reduce(taps)
    return y


@pytest.mark.parametrize(
    ("spatial", "kernel", "strides", "dilations"),
    [((9,), (3,), (2,), (1,)), ((6, 7), (3, 2), (1, 2), (1, 2)), ((4, 5, 6), (2, 3, 2), (2, 1, 1), (1, 1, 2))],
)
def test_pools(spatial, kernel, strides, dilations):
    x = values(2, 3, *spatial)
    pads = [1] * len(spatial) + [0] * len(spatial)
    options = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations}

    def by(f):
        return pooled(x, kernel, strides, dilations, pads, lambda taps: f([float(x[t]) for t in taps]))

    close(run("MaxPool", {"x": x}, {}, **options), by(max), 0)
    close(run("AveragePool", {"x": x}, {}, **options), by(np.mean))
    close(run("AveragePool", {"x": x}, {}, count_include_pad=1, **options), by(sum) / math.prod(kernel))
    for p in (1, 2, 3):
        close(run("LpPool", {"x": x}, {}, p=p, **options), by(lambda v, p=p: np.sum(np.abs(v) ** p)) ** (1 / p), 4e-6)


@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("spatial", [(9,), (6, 7), (4, 5, 6)])
def test_averages_of_what_is_there(spatial, padding: str):
    """The padding depends on the size and does not count."""
    x, axes = values(2, 3, *spatial), len(spatial)
    total = [max((-(-n // 2) - 1) * 2 + 3 - n, 0) for n in spatial]
    small, large = [t // 2 for t in total], [t - t // 2 for t in total]
    pads = small + large if padding == "SAME_UPPER" else large + small
    want = pooled(x, (3,) * axes, (2,) * axes, (1,) * axes, pads, lambda taps: np.mean([float(x[t]) for t in taps]))
    got = run("AveragePool", {"x": x}, {}, kernel_shape=[3] * axes, strides=[2] * axes, auto_pad=padding)
    close(got, want)


def test_transposed_convolution_to_a_given_shape():
    """What is cut from the beginning depends on the size of x."""
    x, w = values(1, 2, 5, 6), values(2, 3, 3, 4)
    for padding in ("NOTSET", "SAME_UPPER"):
        for shape in ((9, 11), (10, 13)):
            whole = np.zeros((1, 3, 14, 20))
            for i, j in np.ndindex(5, 6):
                whole[0, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 4] += np.einsum("c,ckrs->krs", x[0, :, i, j], w)
            starts = [max(n - size, 0) for n, size in zip((11, 14), shape, strict=True)]
            starts = [t // 2 if padding == "SAME_UPPER" else t - t // 2 for t in starts]
            want = whole[:, :, starts[0] : starts[0] + shape[0], starts[1] : starts[1] + shape[1]]
            got = run("ConvTranspose", {"x": x}, {"w": w}, strides=[2, 2], output_shape=shape, auto_pad=padding)
            close(got, want)


@pytest.mark.parametrize(("spatial", "kernel"), [((9,), (3,)), ((6, 7), (3, 2)), ((4, 5, 6), (2, 3, 2))])
def test_indices_of_max_pool(spatial, kernel):
    x = values(2, 3, *spatial)
    ones, pads = [1] * len(spatial), [1] * (2 * len(spatial))
    for column_major in (0, 1):
        flat = np.arange(x[0, 0].size).reshape(spatial, order="F" if column_major else "C")
        numbers = np.stack([flat + i * flat.size for i in range(6)]).reshape(x.shape)
        want = pooled(x, kernel, ones, ones, pads, lambda taps, n=numbers: n[max(taps, key=lambda t: x[t])])
        options = {"kernel_shape": kernel, "pads": pads, "storage_order": column_major}
        largest, indices = run("MaxPool", {"x": x}, {}, outputs=2, **options)
        np.testing.assert_array_equal(indices, want)
        np.testing.assert_array_equal(
            largest.ravel(), x.ravel()[want.astype(int).ravel()] if not column_major else largest.ravel()
        )


@pytest.mark.parametrize(("spatial", "kernel"), [((9,), (3,)), ((6, 7), (3, 2)), ((4, 5, 6), (2, 3, 2))])
def test_the_largest_go_back_where_they_were(spatial, kernel):
    x, options = values(2, 3, *spatial), {"kernel_shape": kernel, "strides": kernel}
    largest, indices = run("MaxPool", {"x": x}, {}, outputs=2, **options)
    sizes = np.array([2, 3, *(n // k * k for n, k in zip(spatial, kernel, strict=True))])
    # Indices of the part of x that whole windows cover.
    at = np.ravel_multi_index(np.unravel_index(indices.astype(int), x.shape), sizes)
    want = np.zeros(sizes, np.float32)
    want.flat[at.ravel()] = largest.ravel()
    np.testing.assert_array_equal(run("MaxUnpool", {"x": largest, "i": at}, {}, **options), want)
    cut = tuple(slice(n) for n in sizes)
    wanted = np.zeros(sizes + 1, np.float32)
    wanted[cut] = want
    np.testing.assert_array_equal(run("MaxUnpool", {"x": largest, "i": at, "s": sizes + 1}, {}, **options), wanted)
    np.testing.assert_array_equal(run("MaxUnpool", {"x": largest, "i": at}, {"s": sizes + 1}, **options), wanted)


def coordinate(o, n_in, n_out, mode):
    scale = n_out / n_in
    if mode == "asymmetric":
        return o / scale
    if mode == "align_corners":
        return o * (n_in - 1) / (n_out - 1) if n_out > 1 else 0.0
    if mode == "pytorch_half_pixel" and n_out == 1:
        return 0.0
    return (o + 0.5) / scale - 0.5


def resize_matrix(n_in, n_out, mode, coordinates, nearest="round_prefer_floor", antialias=False, exclude=False):
    matrix = np.zeros((n_out, n_in))
    stretch = max(1.0, n_in / n_out) if antialias else 1.0
    for o in range(n_out):
        c = coordinate(o, n_in, n_out, coordinates)
        if mode == "nearest":
            rounded = {
                "floor": math.floor(c),
                "ceil": math.ceil(c),
                "round_prefer_floor": math.ceil(c - 0.5),
                "round_prefer_ceil": math.floor(c + 0.5),
            }
            matrix[o, min(max(rounded[nearest], 0), n_in - 1)] = 1
            continue
        reach = stretch * (1 if mode == "linear" else 2)
        taps = range(math.floor(c - reach) + 1, math.ceil(c + reach))
        weights = {}
        for i in taps:
            d = abs(i - c) / stretch
            if mode == "linear":
                weights[i] = max(0.0, 1 - d)
            else:
                a = -0.75
                near = ((a + 2) * d - (a + 3)) * d * d + 1
                weights[i] = near if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0
        if exclude:
            weights = {i: w for i, w in weights.items() if 0 <= i < n_in}
        total = sum(weights.values())
        for i, w in weights.items():
            matrix[o, min(max(i, 0), n_in - 1)] += w / total
    return matrix


def resize_cases():
    for coordinates in ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"):
        for mode in ("linear", "cubic"):
            yield mode, coordinates, {}
        for nearest in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"):
            yield "nearest", coordinates, {"nearest_mode": nearest}
    yield "cubic", "half_pixel", {"exclude_outside": 1}
    for mode, exclude in itertools.product(("linear", "cubic"), (0, 1)):
        yield mode, "half_pixel", {"antialias": 1, "exclude_outside": exclude}


@pytest.mark.parametrize(("mode", "coordinates", "options"), list(resize_cases()))
def test_resize(mode, coordinates, options):
    """Plain images, pixels with their channels behind each other, and blocked images between two convolutions."""
    nearest = options.get("nearest_mode", "round_prefer_floor")
    filters = bool(options.get("antialias")), bool(options.get("exclude_outside"))
    same = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)
    x, pixels = values(2, 3, 6, 7), values(2, 6, 7, 3)
    nodes, weights, want = [node("Conv", ["x", "same"], "a")], [numpy_helper.from_array(same, "same")], {}
    for height, width in ((9, 15), (4, 3), (1, 14)):
        matrices = [resize_matrix(n, m, mode, coordinates, nearest, *filters) for n, m in ((6, height), (7, width))]
        for source, spec in (("x", "nchw,ah,bw->ncab"), ("pixels", "nhwc,ah,bw->nabc"), ("a", "nchw,ah,bw->ncab")):
            exact = np.einsum(spec, (pixels if source == "pixels" else x).astype(np.float64), *matrices)
            name = f"{source}{width}"
            weights.append(numpy_helper.from_array(np.array(exact.shape, np.int64), f"sizes {name}"))
            nodes.append(node("Resize", [source, "", "", f"sizes {name}"], name, mode=mode,
                              coordinate_transformation_mode=coordinates, **options))  # fmt: skip
            if source == "a":
                nodes.append(node("Conv", [name, "same"], f"conv {name}"))
                name = f"conv {name}"
            want[name] = exact
    ports = [value("x", x.shape), value("pixels", pixels.shape)]
    module = cuvil.compile(model(nodes, ports, list(want), weights, opset=19), target="native")
    got = module.run({"x": x, "pixels": pixels})
    for name, exact in want.items():
        close(got[name], exact, 2e-5)


def test_resize_by_scales_of_open_sizes():
    scales = np.array([1, 1, 2, 0.5], np.float32)
    x = values(1, 2, 5, 6)
    got = run("Resize", {"x": x}, {"": np.float32(0), "scales": scales}, mode="nearest", opset=19,
              coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    np.testing.assert_array_equal(got, np.repeat(x, 2, axis=2)[..., ::2])


def test_resize_of_integers_and_of_upsample():
    x = np.arange(6, dtype=np.uint8).reshape(1, 1, 2, 3)
    scales = np.array([1, 1, 2, 2], np.float32)
    got = run("Resize", {"x": x}, {"scales": scales}, opset=10)
    np.testing.assert_array_equal(got, x.repeat(2, axis=2).repeat(2, axis=3))
    y = values(1, 1, 2, 3)
    np.testing.assert_array_equal(
        run("Upsample", {"x": y}, {"scales": scales}, opset=9), y.repeat(2, axis=2).repeat(2, axis=3)
    )


def test_resize_of_a_region():
    """Outside of the image the given value, inside the plain coordinates of the region."""
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    roi = np.array([0, 0, 0, 0, 1, 1, 1, 2], np.float32)
    sizes = np.array([1, 1, 4, 7], np.int64)
    one = node("Resize", ["x", "roi", "", "sizes"], "y", mode="linear", extrapolation_value=9.5,
               coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
    weights = [numpy_helper.from_array(roi, "roi"), numpy_helper.from_array(sizes, "sizes")]
    got = cuvil.compile(model([one], [value("x", x.shape)], ["y"], weights, opset=13)).run({"x": x})["y"]
    want = np.full((1, 1, 4, 7), 9.5)
    want[..., :4] = x
    close(got, want)


def test_resize_by_what_data_gives():
    x, scales, sizes = values(1, 2, 4, 6), np.array([1, 1, 0.5, 1.5], np.float32), np.array([1, 2, 2, 9], np.int64)
    options = {"mode": "linear", "opset": 19}
    want = run("Resize", {"x": x}, {"": np.float32(0), "scales": scales}, **options)
    assert want.shape == (1, 2, 2, 9)
    by_scales = node("Resize", ["x", "", "scales"], "y", mode="linear")
    by_sizes = node("Resize", ["x", "", "", "sizes"], "z", mode="linear")
    ports = [
        value("x", x.shape),
        value("scales", [4]),
        value("sizes", [4], helper.np_dtype_to_tensor_dtype(sizes.dtype)),
    ]
    module = cuvil.compile(model([by_scales, by_sizes], ports, ["y", "z"], opset=19), target="native")
    got = module.run({"x": x, "scales": scales, "sizes": sizes})
    close(got["y"], want)
    close(got["z"], want)


@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_resize_by_scales_that_data_gives_is_resize_by_constants(coordinates: str, rounding: str):
    """Coordinates that are integers or halves stay so: scales are the simplest fractions that round to them."""
    how = {"nearest_mode": rounding, "coordinate_transformation_mode": coordinates}
    one = node("Resize", ["x", "", "scales"], "y", **how)
    ports = [value("x", [1, 1, 1, "W"]), value("scales", [4])]
    module = cuvil.compile(model([one], ports, ["y"], opset=18), target="native")
    for width, scale in ((100, 0.1), (10, 0.6), (20, 0.7), (9, 1 / 3), (7, 1.75), (3, 2), (1, 5.5), (6, 1e-6)):
        x, scales = np.arange(width, dtype=np.float32).reshape(1, 1, 1, -1), np.array([1, 1, 1, scale], np.float32)
        want = run("Resize", {"x": x}, {"": np.float32(0), "scales": scales}, opset=18, **how)
        assert np.array_equal(module.run({"x": x, "scales": scales})["y"], want), scale
    for scale in (0, -1, np.nan, np.inf, 1e-9, 1e9):
        scales = np.array([1, 1, 1, scale], np.float32)
        with pytest.raises(RuntimeError, match="a scale is not between"):
            module.run({"x": np.zeros((1, 1, 1, 4), np.float32), "scales": scales})


def test_resize_by_what_data_gives_in_the_first_definitions():
    """The nearest element is the one before x / scale, or behind it along axes that become shorter."""
    x = values(1, 1, 6, 6)
    ports = [value("x", x.shape), value("scales", ["K"])]
    for op, opset in (("Resize", 10), ("Upsample", 9)):
        module = cuvil.compile(model([node(op, ["x", "scales"], "y")], ports, ["y"], opset=opset), target="native")
        for scales in ((1, 1, 0.75, 2), (1, 1, 1.5, 0.6), (1, 1, 0.7, 0.4)):
            rows, columns = (
                np.clip([math.ceil(i / s) if s < 1 else math.floor(i / s) for i in range(int(6 * s))], 0, 5)
                for s in scales[2:]
            )
            got = module.run({"x": x, "scales": np.array(scales, np.float32)})["y"]
            np.testing.assert_array_equal(got, x[:, :, rows][..., columns])
            assert got.tobytes() == run(op, {"x": x}, {"scales": np.array(scales, np.float32)}, opset=opset).tobytes()


def test_upsample_of_images():
    x = values(1, 2, 3, 4)
    got = run("Upsample", {"x": x}, {}, opset=6, height_scale=2.0, width_scale=3.0)
    np.testing.assert_array_equal(got, x.repeat(2, axis=2).repeat(3, axis=3))


def test_resize_of_regions_that_data_gives():
    """By sizes and by scales, which count the region's part of the axis; as constants they give the same."""
    x, roi = values(1, 2, 5, 8), np.array([0.25, -0.5, 0.75, 0.5], np.float32)
    options = {"mode": "linear", "axes": [3, 2], "coordinate_transformation_mode": "tf_crop_and_resize"}
    forms = {"sizes": np.array([6, 4], np.int64), "scales": np.array([1.5, 0.8], np.float32)}
    for form, given in forms.items():
        names = ["x", "roi", "", "sizes"] if form == "sizes" else ["x", "roi", "scales"]
        one = node("Resize", names, "y", **options)
        constants = {"roi": roi, form: given}
        results = []
        for inputs in ([], ["roi"], [form], ["roi", form]):
            weights = [numpy_helper.from_array(v, k) for k, v in constants.items() if k not in inputs]
            ports = [value("x", x.shape)]
            ports += [value(k, constants[k].shape, helper.np_dtype_to_tensor_dtype(constants[k].dtype)) for k in inputs]
            module = cuvil.compile(model([one], ports, ["y"], weights, opset=18), target="native")
            results.append(module.run({"x": x} | {k: constants[k] for k in inputs})["y"])
        assert results[0].shape == (1, 2, 4, 6)
        for other in results[1:]:
            assert results[0].tobytes() == other.tobytes()
    rows = -0.5 * 4 + np.arange(4) * (0.5 + 0.5) * 4 / 3
    assert ((results[0] == 0).all(axis=(0, 1, 3)) == ((rows < 0) | (rows > 4))).all()


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_resize_keeps_the_aspect_ratio(policy: str, is_open: bool):
    x = values(1, 1, 2, 4)
    for wanted in np.array([[7, 8], [5, 7]], np.int64):
        scale = (min if policy == "not_larger" else max)(wanted[0] / 2, wanted[1] / 4)
        shape = tuple(math.floor(n * scale + 0.5) for n in (2, 4))
        options = {"axes": [2, 3], "keep_aspect_ratio_policy": policy, "coordinate_transformation_mode": "asymmetric"}
        one = node("Resize", ["x", "", "", "sizes"], "y", mode="linear", **options)
        ports = [value("x", ["N", 1, "H", "W"] if is_open else x.shape)]
        weights = [] if is_open else [numpy_helper.from_array(wanted, "sizes")]
        ports += [value("sizes", [2], helper.np_dtype_to_tensor_dtype(wanted.dtype))] if is_open else []
        module = cuvil.compile(model([one], ports, ["y"], weights, opset=18), target="native")
        got = module.run({"x": x} | ({"sizes": wanted} if is_open else {}))["y"]
        assert got.shape == (1, 1, *shape)
        matrices = []
        for n, m in zip((2, 4), shape, strict=True):
            at = np.clip(np.arange(m) / scale, 0, n - 1)
            matrices.append(np.maximum(0, 1 - np.abs(at[:, None] - np.arange(n))))
        close(got, np.einsum("nchw,ah,bw->ncab", x.astype(np.float64), *matrices))


def test_corners_that_are_aligned_by_a_fraction():
    """docs/decisions/006: 3 * 0.9 = 2.7 and 6 * 1.1 = 6.6 are the lengths that count."""
    x = values(1, 1, 3, 6)
    got = run("Resize", {"x": x}, {"": np.float32(0), "scales": np.array([1, 1, 0.9, 1.1], np.float32)}, opset=13,
              mode="linear", coordinate_transformation_mode="align_corners")  # fmt: skip
    matrices = []
    for n, length in ((3, 2.7), (6, 6.6)):
        at = np.clip(np.arange(int(length)) * (n - 1) / (length - 1), 0, n - 1)
        matrices.append(np.maximum(0, 1 - np.abs(at[:, None] - np.arange(n))))
    close(got, np.einsum("nchw,ah,bw->ncab", x.astype(np.float64), *matrices))
