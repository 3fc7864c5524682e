// Activations that exporters write out.
#include "optimize/rules/rule.hpp"

#include <array>
#include <string>

namespace cuvil {
namespace {

// The op on %x.
auto on_x(std::string_view op) {
    return [op](const MatchResult& match) -> FusedOp { return &match.make(op, {match["x"]}); };
}

bool is_float(const MatchContext& match) { return is_floating(match["x"]->type().dtype()); }

const Rule rules[] = {
    // x * x is correctly rounded, and needs no logarithm.
    {"pow_two", "%r = pow %x, 2", {}, [](const MatchResult& m) { return &m.make("mul", {m["x"], m["x"]}); }},
    {"silu", "%s = sigmoid %x  %r = mul %x, %s", {}, on_x("silu")},

    // x * clamp(x + 3, 0, 6) / 6, in the orders and with the clamps that exporters choose.
    {"hard_swish_div", "%a = add %x, 3  %low = maximum %a, 0  %c = minimum %low, 6  %m = mul %x, %c  %r = div %m, 6",
     is_float, on_x("hard_swish")},
    {"hard_swish_mul",
     "%a = add %x, 3  %low = maximum %a, 0  %c = minimum %low, 6  %m = mul %x, %c  %r = mul %m, 0.16666666666666666",
     is_float, on_x("hard_swish")},
    {"hard_swish_of_gate",
     "%a = add %x, 3  %low = maximum %a, 0  %c = minimum %low, 6  %g = div %c, 6  %r = mul %x, %g", is_float,
     on_x("hard_swish")},
    {"hard_swish_of_scaled_gate",
     "%a = add %x, 3  %low = maximum %a, 0  %c = minimum %low, 6  %g = mul %c, 0.16666666666666666  %r = mul %x, %g",
     is_float, on_x("hard_swish")},
    {"hard_swish_of_hard_sigmoid",
     "%m = mul %x, 0.16666666666666666  %a = add %m, 0.5  %high = minimum %a, 1  %g = maximum %high, 0  %r = mul %x, "
     "%g",
     is_float, on_x("hard_swish")},

    // 0.5 * x * (1 + erf(x / sqrt(2))): the half goes to the sum, to x or to the product.
    {"gelu_half_of_product",
     "%d = div %x, 1.4142135623730951  %e = erf %d  %a = add %e, 1  %m = mul %x, %a  %r = mul %m, 0.5",
     {},
     on_x("gelu")},
    {"gelu_half_of_x",
     "%d = div %x, 1.4142135623730951  %e = erf %d  %a = add %e, 1  %h = mul %x, 0.5  %r = mul %h, %a",
     {},
     on_x("gelu")},
    {"gelu_half_of_sum",
     "%d = div %x, 1.4142135623730951  %e = erf %d  %a = add %e, 1  %h = mul %a, 0.5  %r = mul %x, %h",
     {},
     on_x("gelu")},
    {"gelu_scaled_half_of_product",
     "%d = mul %x, 0.7071067811865476  %e = erf %d  %a = add %e, 1  %m = mul %x, %a  %r = mul %m, 0.5",
     {},
     on_x("gelu")},
    {"gelu_scaled_half_of_x",
     "%d = mul %x, 0.7071067811865476  %e = erf %d  %a = add %e, 1  %h = mul %x, 0.5  %r = mul %h, %a",
     {},
     on_x("gelu")},
    {"gelu_scaled_half_of_sum",
     "%d = mul %x, 0.7071067811865476  %e = erf %d  %a = add %e, 1  %h = mul %a, 0.5  %r = mul %x, %h",
     {},
     on_x("gelu")},

    // 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), with x^3 as a power or as products.
    {"gelu_tanh_half_of_x",
     "%p = pow %x, 3  %k = mul %p, 0.044715  %i = add %x, %k  %u = mul %i, 0.7978845608028654  %t = tanh %u  "
     "%a = add %t, 1  %h = mul %x, 0.5  %r = mul %h, %a",
     {},
     on_x("gelu_tanh")},
    {"gelu_tanh_half_of_product",
     "%p = pow %x, 3  %k = mul %p, 0.044715  %i = add %x, %k  %u = mul %i, 0.7978845608028654  %t = tanh %u  "
     "%a = add %t, 1  %m = mul %x, %a  %r = mul %m, 0.5",
     {},
     on_x("gelu_tanh")},
    {"gelu_tanh_of_products_half_of_x",
     "%q = mul %x, %x  %p = mul %q, %x  %k = mul %p, 0.044715  %i = add %x, %k  %u = mul %i, 0.7978845608028654  "
     "%t = tanh %u  %a = add %t, 1  %h = mul %x, 0.5  %r = mul %h, %a",
     {},
     on_x("gelu_tanh")},
    {"gelu_tanh_of_products_half_of_product",
     "%q = mul %x, %x  %p = mul %q, %x  %k = mul %p, 0.044715  %i = add %x, %k  %u = mul %i, 0.7978845608028654  "
     "%t = tanh %u  %a = add %t, 1  %m = mul %x, %a  %r = mul %m, 0.5",
     {},
     on_x("gelu_tanh")},
};

} // namespace

std::span<const Rule> activation_rules() { return rules; }

} // namespace cuvil
