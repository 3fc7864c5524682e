// Recurrent layers in one direction. The product of the inputs with their weights comes as x.
#include "ops/recurrent.hpp"

#include "ops/families.hpp"
#include "ops/infer.hpp"

#include <algorithm>

namespace cuvil {
namespace {

constexpr RecurrentActivation activations[] = {
    {"affine", "alpha * v + beta"},
    {"elu", "select(v < splat(T(0)), alpha * (exp(v) - splat(T(1))), v)"},
    {"hard_sigmoid", "maximum(minimum(alpha * v + beta, splat(T(1))), splat(T(0)))"},
    {"leaky_relu", "select(v < splat(T(0)), alpha * v, v)"},
    {"relu", "relu(v)"},
    {"scaled_tanh", "alpha * tanh(beta * v)"},
    {"sigmoid", "sigmoid(v)"},
    {"softplus", "maximum(v, splat(T(0))) + log1p(exp(-abs(v)))"},
    {"softsign", "v / (splat(T(1)) + abs(v))"},
    {"tanh", "tanh(v)"},
    {"thresholded_relu", "select(v < alpha, splat(T(0)), v)"},
};

void expect_type(const Inference& in, size_t i, const Type& expected) {
    if (in.has_operand(i) && in.type(i).with_layout({}) != expected)
        in.fail("operand '" + std::string(in.node().def().operands[i].name) + "' is " + in.type(i).text() +
                ", expected " + expected.text());
}

// x [steps,batch,gates*hidden], weights [gates,hidden,hidden] -> y [steps,batch,hidden] and the last states
// [batch,hidden].
void infer_recurrent(Inference& in, int64_t gates, size_t functions, size_t states) {
    const Type &x = in.ranked(0), &w = in.ranked(1);
    if (x.rank() != 3 || w.rank() != 3) in.fail("operands " + x.text() + " and " + w.text() + " are not of rank 3");
    Dim steps = x.dim(0), batch = x.dim(1), hidden = w.dim(2);
    expect_type(in, 0, Type::tensor(x.dtype(), {steps, batch, hidden * Dim(gates)}));
    expect_type(in, 1, Type::tensor(x.dtype(), {gates, hidden, hidden}));
    for (size_t i = 0; i < states; i++) expect_type(in, 2 + i, Type::tensor(x.dtype(), {batch, hidden}));
    expect_type(in, 2 + states, Type::tensor(DType::I32, {batch}));
    for (std::string_view name : {"alphas", "betas"})
        if (in.node().get<std::vector<double>>(name).size() != functions)
            in.fail("attribute '" + std::string(name) + "' needs " + std::to_string(functions) + " numbers");
    const auto& names = in.node().get<std::vector<std::string>>("activations");
    if (names.size() != functions) in.fail("attribute 'activations' needs " + std::to_string(functions) + " names");
    for (const std::string& name : names)
        if (recurrent_activation(name).empty()) in.fail("there is no activation \"" + name + "\"");
    in.result(Type::tensor(x.dtype(), {steps, batch, hidden}));
    for (size_t i = 0; i < states; i++) in.result(Type::tensor(x.dtype(), {batch, hidden}), 1 + i);
}

void infer_lstm(Inference& in) {
    infer_recurrent(in, 4, 3, 2);
    expect_type(in, 5, Type::tensor(in.type(0).dtype(), {3, in.type(1).dim(2)}));
}

void infer_gru(Inference& in) {
    infer_recurrent(in, 3, 2, 1);
    expect_type(in, 4, Type::tensor(in.type(0).dtype(), {in.type(1).dim(2)}));
}

void infer_rnn(Inference& in) { infer_recurrent(in, 1, 1, 1); }

// Each of the `activations` has an alpha and a beta, used or not.
std::vector<AttributeDef> attributes(std::vector<std::string> activations, std::vector<AttributeDef> own) {
    std::vector<double> alphas(activations.size(), 0), betas(activations.size(), 0);
    own.push_back({"reverse", AttributeKind::Bool, false});
    own.push_back({"activations", AttributeKind::Strings, std::move(activations)});
    own.push_back({"alphas", AttributeKind::Floats, alphas});
    own.push_back({"betas", AttributeKind::Floats, betas});
    own.push_back({"clip", AttributeKind::Float, 0.0});
    return own;
}

const OpDef defs[] = {
    {
        .name = "lstm",
        .summary =
            "A layer of LSTM cells: all states, the last state and the last cell; gates are input, output, forget, "
            "cell",
        .operands = {{"x", Accepts::Floating},
                     {"weights", Accepts::Floating},
                     {"initial_h", Accepts::Floating},
                     {"initial_c", Accepts::Floating},
                     {"lengths", Accepts::Integer, OperandDef::Optional},
                     {"peepholes", Accepts::Floating, OperandDef::Optional}},
        .attributes = attributes({"sigmoid", "tanh", "tanh"}, {{"couples", AttributeKind::Bool, false}}),
        .results = {"y", "h", "c"},
        .infer = infer_lstm,
        .lower = kernel("recurrent"),
    },
    {
        .name = "gru",
        .summary = "A layer of gated recurrent units: all states and the last one; gates are update, reset, hidden",
        .operands = {{"x", Accepts::Floating},
                     {"weights", Accepts::Floating},
                     {"initial_h", Accepts::Floating},
                     {"lengths", Accepts::Integer, OperandDef::Optional},
                     {"reset_bias", Accepts::Floating, OperandDef::Optional}},
        .attributes = attributes({"sigmoid", "tanh"}, {{"resets_product", AttributeKind::Bool, false}}),
        .results = {"y", "h"},
        .infer = infer_gru,
        .lower = kernel("recurrent"),
    },
    {
        .name = "rnn",
        .summary = "A layer of simple recurrent units: all states and the last one",
        .operands = {{"x", Accepts::Floating},
                     {"weights", Accepts::Floating},
                     {"initial_h", Accepts::Floating},
                     {"lengths", Accepts::Integer, OperandDef::Optional}},
        .attributes = attributes({"tanh"}, {}),
        .results = {"y", "h"},
        .infer = infer_rnn,
        .lower = kernel("recurrent"),
    },
};

} // namespace

std::span<const RecurrentActivation> recurrent_activations() { return activations; }

std::string_view recurrent_activation(std::string_view name) {
    const auto* found = std::ranges::find(activations, name, &RecurrentActivation::name);
    return found == std::end(activations) ? std::string_view() : found->expression;
}

std::span<const OpDef> recurrent_ops() { return defs; }

} // namespace cuvil
