// Sliding windows without weights.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

// x [N,C,in...] -> [N,C,out...].
template <size_t axes> void infer_pool(Inference& in) {
    const Type& x = in.ranked(0);
    if (x.rank() != axes + 2) in.fail("operand " + x.text() + " is not of rank " + std::to_string(axes + 2));
    expect_ints(in, "kernel", axes, 1);
    expect_ints(in, "strides", axes, 1);
    expect_ints(in, "dilations", axes, 1);
    expect_ints(in, "pads", 2 * axes, 0);
    const auto& kernel = in.node().get<std::vector<int64_t>>("kernel");
    const auto& strides = in.node().get<std::vector<int64_t>>("strides");
    const auto& dilations = in.node().get<std::vector<int64_t>>("dilations");
    const auto& pads = in.node().get<std::vector<int64_t>>("pads");
    Shape shape = x.shape();
    for (size_t i = 0; i < axes; i++)
        shape[2 + i] =
            window_output(shape[2 + i], kernel[i], strides[i], dilations[i], Dim(pads[i]) + Dim(pads[i + axes]));
    in.result(x.with_layout({}).with_shape(std::move(shape)));
}

template <size_t axes> void infer_indices(Inference& in) {
    infer_pool<axes>(in);
    in.result(Type::tensor(DType::I64, in.node().result().type().shape()));
}

std::vector<AttributeDef> window_attributes(size_t axes, std::vector<AttributeDef> own = {}) {
    std::vector<AttributeDef> all = {
        {"kernel", AttributeKind::Ints},
        {"strides", AttributeKind::Ints, std::vector<int64_t>(axes, 1)},
        {"dilations", AttributeKind::Ints, std::vector<int64_t>(axes, 1)},
        {"pads", AttributeKind::Ints, std::vector<int64_t>(2 * axes, 0)},
    };
    all.insert(all.end(), own.begin(), own.end());
    return all;
}

OpDef indices(std::string_view name, size_t axes, void (*infer)(Inference&)) {
    return {
        .name = name,
        .summary = "Where the first largest value under each window lies among all of x, in row-major order or, with "
                   "column_major, with the first axis of an image as the fastest",
        .operands = {{"x", Accepts::Number}},
        .attributes = window_attributes(axes, {{"column_major", AttributeKind::Bool, false}}),
        .infer = infer,
        .lower = kernel("pool_indices"),
    };
}

const OpDef defs[] = {
    {
        .name = "max_pool2d",
        .summary = "The largest value under each window of x [N,C,H,W]; padding never wins, NaN does",
        .operands = {{"x", Accepts::Number}},
        .attributes = window_attributes(2),
        .infer = infer_pool<2>,
        .lower = kernel("max_pool2d"),
    },
    {
        .name = "avg_pool2d",
        .summary = "The mean under each window of x [N,C,H,W], over the real elements or, with count_include_pad, the "
                   "padded ones too",
        .operands = {{"x", Accepts::Floating}},
        .attributes = window_attributes(2, {{"count_include_pad", AttributeKind::Bool, false}}),
        .infer = infer_pool<2>,
        .lower = kernel("avg_pool2d"),
    },
    {
        .name = "sum_pool2d",
        .summary = "The sum under each window of x [N,C,H,W]",
        .operands = {{"x", Accepts::Number}},
        .attributes = window_attributes(2),
        .infer = infer_pool<2>,
        .lower = kernel("sum_pool2d"),
    },
    indices("max_pool2d_indices", 2, infer_indices<2>),
    indices("max_pool3d_indices", 3, infer_indices<3>),
};

} // namespace

std::span<const OpDef> pooling_ops() { return defs; }

} // namespace cuvil
