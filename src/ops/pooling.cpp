// Sliding windows without weights.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

void infer_pool2d(Inference& in) {
    const Type& x = in.ranked(0);
    if (x.rank() != 4) in.fail("operand " + x.text() + " is not of rank 4");
    expect_ints(in, "kernel", 2, 1);
    expect_ints(in, "strides", 2, 1);
    expect_ints(in, "dilations", 2, 1);
    expect_ints(in, "pads", 4, 0);
    const auto& kernel = in.node().get<std::vector<int64_t>>("kernel");
    const auto& strides = in.node().get<std::vector<int64_t>>("strides");
    const auto& dilations = in.node().get<std::vector<int64_t>>("dilations");
    const auto& pads = in.node().get<std::vector<int64_t>>("pads");
    Shape shape = x.shape();
    for (size_t i = 0; i < 2; i++)
        shape[2 + i] = window_output(x.dim(static_cast<int64_t>(2 + i)), kernel[i], strides[i], dilations[i],
                                     Dim(pads[i]) + Dim(pads[i + 2]));
    in.result(x.with_layout({}).with_shape(std::move(shape)));
}

const std::vector<AttributeDef> window_attributes = {
    {"kernel", AttributeKind::Ints},
    {"strides", AttributeKind::Ints, std::vector<int64_t>{1, 1}},
    {"dilations", AttributeKind::Ints, std::vector<int64_t>{1, 1}},
    {"pads", AttributeKind::Ints, std::vector<int64_t>{0, 0, 0, 0}},
};

std::vector<AttributeDef> with_count_include_pad() {
    std::vector<AttributeDef> all = window_attributes;
    all.push_back({"count_include_pad", AttributeKind::Bool, false});
    return all;
}

const OpDef defs[] = {
    {
        .name = "max_pool2d",
        .summary = "The largest value under each window of x [N,C,H,W]; padding never wins, NaN does",
        .operands = {{"x", Accepts::Number}},
        .attributes = window_attributes,
        .infer = infer_pool2d,
        .lower = kernel("max_pool2d"),
    },
    {
        .name = "avg_pool2d",
        .summary = "The mean under each window of x [N,C,H,W], over the real elements or, with count_include_pad, the "
                   "padded ones too",
        .operands = {{"x", Accepts::Floating}},
        .attributes = with_count_include_pad(),
        .infer = infer_pool2d,
        .lower = kernel("avg_pool2d"),
    },
};

} // namespace

std::span<const OpDef> pooling_ops() { return defs; }

} // namespace cuvil
