// Normalisations that exporters write out: first the core, then its scale, then its bias.
#include "optimize/constants.hpp"
#include "optimize/rules/rule.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// The first of the axes, if they are all of x's from there on; the kernels take rows of neighbours.
std::optional<int64_t> first_of_last_axes(const MatchContext& match) {
    int64_t rank = match["x"]->type().rank();
    std::vector<int64_t> axes = match.get<std::vector<int64_t>>("axes");
    for (int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
    std::ranges::sort(axes);
    auto first = rank - static_cast<int64_t>(axes.size());
    for (size_t i = 0; i < axes.size(); i++)
        if (axes[i] != first + static_cast<int64_t>(i)) return std::nullopt;
    return axes.empty() ? std::nullopt : std::optional(first);
}

bool normalizes_rows(const MatchContext& match) {
    return first_of_last_axes(match) && only_number(match.program(), *match["epsilon"]);
}

auto norm(std::string_view op) {
    return [op](const MatchResult& match) -> FusedOp {
        return &match.make(
            op, {match["x"]},
            {{"axis", *first_of_last_axes(match)}, {"epsilon", *only_number(match.program(), *match["epsilon"])}});
    };
}

// The sizes of a row of %n, which scale and bias have.
Shape row_of(const MatchContext& match) {
    const Type& x = match["x"]->type();
    int64_t axis = match.node("n").get<int64_t>("axis");
    return {x.shape().begin() + (axis < 0 ? axis + x.rank() : axis), x.shape().end()};
}

// %k is a row, with or without axes of size 1 before it.
bool is_for_rows(const MatchContext& match) {
    const Shape row = row_of(match), &shape = match["k"]->type().shape();
    if (shape.size() < row.size()) return false;
    auto begin = shape.end() - static_cast<std::ptrdiff_t>(row.size());
    return std::all_of(shape.begin(), begin, [](const Dim& d) { return d.is(1); }) &&
           std::equal(begin, shape.end(), row.begin());
}

Value* as_row(const MatchResult& match) {
    Shape row = row_of(match);
    return match["k"]->type().shape() == row ? match["k"] : &match.make("reshape", {match["k"]}, {{"shape", row}});
}

FusedOp with_scale(const MatchResult& match) {
    return &match.make(match.node("n").op(), {match["x"], as_row(match)}, match.node("n").attributes());
}

FusedOp with_bias(const MatchResult& match) {
    return &match.make("layer_norm", {match["x"], match["scale"], as_row(match)}, match.node("n").attributes());
}

const Rule rules[] = {
    // (x - mean) / sqrt(mean of (x - mean)^2 + epsilon)
    {"layer_norm",
     "%mean = reduce_mean %x {axes = %axes}  %m = broadcast %mean  %c = sub %x, %m  %q = mul %c, %c  "
     "%v = reduce_mean %q {axes = %axes}  %e = add %v, %epsilon  %s = sqrt %e  %d = broadcast %s  %r = div %c, %d",
     normalizes_rows, norm("layer_norm")},
    {"layer_norm_by_reciprocal",
     "%mean = reduce_mean %x {axes = %axes}  %m = broadcast %mean  %c = sub %x, %m  %q = mul %c, %c  "
     "%v = reduce_mean %q {axes = %axes}  %e = add %v, %epsilon  %s = sqrt %e  %i = reciprocal %s  "
     "%d = broadcast %i  %r = mul %c, %d",
     normalizes_rows, norm("layer_norm")},
    {"layer_norm_scale", "%n = layer_norm %x, _, _  %b = broadcast %k  %r = mul %n, %b", is_for_rows, with_scale},
    {"layer_norm_bias", "%n = layer_norm %x, %scale, _  %b = broadcast %k  %r = add %n, %b", is_for_rows, with_bias},

    // x / sqrt(mean of x^2 + epsilon)
    {"rms_norm",
     "%q = mul %x, %x  %v = reduce_mean %q {axes = %axes}  %e = add %v, %epsilon  %s = sqrt %e  %d = broadcast %s  "
     "%r = div %x, %d",
     normalizes_rows, norm("rms_norm")},
    {"rms_norm_by_reciprocal",
     "%q = mul %x, %x  %v = reduce_mean %q {axes = %axes}  %e = add %v, %epsilon  %s = sqrt %e  %i = reciprocal %s  "
     "%d = broadcast %i  %r = mul %x, %d",
     normalizes_rows, norm("rms_norm")},
    {"rms_norm_scale", "%n = rms_norm %x, _  %b = broadcast %k  %r = mul %n, %b", is_for_rows, with_scale},
};

} // namespace

std::span<const Rule> normalization_rules() { return rules; }

} // namespace cuvil
