// Windows without weights.
#include "import/onnx/rows.hpp"
#include "import/onnx/window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace cuvil::onnx {
namespace {

using Ints = std::vector<int64_t>;

Attributes window_attributes(const Window& window) {
    return {{"kernel", window.kernel},
            {"strides", window.strides},
            {"dilations", window.dilations},
            {"pads", window.pads()}};
}

// A pool of two axes, or of three as a pool of the last two and one of the first: those that are pooled here can be
// taken axis by axis.
Value& pool(GraphBuilder& build, std::string_view op, Value& x, const Window& window, const Attributes& own) {
    Attributes attributes = window_attributes(window);
    attributes.insert(own.begin(), own.end());
    if (window.kernel.size() == 2) return build.make(op, {&x}, std::move(attributes));
    Attributes first = own, second = own;
    for (std::string_view name : {"kernel", "strides", "dilations"}) {
        const Ints& all = std::get<Ints>(attributes.find(name)->second);
        first[std::string(name)] = Ints{all[1], all[2]};
        second[std::string(name)] = Ints{all[0], 1};
    }
    Ints pads = window.pads();
    first["pads"] = Ints{pads[1], pads[2], pads[4], pads[5]};
    second["pads"] = Ints{pads[0], 0, pads[3], 0};
    const Type& type = x.type();
    Value& planes = build.reshape(x, {type.dim(0), type.dim(1) * type.dim(2), type.dim(3), type.dim(4)});
    Value& pooled = build.make(op, {&planes}, std::move(first));
    Dim height = pooled.type().dim(2), width = pooled.type().dim(3);
    Value& columns = build.reshape(pooled, {type.dim(0), type.dim(1), type.dim(2), height * width});
    Value& all = build.make(op, {&columns}, std::move(second));
    return build.reshape(all, {type.dim(0), type.dim(1), all.type().dim(2), height, width});
}

// A value that is never the largest.
double lowest(DType dtype) {
    if (is_floating(dtype)) return -std::numeric_limits<double>::infinity();
    if (is_unsigned_integer(dtype)) return 0;
    return -std::ldexp(1.0, static_cast<int>(size_of(dtype)) * 8 - 1);
}

Values max_pool(Node& node) {
    GraphBuilder& build = node.build;
    Window window = read_window(node, nullptr);
    make_two_dimensional(window);
    Value* x = &make_two_dimensional(build, node.input(0));
    int64_t rank = node.type(0).rank();
    if (node.wants(1)) {
        if (!window.has_fixed_padding()) node.unsupported("indices where the padding depends on a size");
        Attributes attributes = window_attributes(window);
        attributes["column_major"] = node.integer("storage_order", 0) != 0;
        Value& indices = build.make(window.kernel.size() == 2 ? "max_pool2d_indices" : "max_pool3d_indices", {x},
                                    std::move(attributes));
        Value& result = pool(build, "max_pool2d", *x, window, {});
        return {&finish_windows(build, result, window, rank), &finish_windows(build, indices, window, rank)};
    }
    if (!window.has_fixed_padding()) x = &pad_explicitly(build, *x, window, lowest(x->type().dtype()));
    return {&finish_windows(build, pool(build, "max_pool2d", *x, window, {}), window, rank)};
}

// Sums over how many elements of x they are of, where the padding depends on a size.
Value& average_without_padding(GraphBuilder& build, Value& x, const Window& window, int64_t rank) {
    Shape one = x.type().shape();
    one[0] = one[1] = 1;
    auto sums = [&](Value& values) -> Value& {
        Window padded = window;
        return pool(build, "sum_pool2d", pad_explicitly(build, values, padded, 0), padded, {});
    };
    Value& counts = sums(build.broadcast_to(build.scalar(x, 1), one));
    return finish_windows(build, build.elementwise("div", {&sums(x), &counts}), window, rank);
}

// What hangs over the padding does not count, the padding itself counts with count_include_pad: it then becomes part of
// the input.
Values average_pool(Node& node) {
    GraphBuilder& build = node.build;
    Window window = read_window(node, nullptr);
    make_two_dimensional(window);
    Value* x = &make_two_dimensional(build, node.input(0));
    bool counts_padding = node.integer("count_include_pad", 0) != 0;
    bool is_fixed = window.has_fixed_padding();
    // Over three axes averages are taken axis by axis, which rounds otherwise: then sizes that are fixed make no
    // difference.
    bool divides_once = !is_fixed || (pads_to_same(node) && window.kernel.size() == 3);
    if (divides_once && !counts_padding) return {&average_without_padding(build, *x, window, node.type(0).rank())};
    bool hangs_over = std::any_of(window.extra.begin(), window.extra.end(), [](int64_t n) { return n != 0; });
    if (counts_padding && (hangs_over || !is_fixed)) {
        x = &pad_explicitly(build, *x, window, 0);
        counts_padding = false;
    }
    Value& result = pool(build, "avg_pool2d", *x, window, {{"count_include_pad", counts_padding}});
    return {&finish_windows(build, result, window, node.type(0).rank())};
}

// |x|^p and its inverse.
Value& power(GraphBuilder& build, Value& x, int64_t p) {
    Value& size = build.make("abs", {&x});
    if (p == 1) return size;
    return p == 2 ? build.make("mul", {&size, &size}) : build.elementwise("pow", size, static_cast<double>(p));
}

Value& root(GraphBuilder& build, Value& x, int64_t p) {
    if (p == 1) return x;
    return p == 2 ? build.make("sqrt", {&x}) : build.elementwise("pow", x, 1 / static_cast<double>(p));
}

int64_t read_p(const Node& node) {
    int64_t p = node.integer("p", 2);
    if (p < 1) bad_attribute(fmt::format("attribute \"p\" is {}", p));
    return p;
}

Values lp_pool(Node& node) {
    GraphBuilder& build = node.build;
    Window window = read_window(node, nullptr);
    make_two_dimensional(window);
    int64_t p = read_p(node);
    Value* x = &power(build, make_two_dimensional(build, node.input(0)), p);
    if (!window.has_fixed_padding()) x = &pad_explicitly(build, *x, window, 0);
    Value& sums = pool(build, "sum_pool2d", *x, window, {});
    return {&root(build, finish_windows(build, sums, window, node.type(0).rank()), p)};
}

Ints spatial_axes(const Node& node) {
    if (node.type(0).rank() < 2)
        throw ImportError("shape-mismatch", node.type(0).text() + " has no batch and channels");
    Ints axes = all_axes(node.type(0).rank());
    axes.erase(axes.begin(), axes.begin() + 2);
    return axes;
}

template <bool is_max> Values global_pool(Node& node) {
    return {&node.build.reduce(is_max ? "reduce_max" : "reduce_mean", node.input(0), spatial_axes(node), true)};
}

Values global_lp_pool(Node& node) {
    int64_t p = read_p(node);
    Value& sums = node.build.reduce("reduce_sum", power(node.build, node.input(0), p), spatial_axes(node), true);
    return {&root(node.build, sums, p)};
}

// The elements go where the indices say in what was pooled, as far as its sizes follow from those of the result; an
// output_shape then cuts it or adds zeros behind.
Values max_unpool(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    if (x.type().rank() < 3) throw ImportError("shape-mismatch", x.type().text() + " has no axes for a window");
    auto axes = static_cast<size_t>(x.type().rank() - 2);
    if (!node.has_attribute("kernel_shape")) bad_attribute("attribute \"kernel_shape\" is missing");
    Ints kernel = read_integers(node, "kernel_shape", axes, 1, 1), strides = read_integers(node, "strides", axes, 1, 1),
         pads = read_integers(node, "pads", 2 * axes, 0, 0);
    Shape shape = x.type().shape();
    for (size_t i = 0; i < axes; i++)
        shape[2 + i] = Dim::max((shape[2 + i] - 1) * Dim(strides[i]) + Dim(kernel[i] - pads[i] - pads[axes + i]), 0);
    const Dim count = checked_count(x.type().shape()), all = checked_count(shape);
    Value& places = build.reshape(build.fit(node.input(1), x.type().shape()), {count});
    Value& zeros = build.broadcast_to(build.scalar(x, 0), {all});
    Value* result = &build.make("scatter_elements", {&zeros, &places, &build.reshape(x, {count})});
    result = &build.reshape(*result, shape);
    if (!node.has_input(2)) return {result};
    Shape wanted = node.counts(2, "a size of the result");
    if (wanted.size() != shape.size())
        throw ImportError("shape-mismatch", fmt::format("output_shape {} for {}", text(wanted), x.type().text()));
    Shape none(shape.size(), 0), missing;
    for (size_t i = 0; i < shape.size(); i++) {
        result = &build.slice(*result, static_cast<int64_t>(i), 0, Dim::min(shape[i], wanted[i]));
        missing.push_back(Dim::max(wanted[i] - shape[i], 0));
    }
    return {&build.name_sizes(build.pad(*result, none, missing, 0))};
}

const Row rows[] = {
    {"AveragePool", 1, 6, average_pool, 1, 1, "auto_pad kernel_shape pads strides", "avg_pool2d"},
    {"AveragePool", 7, 9, average_pool, 1, 1, "auto_pad count_include_pad kernel_shape pads strides", "avg_pool2d"},
    {"AveragePool", 10, 18, average_pool, 1, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides",
     "avg_pool2d"},
    {"AveragePool", 19, newest, average_pool, 1, 1,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides", "avg_pool2d"},
    {"GlobalAveragePool", 1, newest, global_pool<false>, 1, 1, "", "reduce_mean"},
    {"GlobalMaxPool", 1, newest, global_pool<true>, 1, 1, "", "reduce_max"},
    {"GlobalLpPool", 2, newest, global_lp_pool, 1, 1, "p", "reduce_sum"},
    {"LpPool", 2, 17, lp_pool, 1, 1, "auto_pad kernel_shape p pads strides", "sum_pool2d"},
    {"LpPool", 18, newest, lp_pool, 1, 1, "auto_pad ceil_mode dilations kernel_shape p pads strides", "sum_pool2d"},
    {"MaxPool", 1, 7, max_pool, 1, 1, "auto_pad kernel_shape pads strides", "max_pool2d"},
    {"MaxPool", 8, 9, max_pool, 1, 1, "auto_pad kernel_shape pads storage_order strides", "max_pool2d"},
    {"MaxPool", 10, newest, max_pool, 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
     "max_pool2d"},
    {"MaxUnpool", 9, newest, max_unpool, 2, 3, "kernel_shape pads strides", "scatter_elements"},
};

} // namespace

std::span<const Row> pooling_rows() { return rows; }

} // namespace cuvil::onnx
