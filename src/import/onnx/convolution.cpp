// Convolutions.
#include "import/onnx/rows.hpp"
#include "import/onnx/window.hpp"

#include <fmt/format.h>

namespace cuvil::onnx {
namespace {

constexpr int64_t most = int64_t{1} << 30;

// x [N,C,...], w [K,C/group,...], bias [K].
Values conv(Node& node) {
    GraphBuilder& build = node.build;
    const Type &x_type = node.type(0), &w_type = node.type(1);
    if (x_type.rank() != w_type.rank())
        throw ImportError("shape-mismatch", fmt::format("input and weights have different ranks, {} and {}",
                                                        x_type.text(), w_type.text()));
    std::vector<int64_t> sizes;
    for (const Dim& d : w_type.shape()) {
        auto size = d.constant();
        if (!size || *size < 0 || *size > most)
            node.unsupported(fmt::format("weights whose sizes are not fixed, {}", w_type.text()));
        sizes.push_back(*size);
    }
    int64_t groups = node.integer("group", 1);
    if (groups < 1 || groups > most) bad_attribute(fmt::format("attribute \"group\" is {}", groups));
    std::vector<int64_t> kernel(sizes.begin() + std::min<int64_t>(2, x_type.rank()), sizes.end());
    Window window = read_window(node, &kernel);
    make_two_dimensional(window);

    Value* x = &node.input(0);
    if (compare(x_type.dim(1), sizes[1] * groups) == Equality::Unknown) {
        Shape shape = x_type.shape();
        shape[1] = sizes[1] * groups;
        x = &build.fit(*x, shape);
    }
    x = &make_two_dimensional(build, *x);
    if (!window.has_fixed_padding()) x = &pad_explicitly(build, *x, window, 0);
    Value* bias = node.optional_input(2);
    if (bias && bias->type().rank() == 1) bias = &build.fit(*bias, {sizes[0]});
    Value& result = build.make(
        "conv2d", {x, &make_two_dimensional(build, node.input(1)), bias},
        {{"strides", window.strides}, {"dilations", window.dilations}, {"pads", window.pads()}, {"groups", groups}});
    return {&finish_windows(build, result, window, x_type.rank())};
}

const Row rows[] = {
    {"Conv", 1, newest, conv, 2, 3, "auto_pad dilations group kernel_shape pads strides", "conv2d"},
};

} // namespace

std::span<const Row> convolution_rows() { return rows; }

} // namespace cuvil::onnx
