// Padding: with a constant, or with parts of the tensor itself.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace cuvil::onnx {
namespace {

// The padding as a scalar, and as a number where that is known when compiling. Floating-point x needs one of them only.
struct Filling {
    std::optional<double> number = 0;
    Value* scalar = nullptr;
};

Value& pad_with(Node& node, Value& x, const Shape& low, const Shape& high, const Filling& filling) {
    GraphBuilder& build = node.build;
    DType dtype = x.type().dtype();
    bool is_exact = filling.number && (is_floating(dtype) || std::abs(*filling.number) <= std::ldexp(1.0, 53));
    if (is_exact && dtype != DType::Bool) return build.pad(x, low, high, *filling.number);
    if (is_exact) return build.cast(build.pad(build.cast(x, DType::U8), low, high, *filling.number), DType::Bool);
    if (dtype == DType::Bool) {
        Filling byte{{}, &build.cast(*filling.scalar, DType::U8)};
        return build.cast(pad_with(node, build.cast(x, DType::U8), low, high, byte), DType::Bool);
    }
    // Where the padding is, is padded as well.
    Value& inside = build.broadcast_to(build.scalar(DType::U8, 1), x.type().shape());
    Value& is_inside = build.cast(build.pad(inside, low, high, 0), DType::Bool);
    Value& padded = build.pad(x, low, high, 0);
    return build.make("where", {&is_inside, &padded, &build.broadcast_to(*filling.scalar, padded.type().shape())});
}

// Parts of x itself, before and behind it. The axis is longer than each of them.
Value& pad_with_itself(Node& node, Value& x, int64_t axis, int64_t low, int64_t high, std::string_view mode) {
    GraphBuilder& build = node.build;
    const Dim size = x.type().dim(axis);
    bool is_edge = mode == "edge", is_reflected = mode == "reflect";
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

// The same with any size of padding, also more than once around: the place of each element is computed.
Value& pad_with_places(Node& node, Value& x, int64_t axis, const Dim& low, const Dim& high, std::string_view mode) {
    GraphBuilder& build = node.build;
    const Dim size = x.type().dim(axis);
    build.require_at_least(size, 1, "the size of an axis that is padded with itself");
    auto op = [&](std::string_view name, Value& a, Value& b) -> Value& { return build.elementwise(name, {&a, &b}); };
    auto number = [&](const Dim& d) -> Value& { return build.dims({d}, {}); };
    Value& at = op("sub", build.positions(low + size + high), number(low));
    // at - period * floor(at / period), which is never negative.
    auto wrapped = [&](const Dim& period) -> Value& {
        Value& rest = op("sub", at, op("mul", op("div", at, number(period)), number(period)));
        return build.make("where", {&build.elementwise("less", rest, 0), &op("add", rest, number(period)), &rest});
    };
    if (mode == "wrap") return build.gather(x, wrapped(size), axis);
    if (mode == "edge")
        return build.gather(x, op("minimum", build.elementwise("maximum", at, 0), number(size - 1)), axis);
    // There and back again. An axis of one element is all there is.
    Dim period = Dim::max(size * 2 - 2, 1);
    Value& there = wrapped(period);
    return build.gather(x, op("minimum", there, op("sub", number(size * 2 - 2), there)), axis);
}

Value& pad_axis(Node& node, Value& x, size_t axis, const Dim& low, const Dim& high, std::string_view mode) {
    auto before = low.constant(), behind = high.constant();
    auto at = static_cast<int64_t>(axis);
    bool is_once = before && behind && x.type().dim(at).lower_bound().value_or(0) > std::max(*before, *behind);
    return is_once ? pad_with_itself(node, x, at, *before, *behind, mode)
                   : pad_with_places(node, x, at, low, high, mode);
}

Value& pad_axis(Node& node, Value& x, size_t axis, const Dim& low, const Dim& high, const Filling& filling) {
    Shape before(x.type().shape().size(), 0), behind = before;
    before[axis] = low;
    behind[axis] = high;
    return pad_with(node, x, before, behind, filling);
}

Value& pad_axes(Node& node, const std::vector<Dim>& pads, std::vector<int64_t> axes, const Filling& filling) {
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
            // Negative padding cuts.
            Dim cut_low = Dim::max(Dim(0) - before, 0), cut_high = Dim::max(Dim(0) - behind, 0);
            Dim left = x->type().dim(axes[i]) - cut_low - cut_high;
            node.build.require_at_least(left, 0, "the size that is left by negative padding");
            x = &node.build.name_sizes(node.build.slice(*x, axes[i], cut_low, left));
            before = Dim::max(before, 0);
            behind = Dim::max(behind, 0);
        }
        low[static_cast<size_t>(axes[i])] = before;
        high[static_cast<size_t>(axes[i])] = behind;
    }
    std::string_view mode = node.text("mode", "constant");
    bool is_constant = mode == "constant", is_known = true;
    if (!is_constant && mode != "edge" && mode != "reflect" && mode != "wrap")
        node.unsupported(fmt::format("mode \"{}\"", mode));
    for (size_t i = 0; i < rank; i++)
        is_known = is_known && !node.build.is_from_data(low[i]) && !node.build.is_from_data(high[i]);
    if (is_constant && is_known) return pad_with(node, *x, low, high, filling);
    for (size_t i = 0; i < rank; i++)
        if (!low[i].is(0) || !high[i].is(0))
            x = &node.build.name_sizes(is_constant ? pad_axis(node, *x, i, low[i], high[i], filling)
                                                   : pad_axis(node, *x, i, low[i], high[i], mode));
    return *x;
}

