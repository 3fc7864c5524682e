// Operators that move elements and drop none.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil::onnx {
namespace {

// Axes of Unsqueeze; more than any tensor has are a fault.
constexpr size_t most_axes = 64;

// -1 takes what is left. Sizes that are copied do not count there, so that [0,4] becomes [0,4] under "copy, -1".
Shape read_new_shape(Node& node) {
    const Shape& from = node.type(0).shape();
    Shape to = node.sizes(1), left, known;
    bool keeps_zero = node.has_attribute("allowzero") && node.integer("allowzero") != 0;
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
    to[*open] = exact ? *exact : Dim::floordiv(total, divisor);
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
    if (auto axes = node.numbers(1, "axes"))
        return {&node.build.squeeze(x, normal_axes(std::move(*axes), x.type().rank()))};
    std::vector<int64_t> ones;
    for (int64_t i = 0; i < x.type().rank(); i++) {
        auto size = x.type().dim(i).constant();
        if (!size)
            throw ImportError("data-dependent-shape",
                              fmt::format("without axes the rank depends on whether {} is 1", x.type().dim(i).text()),
                              "name the axes, or fix the sizes of the inputs when compiling");
        if (*size == 1) ones.push_back(i);
    }
    return {&node.build.squeeze(x, ones)};
}

Values unsqueeze(Node& node) {
    Value& x = node.input(0);
    auto axes = node.numbers(1, "axes");
    if (!axes) bad_attribute("attribute \"axes\" is missing");
    if (axes->size() > most_axes) bad_attribute(fmt::format("{} axes are too many", axes->size()));
    int64_t rank = x.type().rank() + static_cast<int64_t>(axes->size());
    return {&node.build.unsqueeze(x, normal_axes(std::move(*axes), rank))};
}

Values expand(Node& node) {
    Value& x = node.input(0);
    return {&node.build.broadcast_to(x, broadcast_shapes(x.type().shape(), node.sizes(1)))};
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
    std::vector<Dim> repeats = node.sizes(1);
    if (repeats.size() != shape.size())
        throw ImportError("shape-mismatch", fmt::format("{} repeats for {}", repeats.size(), node.type(0).text()));
    Shape doubled, repeated, result;
    for (size_t i = 0; i < shape.size(); i++) {
        if (repeats[i].constant().value_or(0) < 0) throw ImportError("bad-node", "a number of repeats is negative");
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
