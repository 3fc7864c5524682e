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

// scale and bias have the shape of x from the axis on.
void infer_norm(Inference& in) {
    const Type& x = in.ranked(0);
    int64_t axis = normal_axis(in, in.node().get<int64_t>("axis"), x.rank());
    Type row = Type::tensor(x.dtype(), Shape(x.shape().begin() + axis, x.shape().end()));
    for (size_t i = 1; i < in.operand_count(); i++)
        if (in.has_operand(i) && in.type(i) != row)
            in.fail("operand '" + std::string(in.node().def().operands[i].name) + "' is " + in.type(i).text() +
                    ", expected " + row.text());
    in.result(x.with_layout({}));
}

const TestGrid layer_norm_grid{
    {{{1}, {1}, {1}}, {{17}, {17}, {17}}, {{3, 5}, {5}, {5}}, {{2, 65}, {65}, {65}}, {{0, 3}, {3}, {3}}},
    {"f32", "f64"}};
const TestGrid rms_norm_grid{{{{1}, {1}}, {{17}, {17}}, {{3, 5}, {5}}, {{2, 65}, {65}}, {{0, 3}, {3}}}, {"f32", "f64"}};

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
        .name = "hardmax",
        .summary = "1 at the first largest value along the axis, 0 elsewhere; NaN counts as the largest",
        .operands = {{"x", Accepts::Floating}},
        .attributes = {{"axis", AttributeKind::Int, int64_t{-1}}},
        .infer = infer_softmax,
        .lower = kernel("hardmax"),
        .reference = "(np.arange(x.shape[-1]) == x.argmax(-1)[..., None]).astype(x.dtype)",
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
    {
        .name = "layer_norm",
        .summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and the variance of all axes "
                   "from `axis` on",
        .operands = {{"x", Accepts::Floating},
                     {"scale", Accepts::Floating, OperandDef::Optional},
                     {"bias", Accepts::Floating, OperandDef::Optional}},
        .attributes = {{"axis", AttributeKind::Int, int64_t{-1}}, {"epsilon", AttributeKind::Float, 1e-5}},
        .infer = infer_norm,
        .lower = kernel("layer_norm"),
        .reference = "(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias",
        .tests = &layer_norm_grid,
    },
    {
        .name = "rms_norm",
        .summary = "x / sqrt(mean of x^2 + epsilon) * scale, with the mean of all axes from `axis` on",
        .operands = {{"x", Accepts::Floating}, {"scale", Accepts::Floating, OperandDef::Optional}},
        .attributes = {{"axis", AttributeKind::Int, int64_t{-1}}, {"epsilon", AttributeKind::Float, 1e-5}},
        .infer = infer_norm,
        .lower = kernel("rms_norm"),
        .reference = "x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale",
        .tests = &rms_norm_grid,
    },
};

} // namespace

std::span<const OpDef> normalization_ops() { return defs; }

} // namespace cuvil
