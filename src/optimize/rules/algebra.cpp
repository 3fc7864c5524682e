// Algebra on elements.
//
// Absent on purpose, as they are not exact for floats: x + 0 (-0 + 0 is 0), x - (-0), x * 0 and x - x (NaN,
// infinities), x / x, sqrt(x) * sqrt(x).
#include "optimize/constants.hpp"
#include "optimize/rules/rule.hpp"

#include <algorithm>

namespace cuvil {
namespace {

bool is_float(const MatchContext& match) { return is_floating(match["x"]->type().dtype()); }

// Integers that are cast wrap; floats that are cast to integers saturate. So both casts are of one kind, and the first
// keeps all values.
bool keeps_values(const MatchContext& match) {
    DType from = match["x"]->type().dtype(), via = match.get<DType>("via");
    if (from == DType::Bool) return is_integer(via) || is_floating(via);
    if (size_of(via) < size_of(from)) return false;
    if (is_floating(from)) return is_floating(via) && (size_of(via) > size_of(from) || via == from);
    if (!is_integer(from) || !is_integer(via)) return false;
    return via == from || (size_of(via) > size_of(from) && (is_signed_integer(via) || is_unsigned_integer(from)));
}

FusedOp cast_at_once(const MatchResult& match) {
    return &match.make("cast", {match["x"]}, {{"to", match.get<DType>("to")}});
}

// All axes that are reduced have size 1.
bool reduces_nothing(const MatchContext& match) {
    return std::ranges::all_of(match.get<std::vector<int64_t>>("axes"),
                               [&](int64_t axis) { return match["x"]->type().dim(axis).is(1); });
}

bool has_one_element(const MatchContext& match) { return match["x"]->type().dim(match.get<int64_t>("axis")).is(1); }

FusedOp plus(const MatchResult& match, Value& x, double number) {
    Value* scalar = number_of(match.rewriter(), x.type().dtype(), number);
    return scalar ? &match.make("add", {&x, &match.make("broadcast", {scalar}, {{"shape", x.type().shape()}})})
                  : nullptr;
}

FusedOp plus_zero(const MatchResult& match) { return plus(match, *match["x"], 0); }

FusedOp minus_itself(const MatchResult& match) { return &match.make("sub", {match["x"], match["x"]}); }

// NaN and infinities give NaN, all others 1.
FusedOp one_if_finite(const MatchResult& match) { return plus(match, *minus_itself(match), 1); }

const Rule rules[] = {
    {"mul_one", "%r = mul %x, 1", {}, "%x"},
    {"div_one", "%r = div %x, 1", {}, "%x"},
    // For integers -0.0 is 0. For floats x + -0 is x for every x, -0 included.
    {"add_zero", "%r = add %x, -0.0", {}, "%x"},
    {"div_of_one", "%r = div 1, %x", is_float, [](const MatchResult& m) { return &m.make("reciprocal", {m["x"]}); }},
    {"sub_zero", "%r = sub %x, 0", {}, "%x"},
    {"relu_relu", "%once = relu %x  %r = relu %once", {}, "%once"},
    {"abs_abs", "%once = abs %x  %r = abs %once", {}, "%once"},
    {"floor_floor", "%once = floor %x  %r = floor %once", {}, "%once"},
    {"ceil_ceil", "%once = ceil %x  %r = ceil %once", {}, "%once"},
    {"round_round", "%once = round %x  %r = round %once", {}, "%once"},
    {"neg_neg", "%once = neg %x  %r = neg %once", {}, "%x"},
    {"not_not", "%once = logical_not %x  %r = logical_not %once", {}, "%x"},
    {"cast_of_cast", "%1 = cast %x {to = %via}  %r = cast %1 {to = %to}", keeps_values, cast_at_once},
    {"max_of_one", "%r = reduce_max %x {axes = %axes}", reduces_nothing, "%x"},
    {"min_of_one", "%r = reduce_min %x {axes = %axes}", reduces_nothing, "%x"},
    {"prod_of_one", "%r = reduce_prod %x {axes = %axes}", reduces_nothing, "%x"},
    // Sums begin with 0, and 0 + -0 is 0.
    {"sum_of_one", "%r = reduce_sum %x {axes = %axes}", reduces_nothing, plus_zero},
    {"mean_of_one", "%r = reduce_mean %x {axes = %axes}", reduces_nothing, plus_zero},
    {"softmax_of_one", "%r = softmax %x {axis = %axis}", has_one_element, one_if_finite},
    {"log_softmax_of_one", "%r = log_softmax %x {axis = %axis}", has_one_element, minus_itself},
};

} // namespace

std::span<const Rule> algebra_rules() { return rules; }

} // namespace cuvil
