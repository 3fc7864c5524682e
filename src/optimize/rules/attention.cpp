// Attention that exporters write out: first its core, with the scale and the mask that stand between the products, then
// factors of its queries and keys.
#include "optimize/constants.hpp"
#include "optimize/rules/rule.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace cuvil {
namespace {

// The finite number that a constant holds everywhere.
std::optional<double> number(const MatchContext& match, std::string_view name) {
    auto found = only_number(match.program(), *match[name]);
    return found && std::isfinite(*found) ? found : std::nullopt;
}

// The kernel computes in f32, over the last axis, for stacks of equal size or for one matrix of keys and one of values.
bool is_computed(const MatchContext& match) {
    const Type &q = match["q"]->type(), &k = match["k"]->type(), &v = match["v"]->type();
    if (q.dtype() != DType::F32 || k.rank() != v.rank() || (k.rank() != q.rank() && k.rank() != 2)) return false;
    auto axis = match.get<int64_t>("axis");
    return axis == -1 || axis == q.rank() - 1;
}

bool is_scaled(const MatchContext& match) { return is_computed(match) && number(match, "c"); }

bool is_divided(const MatchContext& match) { return is_scaled(match) && *number(match, "c") != 0; }

bool is_filled(const MatchContext& match) {
    return is_computed(match) && only_number(match.program(), *match["fill"]).has_value();
}

bool is_scaled_and_filled(const MatchContext& match) { return is_scaled(match) && is_filled(match); }

bool is_divided_and_filled(const MatchContext& match) { return is_divided(match) && is_filled(match); }

double one(const MatchContext&) { return 1; }

double factor(const MatchContext& match) { return *number(match, "c"); }

double reciprocal(const MatchContext& match) { return 1 / *number(match, "c"); }

using Scale = double (*)(const MatchContext&);

// With a mask or none. Where all queries have the same keys, their rows are those of one matrix.
FusedOp attention(const MatchResult& match, Value* mask, Attributes attributes) {
    Value &q = *match["q"], &k = *match["k"], &v = *match["v"];
    if (k.type().rank() == q.type().rank()) return &match.make("attention", {&q, &k, &v, mask}, std::move(attributes));
    Shape leading(q.type().shape().begin(), q.type().shape().end() - 1);
    const Dim rows = element_count(leading);
    auto matrix = [&](Value& x) { return &match.make("reshape", {&x}, {{"shape", Shape{rows, x.type().dim(-1)}}}); };
    Value& y = match.make("attention", {matrix(q), &k, &v, mask ? matrix(*mask) : nullptr}, std::move(attributes));
    return &match.make("reshape", {&y}, {{"shape", match.root().result().type().shape()}});
}

auto without_mask(Scale scale) {
    return [scale](const MatchResult& match) { return attention(match, nullptr, {{"scale", scale(match)}}); };
}

auto with_mask(Scale scale) {
    return [scale](const MatchResult& match) { return attention(match, match["mask"], {{"scale", scale(match)}}); };
}

Attributes scale_and_fill(const MatchContext& match, Scale scale) {
    return {{"scale", scale(match)}, {"fill", *only_number(match.program(), *match["fill"])}};
}

// where(keep, scores, fill)
auto with_choice(Scale scale) {
    return [scale](const MatchResult& match) { return attention(match, match["keep"], scale_and_fill(match, scale)); };
}

// where(drop, fill, scores)
auto with_opposite_choice(Scale scale) {
    return [scale](const MatchResult& match) {
        Value& drop = *match["drop"];
        bool is_broadcast = drop.producer() && drop.producer()->op() == "broadcast";
        Value* keep = &match.make("logical_not", {is_broadcast ? drop.producer()->operand(0) : &drop});
        if (is_broadcast) keep = &match.make("broadcast", {keep}, {{"shape", drop.type().shape()}});
        return attention(match, keep, scale_and_fill(match, scale));
    };
}

// The same attention of other queries and keys, with a scale that is `by` times its own.
Value* rescaled(const MatchResult& match, Value& q, Value& k, double by) {
    Attributes attributes = match.root().attributes();
    attributes["scale"] = match.root().get<double>("scale") * by;
    return &match.make("attention", {&q, &k, match["v"], match["mask"]}, std::move(attributes));
}

bool has_factor(const MatchContext& match) { return number(match, "c").has_value(); }

bool has_divisor(const MatchContext& match) { return has_factor(match) && *number(match, "c") != 0; }

Value& transposed(const MatchResult& match, Value& x) {
    return match.make("transpose", {&x}, {{"perm", match.get<std::vector<int64_t>>("perm")}});
}

auto query_times(Scale scale) {
    return [scale](const MatchResult& m) -> FusedOp { return rescaled(m, *m["q"], *m["k"], scale(m)); };
}

auto transposed_query_times(Scale scale) {
    return [scale](const MatchResult& m) -> FusedOp { return rescaled(m, transposed(m, *m["q"]), *m["k"], scale(m)); };
}

auto transposed_keys_times(Scale scale) {
    return [scale](const MatchResult& m) -> FusedOp { return rescaled(m, *m["q"], transposed(m, *m["k"]), scale(m)); };
}

const Rule rules[] = {
    {"attention", "%s = matmul %q, %k  %p = softmax %s {axis = %axis}  %r = matmul %p, %v", is_computed,
     without_mask(one)},
    {"attention_mul", "%s = matmul %q, %k  %t = mul %s, %c  %p = softmax %t {axis = %axis}  %r = matmul %p, %v",
     is_scaled, without_mask(factor)},
    {"attention_div", "%s = matmul %q, %k  %t = div %s, %c  %p = softmax %t {axis = %axis}  %r = matmul %p, %v",
     is_divided, without_mask(reciprocal)},

    {"attention_mul_add",
     "%s = matmul %q, %k  %t = mul %s, %c  %a = add %t, %mask  %p = softmax %a {axis = %axis}  %r = matmul %p, %v",
     is_scaled, with_mask(factor)},
    {"attention_div_add",
     "%s = matmul %q, %k  %t = div %s, %c  %a = add %t, %mask  %p = softmax %a {axis = %axis}  %r = matmul %p, %v",
     is_divided, with_mask(reciprocal)},
    {"attention_add", "%s = matmul %q, %k  %a = add %s, %mask  %p = softmax %a {axis = %axis}  %r = matmul %p, %v",
     is_computed, with_mask(one)},

    {"attention_mul_where",
     "%s = matmul %q, %k  %t = mul %s, %c  %a = where %keep, %t, %fill  %p = softmax %a {axis = %axis}  "
     "%r = matmul %p, %v",
     is_scaled_and_filled, with_choice(factor)},
    {"attention_div_where",
     "%s = matmul %q, %k  %t = div %s, %c  %a = where %keep, %t, %fill  %p = softmax %a {axis = %axis}  "
     "%r = matmul %p, %v",
     is_divided_and_filled, with_choice(reciprocal)},
    {"attention_where",
     "%s = matmul %q, %k  %a = where %keep, %s, %fill  %p = softmax %a {axis = %axis}  %r = matmul %p, %v", is_filled,
     with_choice(one)},

    {"attention_mul_where_not",
     "%s = matmul %q, %k  %t = mul %s, %c  %a = where %drop, %fill, %t  %p = softmax %a {axis = %axis}  "
     "%r = matmul %p, %v",
     is_scaled_and_filled, with_opposite_choice(factor)},
    {"attention_div_where_not",
     "%s = matmul %q, %k  %t = div %s, %c  %a = where %drop, %fill, %t  %p = softmax %a {axis = %axis}  "
     "%r = matmul %p, %v",
     is_divided_and_filled, with_opposite_choice(reciprocal)},
    {"attention_where_not",
     "%s = matmul %q, %k  %a = where %drop, %fill, %s  %p = softmax %a {axis = %axis}  %r = matmul %p, %v", is_filled,
     with_opposite_choice(one)},

    {"attention_of_scaled_query", "%t = mul %q, %c  %r = attention %t, %k, %v, %mask", has_factor, query_times(factor)},
    {"attention_of_divided_query", "%t = div %q, %c  %r = attention %t, %k, %v, %mask", has_divisor,
     query_times(reciprocal)},
    {"attention_of_scaled_transposed_query",
     "%t = mul %q, %c  %u = transpose %t {perm = %perm}  %r = attention %u, %k, %v, %mask", has_factor,
     transposed_query_times(factor)},
    {"attention_of_divided_transposed_query",
     "%t = div %q, %c  %u = transpose %t {perm = %perm}  %r = attention %u, %k, %v, %mask", has_divisor,
     transposed_query_times(reciprocal)},
    {"attention_of_scaled_keys", "%t = mul %k, %c  %r = attention %q, %t, %v, %mask", has_factor, query_times(factor)},
    {"attention_of_scaled_transposed_keys",
     "%t = mul %k, %c  %u = transpose %t {perm = %perm}  %r = attention %q, %u, %v, %mask", has_factor,
     transposed_keys_times(factor)},
};

} // namespace

std::span<const Rule> attention_rules() { return rules; }

} // namespace cuvil
