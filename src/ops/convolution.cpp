// Convolutions.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

// Checks what all of them have in common: sizes of the weights, strides, dilations, groups, bias. Axis 0
// of the weights is the channels of x (`transposed`) or of the result, axis 1 what a group has of the others.
struct Convolved {
    std::vector<int64_t> kernel, strides, dilations, pads;
    Dim outputs; // channels of the result
};

Convolved check_convolution(Inference& in, size_t axes, size_t pads, bool transposed) {
    const Type &x = in.ranked(0), &w = in.ranked(1);
    auto rank = static_cast<int64_t>(axes) + 2;
    if (x.rank() != rank || w.rank() != rank)
        in.fail("operands " + x.text() + " and " + w.text() + " are not of rank " + std::to_string(rank));
    if (x.dtype() != w.dtype()) in.fail("operands have different dtypes, " + x.text() + " and " + w.text());
    expect_ints(in, "strides", axes, 1);
    expect_ints(in, "dilations", axes, 1);
    expect_ints(in, "pads", pads, 0);
    int64_t groups = in.node().get<int64_t>("groups");
    std::vector<int64_t> sizes;
    for (const Dim& d : w.shape()) {
        auto size = d.constant();
        if (!size || (sizes.size() >= 2 && *size < 1))
            in.fail("the weight's sizes " + w.text() + " are not fixed and positive");
        sizes.push_back(*size);
    }
    int64_t whole = sizes[0], share = sizes[1];
    if (groups < 1 || whole % groups != 0)
        in.fail(std::to_string(whole) + (transposed ? " input" : " output") + " channels in " + std::to_string(groups) +
                " groups");
    Dim inputs = transposed ? Dim(whole) : Dim(share) * Dim(groups);
    Dim outputs = transposed ? Dim(share) * Dim(groups) : Dim(whole);
    if (x.dim(1) != inputs)
        in.fail("the input has " + x.dim(1).text() + " channels, the weight expects " + inputs.text());
    Type bias = Type::tensor(x.dtype(), {outputs});
    if (in.has_operand(2) && in.type(2) != bias)
        in.fail("the bias is " + in.type(2).text() + ", expected " + bias.text());
    return {{sizes.begin() + 2, sizes.end()},
            in.node().get<std::vector<int64_t>>("strides"),
            in.node().get<std::vector<int64_t>>("dilations"),
            in.node().get<std::vector<int64_t>>("pads"),
            outputs};
}

// x [N,C,in...], weight [K,C/groups,kernel...], bias [K] -> [N,K,out...].
template <size_t axes> void infer_conv(Inference& in) {
    Convolved c = check_convolution(in, axes, 2 * axes, false);
    Shape shape = {in.type(0).dim(0), c.outputs};
    for (size_t i = 0; i < axes; i++)
        shape.push_back(window_output(in.type(0).shape()[2 + i], c.kernel[i], c.strides[i], c.dilations[i],
                                      Dim(c.pads[i]) + Dim(c.pads[axes + i])));
    in.result(in.type(0).with_layout({}).with_shape(std::move(shape)));
}

// x [N,C,in...], weight [C,K/groups,kernel...], bias [K] -> [N,K,sizes...].
template <size_t axes> void infer_conv_transpose(Inference& in) {
    Convolved c = check_convolution(in, axes, axes, true);
    const auto& sizes = in.node().get<Shape>("sizes");
    if (sizes.size() != axes) in.fail("attribute 'sizes' needs an entry for each axis");
    Shape shape = {in.type(0).dim(0), c.outputs};
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    in.result(in.type(0).with_layout({}).with_shape(std::move(shape)));
}