Values pad_attributes(Node& node) {
    auto pads = node.integers("pads");
    if (!pads) bad_attribute("attribute \"pads\" is missing");
    Filling filling{node.real("value", 0)};
    if (!is_floating(node.type(0).dtype())) filling.scalar = &node.build.scalar(node.input(0), *filling.number);
    return {&pad_axes(node, {pads->begin(), pads->end()}, all_axes(node.type(0).rank()), filling)};
}

// Pads of axes that only data shows, as pads of all axes.
std::vector<Dim> pads_of_all_axes(Node& node) {
    GraphBuilder& build = node.build;
    int64_t rank = node.type(0).rank();
    if (node.type(3).rank() != 1) throw ImportError("bad-node", fmt::format("the axes are {}", node.type(3).text()));
    const Dim& count = node.type(3).dim(0);
    Value& pads = build.cast(node.input(1), DType::I64);
    Value& zeros = build.broadcast_to(build.scalar(DType::I64, 0), {rank});
    std::vector<Dim> all;
    for (const Dim& first : {Dim(0), count}) {
        Value& half = build.slice(pads, 0, first, count);
        Value& spread = build.make("scatter_elements", {&zeros, &node.input(3), &half});
        std::vector<Dim> sizes = build.sizes_of(spread);
        all.insert(all.end(), sizes.begin(), sizes.end());
    }
    return all;
}

Values pad(Node& node) {
    Filling filling;
    if (Value* given = node.optional_input(2)) {
        if (!checked_count(given->type().shape()).is(1) || given->type().dtype() != node.type(0).dtype())
            throw ImportError("bad-node", fmt::format("the padding value is {}", given->type().text()));
        filling = {node.build.constant_number(*given), &node.build.reshape(*given, {})};
    }
    bool are_axes_known = !node.has_input(3) || node.known_numbers(3);
    if (are_axes_known)
        return {
            &pad_axes(node, node.sizes(1), node.numbers(3, "axes").value_or(all_axes(node.type(0).rank())), filling)};
    return {&pad_axes(node, pads_of_all_axes(node), all_axes(node.type(0).rank()), filling)};
}

const Row rows[] = {
    {"Pad", 2, 10, pad_attributes, 1, 1, "mode pads value", "pad"},
    {"Pad", 11, 17, pad, 2, 3, "mode", "pad"},
    {"Pad", 18, newest, pad, 2, 4, "mode", "pad"},
};

} // namespace

std::span<const Row> pad_rows() { return rows; }

} // namespace cuvil::onnx
