// Elementwise activation functions.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

const OpDef defs[] = {
    {
        .name = "relu",
        .summary = "0 where x is below 0, else x; NaN stays NaN",
        .operands = {{"x", Accepts::Number}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("relu(x)"),
        .reference = "np.maximum(x, 0)",
        .tests = &unary_grid,
    },
    {
        .name = "sigmoid",
        .summary = "1 / (1 + exp(-x))",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("sigmoid(x)"),
        .reference = "1 / (1 + np.exp(-x))",
        .tests = &unary_grid,
    },
    {
        .name = "softplus",
        .summary = "log(1 + exp(x)), without leaving the range",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("add(relu(x), log1p(exp(neg(abs(x)))))"),
        .reference = "np.logaddexp(x, 0)",
        .tests = &unary_grid,
    },
    {
        .name = "tanh",
        .summary = "The hyperbolic tangent",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("tanh(x)"),
        .reference = "np.tanh(x)",
        .tests = &unary_grid,
    },
    {
        .name = "erf",
        .summary = "The error function",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("erf(x)"),
        .reference = "erf(x)",
        .tests = &unary_grid,
    },
    {
        .name = "gelu",
        .summary = "x times the standard normal distribution function of x",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("gelu(x)"),
        .reference = "x * (1 + erf(x / np.sqrt(2))) / 2",
        .tests = &unary_grid,
    },
    {
        .name = "gelu_tanh",
        .summary = "An approximation of gelu: x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("gelu_tanh(x)"),
        .reference = "x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2",
        .tests = &unary_grid,
    },
    {
        .name = "silu",
        .summary = "x * sigmoid(x)",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("silu(x)"),
        .reference = "x / (1 + np.exp(-x))",
        .tests = &unary_grid,
    },
    {
        .name = "hard_swish",
        .summary = "x * clamp(x / 6 + 0.5, 0, 1)",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("hard_swish(x)"),
        .reference = "x * np.clip(x / 6 + 0.5, 0, 1)",
        .tests = &unary_grid,
    },
    {
        .name = "mish",
        .summary = "x * tanh(softplus(x))",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = pure | elementwise,
        .lower = scalar_loop("mish(x)"),
        .reference = "x * np.tanh(np.logaddexp(x, 0))",
        .tests = &unary_grid,
    },
};

} // namespace

std::span<const OpDef> activation_ops() { return defs; }

} // namespace cuvil
