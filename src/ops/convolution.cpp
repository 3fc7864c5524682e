// Convolutions.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

// x [N,C,H,W], weight [K,C/groups,R,S], bias [K] -> [N,K,OH,OW].
void infer_conv2d(Inference& in) {
    const Type &x = in.ranked(0), &w = in.ranked(1);
    if (x.rank() != 4 || w.rank() != 4) in.fail("operands " + x.text() + " and " + w.text() + " are not of rank 4");
    if (x.dtype() != w.dtype()) in.fail("operands have different dtypes, " + x.text() + " and " + w.text());
    expect_ints(in, "strides", 2, 1);
    expect_ints(in, "dilations", 2, 1);
    expect_ints(in, "pads", 4, 0);
    const auto& strides = in.node().get<std::vector<int64_t>>("strides");
    const auto& dilations = in.node().get<std::vector<int64_t>>("dilations");
    const auto& pads = in.node().get<std::vector<int64_t>>("pads");
    int64_t groups = in.node().get<int64_t>("groups");
    auto k = w.dim(0).constant(), c = w.dim(1).constant(), r = w.dim(2).constant(), s = w.dim(3).constant();
    if (!k || !c || !r || !s || *r < 1 || *s < 1)
        in.fail("the weight's sizes " + w.text() + " are not fixed and positive");
    if (groups < 1 || *k % groups != 0)
        in.fail(std::to_string(*k) + " output channels in " + std::to_string(groups) + " groups");
    Dim channels = Dim(*c) * Dim(groups);
    if (x.dim(1) != channels)
        in.fail("the input has " + x.dim(1).text() + " channels, the weight expects " + channels.text());
    if (in.has_operand(2) && in.type(2) != Type::tensor(x.dtype(), {*k}))
        in.fail("the bias is " + in.type(2).text() + ", expected " + Type::tensor(x.dtype(), {*k}).text());
    in.result(x.with_layout({}).with_shape(
        {x.dim(0), *k, window_output(x.dim(2), *r, strides[0], dilations[0], Dim(pads[0]) + Dim(pads[2])),
         window_output(x.dim(3), *s, strides[1], dilations[1], Dim(pads[1]) + Dim(pads[3]))}));
}

const OpDef defs[] = {
    {
        .name = "conv2d",
        .summary =
            "The 2-D cross-correlation of zero-padded x with weight, plus bias; pads are top, left, bottom, right",
        .operands = {{"x", Accepts::Number},
                     {"weight", Accepts::Number},
                     {"bias", Accepts::Number, OperandDef::Optional}},
        .attributes = {{"strides", AttributeKind::Ints, std::vector<int64_t>{1, 1}},
                       {"dilations", AttributeKind::Ints, std::vector<int64_t>{1, 1}},
                       {"pads", AttributeKind::Ints, std::vector<int64_t>{0, 0, 0, 0}},
                       {"groups", AttributeKind::Int, int64_t{1}}},
        .infer = infer_conv2d,
        .lower = kernel("conv2d"),
    },
};

} // namespace

std::span<const OpDef> convolution_ops() { return defs; }

} // namespace cuvil
