// Windows without weights.
#include "import/onnx/rows.hpp"
#include "import/onnx/window.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cuvil::onnx {
namespace {

Attributes window_attributes(const Window& window) {
    return {{"kernel", window.kernel},
            {"strides", window.strides},
            {"dilations", window.dilations},
            {"pads", window.pads()}};
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
    if (!window.has_fixed_padding()) x = &pad_explicitly(build, *x, window, lowest(x->type().dtype()));
    Value& result = build.make("max_pool2d", {x}, window_attributes(window));
    return {&finish_windows(build, result, window, node.type(0).rank())};
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
    if (!is_fixed && !counts_padding) node.unsupported("padding that depends on a size and does not count");
    bool hangs_over = std::any_of(window.extra.begin(), window.extra.end(), [](int64_t n) { return n != 0; });
    if (counts_padding && (hangs_over || !is_fixed)) {
        x = &pad_explicitly(build, *x, window, 0);
        counts_padding = false;
    }
    Attributes attributes = window_attributes(window);
    attributes["count_include_pad"] = counts_padding;
    Value& result = build.make("avg_pool2d", {x}, std::move(attributes));
    return {&finish_windows(build, result, window, node.type(0).rank())};
}

template <bool is_max> Values global_pool(Node& node) {
    if (node.type(0).rank() < 2)
        throw ImportError("shape-mismatch", node.type(0).text() + " has no batch and channels");
    std::vector<int64_t> axes = all_axes(node.type(0).rank());
    axes.erase(axes.begin(), axes.begin() + 2);
    return {&node.build.reduce(is_max ? "reduce_max" : "reduce_mean", node.input(0), axes, true)};
}

const Row rows[] = {
    {"AveragePool", 7, 9, average_pool, 1, 1, "auto_pad count_include_pad kernel_shape pads strides", "avg_pool2d"},
    {"AveragePool", 10, 18, average_pool, 1, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides",
     "avg_pool2d"},
    {"AveragePool", 19, newest, average_pool, 1, 1,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides", "avg_pool2d"},
    {"GlobalAveragePool", 1, newest, global_pool<false>, 1, 1, "", "reduce_mean"},
    {"GlobalMaxPool", 1, newest, global_pool<true>, 1, 1, "", "reduce_max"},
    {"MaxPool", 1, 7, max_pool, 1, 1, "auto_pad kernel_shape pads strides", "max_pool2d"},
    {"MaxPool", 8, 9, max_pool, 1, 1, "auto_pad kernel_shape pads storage_order strides", "max_pool2d"},
    {"MaxPool", 10, newest, max_pool, 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
     "max_pool2d"},
};

} // namespace

std::span<const Row> pooling_rows() { return rows; }

} // namespace cuvil::onnx
