// Composite ops that normalise.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

void infer_softmax(Inference& in) {
    normal_axis(in, in.node().get<int64_t>("axis"), in.ranked(0).rank());
    in.result(in.type(0));
}

void infer_batch_norm(Inference& in) {
    const Type& x = in.ranked(0);
    if (x.rank() < 2) in.fail("operand " + x.text() + " has no channel axis");
    for (size_t i = 1; i < 5; i++)
        if (in.type(i) != Type::tensor(x.dtype(), {x.dim(1)}))
            in.fail("operand '" + std::string(in.node().def().operands[i].name) + "' is " + in.type(i).text() +
                    ", expected " + Type::tensor(x.dtype(), {x.dim(1)}).text());
    in.result(x);
}

const TestGrid softmax_grid{{{{1}}, {{17}}, {{3, 5}}, {{2, 33}}, {{0, 3}}, {{4, 3, 16}}}, {"f32", "f64"}};

const OpDef defs[] = {
    {
        .name = "softmax",
        .summary = "exp(x - max) / sum of exp(x - max) along the axis",
        .operands = {{"x", Accepts::Floating}},
        .attributes = {{"axis", AttributeKind::Int, int64_t{-1}}},
        .infer = infer_softmax,
        .lower = kernel("softmax"),
        .reference =
            "np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)",
        .tests = &softmax_grid,
    },
    {
        .name = "log_softmax",
        .summary = "log of softmax, without leaving the range: x - max - log(sum of exp(x - max)) along the axis",
        .operands = {{"x", Accepts::Floating}},
        .attributes = {{"axis", AttributeKind::Int, int64_t{-1}}},
        .infer = infer_softmax,
        .lower = kernel("log_softmax"),
        .reference =
            "x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))",
        .tests = &softmax_grid,
    },
    {
        .name = "batch_norm",
        .summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias for each channel (axis 1)",
        .operands = {{"x", Accepts::Floating},
                     {"scale", Accepts::Floating},
                     {"bias", Accepts::Floating},
                     {"mean", Accepts::Floating},
                     {"variance", Accepts::Floating}},
        .attributes = {{"epsilon", AttributeKind::Float, 1e-5}},
        .infer = infer_batch_norm,
    },
};

} // namespace

std::span<const OpDef> normalization_ops() { return defs; }

} // namespace cuvil