// x [N,C*taps,windows] -> [N,C,sizes...].
template <size_t axes> void infer_col2im(Inference& in) {
    const Type& x = in.ranked(0);
    expect_ints(in, "strides", axes, 1);
    expect_ints(in, "dilations", axes, 1);
    expect_ints(in, "pads", 2 * axes, 0);
    const auto& kernel = in.node().get<Shape>("kernel");
    const auto& pads = in.node().get<std::vector<int64_t>>("pads");
    const auto& sizes = in.node().get<Shape>("sizes");
    if (x.rank() != 3 || sizes.size() != axes || kernel.size() != axes)
        in.fail("windows " + x.text() + " of an image of other rank");
    Dim taps = 1, windows = 1;
    for (size_t i = 0; i < axes; i++) {
        taps = taps * kernel[i];
        windows = windows * window_output(sizes[i], kernel[i], in.node().get<std::vector<int64_t>>("strides")[i],
                                          in.node().get<std::vector<int64_t>>("dilations")[i],
                                          Dim(pads[i]) + Dim(pads[axes + i]));
    }
    Dim channels = Dim::floordiv(x.dim(1), Dim::max(taps, 1));
    if (compare(channels * taps, x.dim(1)) == Equality::Different)
        in.fail(x.dim(1).text() + " rows are not a number of windows of " + taps.text() + " taps");
    if (compare(x.dim(2), windows) == Equality::Different)
        in.fail(x.dim(2).text() + " windows, the image has " + windows.text());
    Shape shape = {x.dim(0), channels};
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    in.result(x.with_layout({}).with_shape(std::move(shape)));
}

template <size_t axes> OpDef col2im(std::string_view name) {
    return {
        .name = name,
        .summary = "The windows of a padded image, each a column of x, added up where they overlap",
        .operands = {{"x", Accepts::Number}},
        .attributes = {{"kernel", AttributeKind::Dims},
                       {"strides", AttributeKind::Ints, std::vector<int64_t>(axes, 1)},
                       {"dilations", AttributeKind::Ints, std::vector<int64_t>(axes, 1)},
                       {"pads", AttributeKind::Ints, std::vector<int64_t>(2 * axes, 0)},
                       {"sizes", AttributeKind::Dims}},
        .infer = infer_col2im<axes>,
        .lower = kernel("col2im"),
    };
}

std::vector<OperandDef> operands() {
    return {{"x", Accepts::Number}, {"weight", Accepts::Number}, {"bias", Accepts::Number, OperandDef::Optional}};
}

// Attributes of `axes` spatial axes with `pads` pads.
std::vector<AttributeDef> attributes(size_t axes, size_t pads, std::vector<AttributeDef> own = {}) {
    std::vector<AttributeDef> all = {
        {"strides", AttributeKind::Ints, std::vector<int64_t>(axes, 1)},
        {"dilations", AttributeKind::Ints, std::vector<int64_t>(axes, 1)},
        {"pads", AttributeKind::Ints, std::vector<int64_t>(pads, 0)},
        {"groups", AttributeKind::Int, int64_t{1}},
    };
    all.insert(all.end(), own.begin(), own.end());
    return all;
}

const OpDef defs[] = {
    {
        .name = "conv2d",
        .summary =
            "The 2-D cross-correlation of zero-padded x with weight, plus bias; pads are top, left, bottom, right",
        .operands = operands(),
        .attributes = attributes(2, 4),
        .infer = infer_conv<2>,
        .lower = kernel("conv2d"),
    },
    {
        .name = "conv3d",
        .summary =
            "The 3-D cross-correlation of zero-padded x with weight, plus bias; pads are those before each axis, "
            "then those behind",
        .operands = operands(),
        .attributes = attributes(3, 6),
        .infer = infer_conv<3>,
        .lower = kernel("conv_any"),
    },
    {
        .name = "conv_transpose2d",
        .summary =
            "Each x[i] times the window, added up where i * strides + tap * dilations - pads lies, as far as the "
            "result's sizes reach, plus bias",
        .operands = operands(),
        .attributes = attributes(2, 2, {{"sizes", AttributeKind::Dims}}),
        .infer = infer_conv_transpose<2>,
        .lower = kernel("conv_transpose2d"),
    },
    {
        .name = "conv_transpose3d",
        .summary = "The same with windows over three axes",
        .operands = operands(),
        .attributes = attributes(3, 3, {{"sizes", AttributeKind::Dims}}),
        .infer = infer_conv_transpose<3>,
        .lower = kernel("conv_transpose_any"),
    },
    col2im<2>("col2im2d"),
    col2im<3>("col2im3d"),
};

} // namespace

std::span<const OpDef> convolution_ops() { return defs; }

} // namespace cuvil
