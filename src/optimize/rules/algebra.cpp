// Algebra on elements.
//
// Absent on purpose, as they are not exact for floats: x + 0 (-0 + 0 is 0), x - (-0), x * 0 and x - x (NaN,
// infinities), x / x, sqrt(x) * sqrt(x).
#include "optimize/rules/rule.hpp"

namespace cuvil {
namespace {

const Rule rules[] = {
    {"mul_one", "%r = mul %x, 1", {}, "%x"},
    {"div_one", "%r = div %x, 1", {}, "%x"},
    // For integers -0.0 is 0. For floats x + -0 is x for every x, -0 included.
    {"add_zero", "%r = add %x, -0.0", {}, "%x"},
    {"sub_zero", "%r = sub %x, 0", {}, "%x"},
    {"relu_relu", "%once = relu %x  %r = relu %once", {}, "%once"},
    {"abs_abs", "%once = abs %x  %r = abs %once", {}, "%once"},
    {"floor_floor", "%once = floor %x  %r = floor %once", {}, "%once"},
    {"ceil_ceil", "%once = ceil %x  %r = ceil %once", {}, "%once"},
    {"round_round", "%once = round %x  %r = round %once", {}, "%once"},
    {"neg_neg", "%once = neg %x  %r = neg %once", {}, "%x"},
    {"not_not", "%once = logical_not %x  %r = logical_not %once", {}, "%x"},
};

} // namespace

std::span<const Rule> algebra_rules() { return rules; }

} // namespace cuvil
