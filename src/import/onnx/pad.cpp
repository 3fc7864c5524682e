// Padding: with a constant, or with parts of the tensor itself.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cuvil::onnx {
namespace {

Value& pad_with_constant(Node& node, Value& x, const Shape& low, const Shape& high, double value) {
    DType dtype = x.type().dtype();
    if (is_integer(dtype) && std::abs(value) > std::ldexp(1.0, 53)) node.unsupported("a padding value above 2^53");
    if (dtype != DType::Bool) return node.build.pad(x, low, high, value);
    return node.build.cast(node.build.pad(node.build.cast(x, DType::U8), low, high, value), DType::Bool);
}

// Parts of x itself, before and behind it.
Value& pad_with_itself(Node& node, Value& x, int64_t axis, int64_t low, int64_t high, std::string_view mode) {
    GraphBuilder& build = node.build;
    const Dim size = x.type().dim(axis);
    bool is_edge = mode == "edge", is_reflected = mode == "reflect";
    // The axis must be long enough for what is taken from it.
    int64_t least = is_edge ? 1 : std::max(low, high) + (is_reflected ? 1 : 0);
    if (low != 0 || high != 0) build.require_equal(Dim::max(Dim(least) - size, 0), 0);
    auto repeated = [&](const Dim& at, int64_t count) -> Value& {
        Shape shape = x.type().shape();
        shape[static_cast<size_t>(axis)] = count;
        return build.broadcast_to(build.slice(x, axis, at, 1), shape);
    };
    std::vector<Value*> parts;
    if (low != 0)
        parts.push_back(is_edge        ? &repeated(0, low)
                        : is_reflected ? &build.slice(x, axis, low, low, -1)
                                       : &build.slice(x, axis, size - low, low));
    parts.push_back(&x);
    if (high != 0)
        parts.push_back(is_edge        ? &repeated(size - 1, high)
                        : is_reflected ? &build.slice(x, axis, size - 2, high, -1)
                                       : &build.slice(x, axis, 0, high));
    return build.concat(parts, axis);
}

bool may_be_negative(const Dim& padding) { return padding.lower_bound().value_or(-1) < 0; }

Value& pad_axes(Node& node, const std::vector<Dim>& pads, std::vector<int64_t> axes, double value) {
    Value* x = &node.input(0);
    auto rank = static_cast<size_t>(x->type().rank());
    if (pads.size() != 2 * axes.size())
        throw ImportError("bad-node", fmt::format("{} paddings for {} axes", pads.size(), axes.size()));
    for (int64_t& axis : axes) axis = normal_axis(axis, static_cast<int64_t>(rank));
    normal_axes(axes, static_cast<int64_t>(rank)); // each once
    Shape low(rank, 0), high(rank, 0);
    for (size_t i = 0; i < axes.size(); i++) {
        Dim before = pads[i], behind = pads[axes.size() + i];
        if (may_be_negative(before) || may_be_negative(behind)) {
            if (!before.constant() || !behind.constant()) node.unsupported("padding that may be negative");
            // Negative padding cuts.
            Dim cut_low = Dim::max(Dim(0) - before, 0), cut_high = Dim::max(Dim(0) - behind, 0);
            x = &node.build.slice(*x, axes[i], cut_low, x->type().dim(axes[i]) - cut_low - cut_high);
            before = Dim::max(before, 0);
            behind = Dim::max(behind, 0);
        }
        low[static_cast<size_t>(axes[i])] = before;
        high[static_cast<size_t>(axes[i])] = behind;
    }
    std::string_view mode = node.text("mode", "constant");
    if (mode == "constant") return pad_with_constant(node, *x, low, high, value);
    if (mode != "edge" && mode != "reflect" && mode != "wrap") node.unsupported(fmt::format("mode \"{}\"", mode));
    for (size_t i = 0; i < rank; i++) {
        auto before = low[i].constant(), behind = high[i].constant();
        if (!before || !behind) node.unsupported("padding that depends on a size");
        x = &pad_with_itself(node, *x, static_cast<int64_t>(i), *before, *behind, mode);
    }
    return *x;
}

Values pad_attributes(Node& node) {
    auto pads = node.integers("pads");
    if (!pads) bad_attribute("attribute \"pads\" is missing");
    return {&pad_axes(node, {pads->begin(), pads->end()}, all_axes(node.type(0).rank()), node.real("value", 0))};
}

Values pad(Node& node) {
    double value = 0;
    if (Value* given = node.optional_input(2)) {
        auto number = node.build.constant_number(*given);
        if (!number) node.unsupported("a padding value that is no constant");
        value = *number;
    }
    return {&pad_axes(node, node.sizes(1), node.numbers(3, "axes").value_or(all_axes(node.type(0).rank())), value)};
}

const Row rows[] = {
    {"Pad", 2, 10, pad_attributes, 1, 1, "mode pads value", "pad"},
    {"Pad", 11, 17, pad, 2, 3, "mode", "pad"},
    {"Pad", 18, newest, pad, 2, 4, "mode", "pad"},
};

} // namespace

std::span<const Row> pad_rows() { return rows; }

} // namespace cuvil::onnx
