// Fourier transforms as products with matrices of roots of unity, windows, and grids.
#include "import/onnx/axes.hpp"
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

namespace cuvil::onnx {
namespace {

Value& op(GraphBuilder& build, std::string_view name, Value& a, Value& b) { return build.elementwise(name, {&a, &b}); }

// A scalar input that is a size.
Dim size_input(Node& node, size_t i, std::string_view what) {
    if (!checked_count(node.type(i).shape()).is(1))
        throw ImportError("bad-node", fmt::format("{} is {}", what, node.type(i).text()));
    return node.counts(i, what).at(0);
}

DType output_dtype(Node& node) {
    auto dtype = dtype_of(node.integer("output_datatype", 1));
    if (!dtype) node.unsupported("this element type");
    return *dtype;
}

// ---- Windows: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n)

Value& cosine_window(Node& node, double a0, double a1, double a2) {
    GraphBuilder& build = node.build;
    Dim size = size_input(node, 0, "the size");
    Dim period = node.integer("periodic", 1) != 0 ? size : size - 1;
    Value& length = build.cast(build.dims({period}, {}), DType::F64);
    Value& turn =
        op(build, "div", build.elementwise("mul", build.positions(size, DType::F64), 2 * std::numbers::pi), length);
    Value* window = &build.elementwise("mul", build.make("cos", {&turn}), -a1);
    window = &build.elementwise("add", *window, a0);
    if (a2 != 0) {
        Value& twice = build.make("cos", {&build.elementwise("mul", turn, 2)});
        window = &op(build, "add", *window, build.elementwise("mul", twice, a2));
    }
    return build.cast(*window, output_dtype(node));
}

Values hann_window(Node& node) { return {&cosine_window(node, 0.5, 0.5, 0)}; }
Values hamming_window(Node& node) { return {&cosine_window(node, 25.0 / 46, 21.0 / 46, 0)}; }
Values blackman_window(Node& node) { return {&cosine_window(node, 0.42, 0.5, 0.08)}; }

// ---- Fourier transforms

struct Transform {
    bool is_inverse, is_onesided;
    bool gives_reals() const { return is_inverse && is_onesided; }
};

// cos and sin of 2 pi j k / length for j < rows and k < columns. The product is reduced first, so that the angle is
// exact up to its rounding.
std::pair<Value*, Value*> roots_of_unity(GraphBuilder& build, const Dim& rows, const Dim& columns, const Dim& length) {
    Value& period = build.dims({Dim::max(length, 1)}, {});
    Value& product = op(build, "mul", build.reshape(build.positions(rows), {rows, 1}), build.positions(columns));
    Value& rest = op(build, "sub", product, op(build, "mul", op(build, "div", product, period), period));
    Value& turns = op(build, "div", build.cast(rest, DType::F64), build.cast(period, DType::F64));
    Value& angle = build.elementwise("mul", turns, 2 * std::numbers::pi);
    return {&build.make("cos", {&angle}), &build.make("sin", {&angle})};
}

// [rows, parts, columns, results]: the real number that part p of element j adds to result r of element k.
Value& transform_matrix(GraphBuilder& build, const Transform& t, DType dtype, const Dim& rows, int64_t parts,
                        const Dim& columns, const Dim& length) {
    auto [cos, sin] = roots_of_unity(build, rows, columns, length);
    if (t.is_inverse) {
        Value* scale = &build.scalar(DType::F64, 1);
        if (t.is_onesided) {
            // An element that is not its own mirror image stands for two.
            Value& j = build.positions(rows);
            Value& is_single = op(build, "logical_or", build.elementwise("equal", j, 0),
                                  op(build, "equal", build.elementwise("mul", j, 2), build.dims({length}, {})));
            Value& two = build.broadcast_to(build.scalar(DType::F64, 2), {rows});
            Value& one = build.broadcast_to(build.scalar(DType::F64, 1), {rows});
            scale = &build.reshape(build.make("where", {&is_single, &one, &two}), {rows, 1});
        }
        scale = &op(build, "div", *scale, build.cast(build.dims({length}, {}), DType::F64));
        cos = &op(build, "mul", *cos, *scale);
        sin = &build.make("neg", {&op(build, "mul", *sin, *scale)});
    }
    // (a + ib)(cos - i sin)
    auto stack = [&](const Values& values, int64_t axis) -> Value& {
        Values all;
        for (Value* v : values) all.push_back(&build.unsqueeze(*v, {axis}));
        return build.concat(all, axis);
    };
    Value& minus_sin = build.make("neg", {sin});
    auto row = [&](Value* real, Value* imaginary) -> Value* {
        return t.gives_reals() ? &build.unsqueeze(*real, {2}) : &stack({real, imaginary}, 2);
    };
    Value* of_real = row(cos, &minus_sin);
    Value& matrix = parts == 1 ? build.unsqueeze(*of_real, {1}) : stack({of_real, row(sin, cos)}, 1);
    return build.cast(matrix, dtype);
}

// Of x[..., signal, parts], with `length` elements of the signal taken or made up with zeros.
Value& transformed(GraphBuilder& build, Value& x, const Transform& t, const Dim& length) {
    int64_t rank = x.type().rank(), axis = rank - 2;
    auto parts = x.type().dim(-1).constant();
    if (!parts || (*parts != 1 && *parts != 2))
        throw ImportError("shape-mismatch", fmt::format("{} holds neither real nor complex numbers", x.type().text()));
    if (t.is_onesided && *parts != (t.is_inverse ? 2 : 1))
        throw ImportError("shape-mismatch", fmt::format("a one-sided transform of {}", x.type().text()));
    Dim half = Dim::floordiv(length, 2) + 1;
    const Dim taken = t.gives_reals() ? half : length, given = t.is_onesided && !t.is_inverse ? half : length;
    const Dim size = x.type().dim(axis);
    Shape none(static_cast<size_t>(rank), 0), missing = none, shape = x.type().shape();
    missing[static_cast<size_t>(axis)] = Dim::max(taken - size, 0);
    Value& cut = build.slice(x, axis, 0, Dim::min(size, taken));
    Value& signal = build.name_sizes(build.pad(cut, none, missing, 0));
    const Dim rows = signal.type().dim(axis);
    Value& matrix = transform_matrix(build, t, x.type().dtype(), rows, *parts, given, length);
    int64_t results = t.gives_reals() ? 1 : 2;
    shape.resize(static_cast<size_t>(rank - 2));
    Value& all = build.reshape(signal, {checked_count(shape), rows * *parts});
    Value& product = build.matmul(all, build.reshape(matrix, {rows * *parts, given * results}));
    shape.insert(shape.end(), {given, results});
    return build.reshape(product, shape);
}

// The DFT that the node asks for, along the axis.
Value& transformed_along(Node& node, Value& x, const Transform& t, int64_t axis) {
    int64_t rank = x.type().rank();
    const Dim size = x.type().dim(axis);
    Dim length = node.has_input(1) ? size_input(node, 1, "the length") : t.gives_reals() ? (size - 1) * 2 : size;
    std::vector<int64_t> perm = all_axes(rank);
    std::swap(perm[static_cast<size_t>(axis)], perm[static_cast<size_t>(rank - 2)]);
    GraphBuilder& build = node.build;
    return build.transpose(transformed(build, build.transpose(x, perm), t, length), perm);
}

int64_t known_axis(const Node& node, size_t input) {
    std::vector<int64_t> axes = node.numbers(input);
    if (axes.size() != 1) throw ImportError("bad-node", fmt::format("the axis is {}", node.type(input).text()));
    return axes[0];
}

Values dft(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    int64_t rank = x.type().rank();
    if (rank < 2) throw ImportError("shape-mismatch", fmt::format("{} is no signal", x.type().text()));
    if (!is_floating(x.type().dtype()))
        throw ImportError("type-mismatch", fmt::format("the signal is {}", x.type().text()));
    Transform t{node.integer("inverse", 0) != 0, node.integer("onesided", 0) != 0};
    if (!node.has_input(2) || node.known_numbers(2)) {
        int64_t axis = node.opset < 20 ? node.integer("axis", 1) : -2;
        if (node.has_input(2)) axis = known_axis(node, 2);
        axis = normal_axis(axis, rank);
        if (axis == rank - 1) bad_attribute("the last axis holds the parts of numbers");
        return {&transformed_along(node, x, t, axis)};
    }
    Shape signal = x.type().shape();
    signal.pop_back();
    Value& axis = axis_from_front(build, node.input(2), rank);
    Shape around = around_axis(build, signal, axis);
    around.push_back(x.type().dim(-1));
    Value& result = transformed_along(node, build.reshape(x, around), t, 1);
    Shape shape = with_axis(build, signal, axis, result.type().dim(1));
    shape.push_back(result.type().dim(-1));
    return {&build.reshape(result, shape)};
}

Values stft(Node& node) {
    GraphBuilder& build = node.build;
    Value& signal = node.input(0);
    if (signal.type().rank() != 3)
        throw ImportError("shape-mismatch", fmt::format("{} is no batch of signals", signal.type().text()));
    const Dim size = signal.type().dim(1);
    Dim step = size_input(node, 1, "the step"), length = size;
    Value* window = node.optional_input(2);
    if (window && window->type().rank() != 1)
        throw ImportError("shape-mismatch", fmt::format("the window is {}", window->type().text()));
    if (window) length = window->type().dim(0);
    if (node.has_input(3)) length = size_input(node, 3, "the length of a frame");
    build.require_at_least(step, 1, "the step");
    build.require_at_least(size - length, 0, "the signal, less a frame,");
    Dim frames = Dim::max(Dim::floordiv(size - length, Dim::max(step, 1)) + 1, 0);
    Value& starts = op(build, "mul", build.reshape(build.positions(frames), {frames, 1}), build.dims({step}, {}));
    Value* cut = &build.gather(signal, op(build, "add", starts, build.positions(length)), 1);
    if (window) cut = &op(build, "mul", *cut, build.reshape(build.fit(*window, {length}), {length, 1}));
    bool is_real = signal.type().dim(2).is(1);
    Transform t{false, node.integer("onesided", 1) != 0 && is_real};
    return {&transformed(build, *cut, t, length)};
}

// Triangles over the bins of a spectrum, evenly spaced on the mel scale.
Values mel_weight_matrix(Node& node) {
    GraphBuilder& build = node.build;
    Dim bands = size_input(node, 0, "the number of bands"), length = size_input(node, 1, "the length");
    Dim bins = Dim::floordiv(length, 2) + 1;
    auto number = [&](size_t i) -> Value& { return build.cast(build.reshape(node.input(i), {}), DType::F64); };
    double scale = 2595 / std::numbers::ln10;
    auto mel = [&](Value& hertz) -> Value& {
        return build.elementwise(
            "mul", build.make("log", {&build.elementwise("add", build.elementwise("div", hertz, 700), 1)}), scale);
    };
    Value &low = mel(number(3)), &high = mel(number(4));
    Value& step = op(build, "div", op(build, "sub", high, low), build.cast(build.dims({bands + 2}, {}), DType::F64));
    Value& mels = op(build, "add", op(build, "mul", build.positions(bands + 2, DType::F64), step), low);
    Value& hertz = build.elementwise(
        "mul", build.elementwise("sub", build.make("exp", {&build.elementwise("div", mels, scale)}), 1), 700);
    Value& scaled = op(build, "mul", hertz, build.cast(build.dims({length + 1}, {}), DType::F64));
    Value& edges = build.make("floor", {&op(build, "div", scaled, number(2))});
    auto edge = [&](int64_t i) -> Value& { return build.slice(edges, 0, i, bands); };
    Value &lower = edge(0), &center = edge(1), &upper = edge(2);
    Value& bin = build.reshape(build.positions(bins, DType::F64), {bins, 1});
    // At the centre itself a side of no width gives 1.
    auto side = [&](Value& distance, Value& width) -> Value& {
        Value& one = build.broadcast_to(build.scalar(DType::F64, 1), {bins, bands});
        std::vector<Value*> both = build.broadcast_together({&distance, &build.elementwise("maximum", width, 1), &one});
        Value& is_flat = build.broadcast_to(build.elementwise("equal", width, 0), {bins, bands});
        Value& is_center = build.broadcast_to(op(build, "equal", bin, center), {bins, bands});
        Value& slope = op(build, "div", *both[0], *both[1]);
        return build.make("where", {&op(build, "logical_and", is_flat, is_center), &one, &slope});
    };
    Value& rising = side(op(build, "sub", bin, lower), op(build, "sub", center, lower));
    Value& falling = side(op(build, "sub", upper, bin), op(build, "sub", upper, center));
    Value& triangle = build.elementwise("maximum", op(build, "minimum", rising, falling), 0);
    return {&build.cast(triangle, output_dtype(node))};
}

// ---- Grids

// Positions between -1 and 1, at the ends or half a step from them: (2 i - (n - 1)) / (n - 1) or / n.
Value& grid_positions(GraphBuilder& build, DType dtype, const Dim& size, bool has_corners) {
    Value& twice = build.elementwise("mul", build.positions(size), 2);
    Value& centered = build.cast(op(build, "sub", twice, build.dims({size - 1}, {})), dtype);
    return op(build, "div", centered, build.cast(build.dims({has_corners ? Dim::max(size - 1, 1) : size}, {}), dtype));
}

Values affine_grid(Node& node) {
    GraphBuilder& build = node.build;
    Value& theta = node.input(0);
    std::vector<Dim> size = node.counts(1, "a size");
    if (theta.type().rank() != 3 || (size.size() != 4 && size.size() != 5))
        throw ImportError("shape-mismatch", fmt::format("{} for {} sizes", theta.type().text(), size.size()));
    Shape space(size.begin() + 2, size.end());
    auto axes = static_cast<int64_t>(space.size());
    Value& maps = build.fit(theta, {size[0], axes, axes + 1});
    DType dtype = theta.type().dtype();
    // The last axis of space is the first coordinate.
    Values coordinates;
    for (int64_t i = axes - 1; i >= 0; i--) {
        Shape along(space.size(), 1);
        along[static_cast<size_t>(i)] = space[static_cast<size_t>(i)];
        Value& positions =
            grid_positions(build, dtype, space[static_cast<size_t>(i)], node.integer("align_corners", 0) != 0);
        coordinates.push_back(&build.unsqueeze(build.broadcast_to(build.reshape(positions, along), space), {axes}));
    }
    coordinates.push_back(&build.unsqueeze(build.broadcast_to(build.scalar(dtype, 1), space), {axes}));
    Value& points = build.reshape(build.concat(coordinates, axes), {1, checked_count(space), axes + 1});
    Value& moved = build.matmul(points, build.swap_last_axes(maps));
    Shape result = space;
    result.insert(result.begin(), size[0]);
    result.emplace_back(axes);
    return {&build.reshape(moved, result)};
}

const Row rows[] = {
    {"AffineGrid", 20, newest, affine_grid, 2, 2, "align_corners", "matmul"},
    {"BlackmanWindow", 17, newest, blackman_window, 1, 1, "output_datatype periodic", "cos"},
    {"DFT", 17, 19, dft, 1, 2, "axis inverse onesided", "matmul"},
    {"DFT", 20, newest, dft, 1, 3, "inverse onesided", "matmul"},
    {"HammingWindow", 17, newest, hamming_window, 1, 1, "output_datatype periodic", "cos"},
    {"HannWindow", 17, newest, hann_window, 1, 1, "output_datatype periodic", "cos"},
    {"MelWeightMatrix", 17, newest, mel_weight_matrix, 5, 5, "output_datatype", "range"},
    {"STFT", 17, newest, stft, 2, 4, "onesided", "matmul"},
};

} // namespace

std::span<const Row> signal_rows() { return rows; }

} // namespace cuvil::onnx
