// Movement of elements: what moves nothing goes, what moves twice moves once.
#include "optimize/constants.hpp"
#include "optimize/rules/rule.hpp"

#include <algorithm>
#include <optional>

namespace cuvil {
namespace {

using Ints = std::vector<int64_t>;

bool keeps_type(const MatchContext& match) { return match["x"]->type() == match.root().result().type(); }

// Two reshapes may each be right by a size that the program requires, and one from the first to the last by no single
// one.
bool keeps_count(const MatchContext& match) {
    return element_count(match["x"]->type().shape()) == element_count(match.root().result().type().shape());
}

// The root's op on %x itself.
FusedOp at_once(const MatchResult& match) {
    return &match.make(match.root().op(), {match["x"]}, match.root().attributes());
}

FusedOp transpose_at_once(const MatchResult& match) {
    const auto& first = match.get<Ints>("first");
    Ints both;
    for (int64_t axis : match.get<Ints>("second")) both.push_back(first[static_cast<size_t>(axis)]);
    return &match.make("transpose", {match["x"]}, {{"perm", std::move(both)}});
}

bool keeps_axes(const MatchContext& match) { return std::ranges::is_sorted(match.get<Ints>("perm")); }

// The order of all axes longer than 1 stays, so the elements lie where they are.
bool keeps_elements(const MatchContext& match) {
    Ints moved;
    for (int64_t axis : match.get<Ints>("perm"))
        if (!match["x"]->type().dim(axis).is(1)) moved.push_back(axis);
    return std::ranges::is_sorted(moved);
}

// A broadcast that only puts axes of size 1 in front repeats nothing.
bool repeats_nothing(const MatchContext& match) {
    const Shape &from = match["x"]->type().shape(), &to = match.root().result().type().shape();
    auto added = static_cast<std::ptrdiff_t>(to.size() - from.size());
    return std::all_of(to.begin(), to.begin() + added, [](const Dim& d) { return d.is(1); }) &&
           std::equal(from.begin(), from.end(), to.begin() + added);
}

FusedOp reshaped(const MatchResult& match) {
    return &match.make("reshape", {match["x"]}, {{"shape", match.root().result().type().shape()}});
}

// The whole tensor in its own order. Equal sizes do not suffice: steps may be negative.
bool takes_all(const MatchContext& match) {
    const Shape& shape = match["x"]->type().shape();
    const auto& steps = match.get<Ints>("steps");
    const Shape &starts = match.get<Shape>("starts"), &sizes = match.get<Shape>("sizes");
    for (size_t i = 0; i < shape.size(); i++)
        if (!starts[i].is(0) || sizes[i] != shape[i] || (steps[i] != 1 && !shape[i].is(1))) return false;
    return true;
}

bool pads_nothing(const MatchContext& match) {
    auto is_zero = [](const Dim& d) { return d.is(0); };
    return std::ranges::all_of(match.get<Shape>("low"), is_zero) &&
           std::ranges::all_of(match.get<Shape>("high"), is_zero);
}

// The one index that is a known number, counted from the front; the axis may be as long as it likes behind it.
std::optional<int64_t> only_index(const MatchContext& match) {
    if (!element_count(match["i"]->type().shape()).is(1)) return std::nullopt;
    auto index = constant_integer(match.program(), *match["i"], 0);
    if (!index) return std::nullopt;
    const Dim& size = match["x"]->type().dim(match.get<int64_t>("axis"));
    auto known = size.constant();
    if (*index < 0 && known) *index += *known;
    return *index >= 0 && size.lower_bound().value_or(0) > *index ? index : std::nullopt;
}

FusedOp slice_of_one(const MatchResult& match) {
    auto index = only_index(match);
    if (!index) return nullptr;
    const Type& x = match["x"]->type();
    auto axis = match.get<int64_t>("axis");
    auto at = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
    Shape starts(x.shape().size(), 0), sizes = x.shape();
    starts[at] = *index;
    sizes[at] = 1;
    Value& part =
        match.make("slice", {match["x"]}, {{"starts", starts}, {"sizes", sizes}, {"steps", Ints(x.shape().size(), 1)}});
    return &match.make("reshape", {&part}, {{"shape", match.root().result().type().shape()}});
}

const Rule rules[] = {
    {"identity", "%r = identity %x", {}, "%x"},
    {"cast_to_same", "%r = cast %x", keeps_type, "%x"},
    {"reshape_to_same", "%r = reshape %x", keeps_type, "%x"},
    {"reshape_of_reshape", "%1 = reshape %x  %2 = reshape %1", keeps_count, at_once},
    {"broadcast_to_same", "%r = broadcast %x", keeps_type, "%x"},
    {"broadcast_of_broadcast", "%1 = broadcast %x  %2 = broadcast %1", {}, at_once},
    {"broadcast_ones", "%r = broadcast %x", repeats_nothing, reshaped},
    {"transpose_nothing", "%r = transpose %x {perm = %perm}", keeps_axes, "%x"},
    {"transpose_of_transpose",
     "%1 = transpose %x {perm = %first}  %2 = transpose %1 {perm = %second}",
     {},
     transpose_at_once},
    {"transpose_ones", "%r = transpose %x {perm = %perm}", keeps_elements, reshaped},
    {"slice_all", "%r = slice %x {starts = %starts, sizes = %sizes, steps = %steps}", takes_all, "%x"},
    {"gather_of_one", "%r = gather %x, %i {axis = %axis}", {}, slice_of_one},
    {"concat_of_one", "%r = concat %x", {}, "%x"},
    {"pad_nothing", "%r = pad %x {low = %low, high = %high}", pads_nothing, "%x"},
};

} // namespace

std::span<const Rule> shape_rules() { return rules; }

} // namespace cuvil
