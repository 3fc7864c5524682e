// Operators that move elements and drop none.
#include "import/onnx/axes.hpp"
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil::onnx {
namespace {

// More axes than any tensor has are a fault.
constexpr int64_t most_axes = 64;

void check_axes(int64_t count) {
    if (count > most_axes) bad_attribute(fmt::format("{} axes are too many", count));
}

// What the elements of the new shape mean is decided while running: 0 copies, -1 takes what is left.
Value& new_shape_from_data(Node& node, bool keeps_zero) {
    GraphBuilder& build = node.build;
    const Shape& from = node.type(0).shape();
    Value& to = build.cast(node.input(1), DType::I64);
    auto count = static_cast<size_t>(build.length_of(to));
    // Further elements have nothing to copy.
    std::vector<Dim> own(from.begin(), from.begin() + static_cast<int64_t>(std::min(from.size(), count)));
    Dim behind = checked_count(std::span(from).subspan(own.size()));
    own.resize(count, 1);
    Value& sizes = build.dims(own, {static_cast<int64_t>(count)});
    Value& one = build.broadcast_to(build.scalar(DType::I64, 1), sizes.type().shape());
    Value& is_copied = keeps_zero ? build.elementwise("less", one, 0) : build.elementwise("equal", to, 0);
    Value& is_open = build.elementwise("equal", to, -1);
    Value& is_other = build.make("logical_not", {&build.make("logical_or", {&is_copied, &is_open})});
    Value& left = build.reduce("reduce_prod", build.make("where", {&is_copied, &one, &sizes}), {0}, true);
    Value& known = build.reduce("reduce_prod", build.make("where", {&is_other, &to, &one}), {0}, true);
    Value& open = build.elementwise("div", {&build.elementwise("mul", {&left, &build.dims({behind}, {1})}), &known});
    Value& given = build.make("where", {&is_open, &build.broadcast_to(open, sizes.type().shape()), &to});
    return build.make("where", {&is_copied, &sizes, &given});
}

Shape read_data_shape(Node& node, const std::vector<std::optional<Dim>>& known, bool keeps_zero) {
    check_axes(static_cast<int64_t>(known.size()));
    Shape to = node.build.counts_of(new_shape_from_data(node, keeps_zero), "a size of the new shape");
    for (size_t i = 0; i < to.size(); i++) {
        if (!known[i]) continue;
        bool is_plain = known[i]->lower_bound().value_or(-1) > 0 || (keeps_zero && known[i]->is(0));
        if (is_plain) to[i] = *known[i];
        if (known[i]->is(0) && !keeps_zero && i < node.type(0).shape().size()) to[i] = node.type(0).shape()[i];
    }
    return to;
}

// -1 takes what is left. Sizes that are copied do not count there, so that [0,4] becomes [0,4] under "copy, -1".
Shape read_new_shape(Node& node) {
    const Shape& from = node.type(0).shape();
    bool keeps_zero = node.has_attribute("allowzero") && node.integer("allowzero") != 0;
    std::vector<std::optional<Dim>> known_elements = node.build.known_elements(node.input(1));
    bool is_known =
        std::all_of(known_elements.begin(), known_elements.end(), [](const auto& d) { return d.has_value(); });
    if (!is_known) return read_data_shape(node, known_elements, keeps_zero);
    Shape to = node.sizes(1), left, known;
    std::optional<size_t> open;
    std::vector<bool> copied(from.size());
    for (size_t i = 0; i < to.size(); i++) {
        auto size = to[i].constant();
        if (size == -1) {
            if (open) throw ImportError("shape-mismatch", fmt::format("the new shape {} has two -1", text(to)));
            open = i;
            continue;
        }
        if (size && *size < 0)
            throw ImportError("shape-mismatch", fmt::format("the new shape {} has a negative size", text(to)));
        if (size == 0 && !keeps_zero) {
            if (i >= from.size())
                throw ImportError("shape-mismatch", fmt::format("the new shape {} copies axis {} of {}", text(to), i,
                                                                node.type(0).text()));
            to[i] = from[i];
            copied[i] = true;
        } else {
            known.push_back(to[i]);
        }
    }
    if (!open) return to;
    for (size_t i = 0; i < from.size(); i++)
        if (!copied[i]) left.push_back(from[i]);
    Dim total = checked_count(left), divisor = checked_count(known);
    auto exact = divisor.is(0) ? std::nullopt : divide_exactly(total, divisor);
    if (!exact && (divisor.is(0) || (total.constant() && divisor.constant())))
        throw ImportError("shape-mismatch", fmt::format("{} does not divide into {}", node.type(0).text(), text(to)));
    if (!exact) node.build.require_at_least(divisor, 1, "the number of elements that -1 goes with");
    to[*open] = exact ? *exact : Dim::floordiv(total, Dim::max(divisor, 1));
    return to;
}

Values reshape(Node& node) { return {&node.build.reshape(node.input(0), read_new_shape(node))}; }

Values flatten(Node& node) {
    const Shape& shape = node.type(0).shape();
    int64_t rank = node.type(0).rank(), axis = node.integer("axis", 1);
    auto split = static_cast<size_t>(axis == rank ? axis : normal_axis(axis, std::max<int64_t>(rank, 1)));
    return {&node.build.reshape(
        node.input(0), {checked_count(std::span(shape).first(split)), checked_count(std::span(shape).subspan(split))})};
}

Values transpose(Node& node) {
    std::vector<int64_t> perm = all_axes(node.type(0).rank());
    std::reverse(perm.begin(), perm.end());
    return {&node.build.transpose(node.input(0), node.integers("perm").value_or(perm))};
}

Values squeeze(Node& node) {
    Value& x = node.input(0);
    if (node.has_input(1) && !node.known_numbers(1)) return {&squeeze_by_data(node.build, x, node.input(1))};
    if (auto axes = node.numbers(1, "axes"))
        return {&node.build.squeeze(x, normal_axes(std::move(*axes), x.type().rank()))};
    // Open sizes stay, and must not be 1.
    std::vector<int64_t> ones;
    for (int64_t i = 0; i < x.type().rank(); i++) {
        const Dim& size = x.type().dim(i);
        if (size.is(1)) ones.push_back(i);
        if (size.constant() || size.lower_bound().value_or(0) > 1) continue;
        node.build.require(Dim::min((size - 1) * (size - 1), 1), 1,
                           fmt::format("size {} is 1: without axes the rank would be another", size.text()));
    }
    return {&node.build.squeeze(x, ones)};
}

Values unsqueeze(Node& node) {
    Value& x = node.input(0);
    if (node.has_input(1) && !node.known_numbers(1)) {
        check_axes(node.build.length_of(node.input(1)));
        return {&unsqueeze_by_data(node.build, x, node.input(1))};
    }
    auto axes = node.numbers(1, "axes");
    if (!axes) bad_attribute("attribute \"axes\" is missing");
    check_axes(static_cast<int64_t>(axes->size()));
    int64_t rank = x.type().rank() + static_cast<int64_t>(axes->size());
    return {&node.build.unsqueeze(x, normal_axes(std::move(*axes), rank))};
}

// A size of the new shape that only data shows may be 1 beside any other.
Values expand(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    const Shape& own = x.type().shape();
    std::vector<std::optional<Dim>> known = build.known_elements(node.input(1));
    Shape to = node.counts(1, "a size of the new shape");
    for (size_t i = 1; i <= std::min(own.size(), to.size()); i++) {
        const Dim& from = own[own.size() - i];
        Dim& size = to[to.size() - i];
        if (known[to.size() - i] || from.is(1)) continue;
        // A product of the two differences could exceed 64 bits.
        auto distance = [&](const Dim& other) { return Dim::max(size, other) - Dim::min(size, other); };
        build.require(Dim::min(distance(from), distance(1)), 0,
                      fmt::format("a size of the new shape is neither 1 nor {}", from.text()));
        size = from;
    }
    return {&build.broadcast_to(x, broadcast_shapes(own, to))};
}

Values concat(Node& node) {
    std::vector<Value*> parts;
    for (size_t i = 0; i < node.input_count(); i++) {
        parts.push_back(&node.input(i));
        if (node.type(i).dtype() != node.type(0).dtype())
            throw ImportError("type-mismatch", fmt::format("the operands have different types, {} and {}",
                                                           node.type(0).text(), node.type(i).text()));
    }
    return {&node.build.concat(parts, node.axis("axis", std::nullopt, node.type(0).rank()))};
}

// Each axis becomes two, the first of which is repeated.
Values tile(Node& node) {
    GraphBuilder& build = node.build;
    const Shape& shape = node.type(0).shape();
    std::vector<Dim> repeats = node.counts(1, "a number of repeats");
    if (repeats.size() != shape.size())
        throw ImportError("shape-mismatch", fmt::format("{} repeats for {}", repeats.size(), node.type(0).text()));
    Shape doubled, repeated, result;
    for (size_t i = 0; i < shape.size(); i++) {
        doubled.insert(doubled.end(), {1, shape[i]});
        repeated.insert(repeated.end(), {repeats[i], shape[i]});
        result.push_back(repeats[i] * shape[i]);
    }
    return {&build.reshape(build.broadcast_to(build.reshape(node.input(0), doubled), repeated), result)};
}

const Row rows[] = {
    {"Concat", 4, newest, concat, 1, any, "axis", "concat"},
    {"Expand", 8, newest, expand, 2, 2, "", "broadcast"},
    {"Flatten", 1, newest, flatten, 1, 1, "axis", "reshape"},
    {"Reshape", 5, 13, reshape, 2, 2, "", "reshape"},
    {"Reshape", 14, newest, reshape, 2, 2, "allowzero", "reshape"},
    {"Squeeze", 1, 12, squeeze, 1, 1, "axes", "reshape"},
    {"Squeeze", 13, newest, squeeze, 1, 2, "", "reshape"},
    {"Tile", 6, newest, tile, 2, 2, "", "broadcast"},
    {"Transpose", 1, newest, transpose, 1, 1, "perm", "transpose"},
    {"Unsqueeze", 1, 12, unsqueeze, 1, 1, "axes", "reshape"},
    {"Unsqueeze", 13, newest, unsqueeze, 2, 2, "", "reshape"},
};

} // namespace

std::span<const Row> movement_rows() { return rows; }

} // namespace cuvil::onnx
