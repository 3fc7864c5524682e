// Convolutions and their transposes.
#include "import/onnx/rows.hpp"
#include "import/onnx/window.hpp"
#include "ops/infer.hpp"

#include <fmt/format.h>

namespace cuvil::onnx {
namespace {

// Sizes of the weights [.., .., kernel...] and the number of groups.
struct Weights {
    std::vector<int64_t> sizes;
    int64_t groups;

    std::vector<int64_t> kernel() const { return {sizes.begin() + 2, sizes.end()}; }
};

Weights read_weights(const Node& node) {
    const Type &x = node.type(0), &w = node.type(1);
    if (x.rank() != w.rank())
        throw ImportError("shape-mismatch",
                          fmt::format("input and weights have different ranks, {} and {}", x.text(), w.text()));
    if (x.rank() < 3) throw ImportError("shape-mismatch", fmt::format("{} has no axes for a window", x.text()));
    Weights weights;
    weights.sizes = weight_sizes(node);
    weights.groups = read_groups(node, "group");
    return weights;
}

// x, whose channels are the given number, in a form with two spatial axes at least.
Value& image(Node& node, int64_t channels) {
    Value* x = &node.input(0);
    if (compare(x->type().dim(1), channels) == Equality::Unknown) {
        Shape shape = x->type().shape();
        shape[1] = channels;
        x = &node.build.fit(*x, shape);
    }
    return make_two_dimensional(node.build, *x);
}

Value* bias(Node& node, int64_t channels) {
    Value* bias = node.optional_input(2);
    return bias && bias->type().rank() == 1 ? &node.build.fit(*bias, {channels}) : bias;
}

// x [N,C,...], w [K,C/group,...], bias [K].
Values conv(Node& node) {
    GraphBuilder& build = node.build;
    Weights weights = read_weights(node);
    std::vector<int64_t> kernel = weights.kernel();
    Window window = read_window(node, &kernel);
    make_two_dimensional(window);
    Value* x = &image(node, weights.sizes[1] * weights.groups);
    if (!window.has_fixed_padding()) x = &pad_explicitly(build, *x, window, 0);
    Value& result = build.make(window.kernel.size() == 2 ? "conv2d" : "conv3d",
                               {x, &make_two_dimensional(build, node.input(1)), bias(node, weights.sizes[0])},
                               {{"strides", window.strides},
                                {"dilations", window.dilations},
                                {"pads", window.pads()},
                                {"groups", weights.groups}});
    return {&finish_windows(build, result, window, node.type(0).rank())};
}

// One axis of a transposed convolution.
struct Cut {
    Dim begin; // what is cut from the result's beginning
    Dim size;
};

Cut cut_of(const Node& node, size_t i, int64_t kernel, int64_t stride, int64_t dilation) {
    size_t axes = static_cast<size_t>(node.type(0).rank()) - 2;
    std::vector<int64_t> more = read_integers(node, "output_padding", axes, 0, 0);
    std::vector<int64_t> pads = read_integers(node, "pads", 2 * axes, 0, 0);
    const Dim& in = node.type(0).shape()[2 + i];
    Dim whole = (in - 1) * Dim(stride) + (dilation * (kernel - 1) + 1 + more[i]);
    bool is_same = pads_to_same(node);
    if (!is_same && !node.has_attribute("output_shape")) {
        if (node.text("auto_pad", "NOTSET") == "VALID") return {0, whole};
        return {pads[i], whole - pads[i] - pads[axes + i]};
    }
    Dim size = in * Dim(stride);
    if (node.has_attribute("output_shape")) size = read_integers(node, "output_shape", axes, 0, 0)[i];
    Dim total = Dim::max(whole - size, 0), half = Dim::floordiv(total, 2);
    return {node.text("auto_pad", "NOTSET") == "SAME_UPPER" ? half : total - half, size};
}

// x [N,C,...], w [C,K/group,...], bias [K].
Values conv_transpose(Node& node) {
    GraphBuilder& build = node.build;
    Weights weights = read_weights(node);
    std::vector<int64_t> kernel = weights.kernel();
    size_t axes = kernel.size();
    if (axes > 3) node.unsupported(fmt::format("windows over {} axes", axes));
    if (node.has_attribute("kernel_shape") && read_integers(node, "kernel_shape", axes, 1, 1) != kernel)
        bad_attribute("attribute \"kernel_shape\" contradicts the weights");
    std::vector<int64_t> strides = read_integers(node, "strides", axes, 1, 1);
    std::vector<int64_t> dilations = read_integers(node, "dilations", axes, 1, 1);
    std::vector<int64_t> pads;
    std::vector<Cut> open; // what begins at a place that depends on a size is cut out afterwards
    Shape sizes;
    for (size_t i = 0; i < axes; i++) {
        Cut cut = cut_of(node, i, kernel[i], strides[i], dilations[i]);
        if (auto size = cut.size.constant(); size && *size < 0)
            throw ImportError("shape-mismatch", fmt::format("the padding is more than axis {} of the result", 2 + i));
        auto begin = cut.begin.constant();
        pads.push_back(begin.value_or(0));
        sizes.push_back(begin ? cut.size : cut.begin + cut.size);
        open.push_back(begin ? Cut{0, cut.size} : cut);
    }
    if (axes == 1) {
        for (auto* list : {&strides, &dilations}) list->insert(list->begin(), 1);
        pads.insert(pads.begin(), 0);
        sizes.insert(sizes.begin(), 1);
    }
    Value* result = &build.make(
        axes == 3 ? "conv_transpose3d" : "conv_transpose2d",
        {&image(node, weights.sizes[0]), &make_two_dimensional(build, node.input(1)),
         bias(node, weights.sizes[1] * weights.groups)},
        {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"sizes", sizes}, {"groups", weights.groups}});
    if (axes == 1) result = &build.squeeze(*result, {2});
    for (size_t i = 0; i < axes; i++)
        result = &build.slice(*result, static_cast<int64_t>(2 + i), open[i].begin, open[i].size);
    return {result};
}

// The windows of an image, added up.
Values col2im(Node& node) {
    GraphBuilder& build = node.build;
    Shape image = node.counts(1, "a size of the image"), block = node.counts(2, "a size of the block");
    size_t axes = image.size();
    if (axes == 0 || axes != block.size()) bad_attribute("image_shape and block_shape have different lengths");
    if (axes > 3) node.unsupported(fmt::format("windows over {} axes", axes));
    if (node.type(0).rank() != 3)
        throw ImportError("shape-mismatch", fmt::format("{} is no batch of windows", node.type(0).text()));
    std::vector<int64_t> strides = read_integers(node, "strides", axes, 1, 1);
    std::vector<int64_t> dilations = read_integers(node, "dilations", axes, 1, 1);
    std::vector<int64_t> pads = read_integers(node, "pads", 2 * axes, 0, 0);
    if (axes == 1) {
        image.insert(image.begin(), 1), block.insert(block.begin(), 1);
        strides.insert(strides.begin(), 1), dilations.insert(dilations.begin(), 1);
        pads = {0, pads[0], 0, pads[1]};
    }
    Dim taps = 1, windows = 1;
    for (size_t i = 0; i < image.size(); i++) {
        build.require_at_least(block[i], 1, "a size of the block");
        taps = taps * block[i];
        windows = windows * window_output(image[i], block[i], strides[i], dilations[i],
                                          Dim(pads[i]) + Dim(pads[image.size() + i]));
    }
    const Dim rows = node.type(0).dim(1);
    build.require_equal(Dim::floordiv(rows, Dim::max(taps, 1)) * taps, rows);
    build.require_equal(node.type(0).dim(2), windows);
    Value& result = build.make(
        axes == 3 ? "col2im3d" : "col2im2d", {&node.input(0)},
        {{"kernel", block}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"sizes", image}});
    return {&build.name_sizes(axes == 1 ? build.squeeze(result, {2}) : result)};
}

const Row rows[] = {
    {"Col2Im", 18, newest, col2im, 3, 3, "dilations pads strides", "col2im2d"},
    {"Conv", 1, newest, conv, 2, 3, "auto_pad dilations group kernel_shape pads strides", "conv2d"},
    {"ConvTranspose", 1, newest, conv_transpose, 2, 3,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides", "conv_transpose2d"},
};

} // namespace

std::span<const Row> convolution_rows() { return rows; }

} // namespace cuvil::onnx
