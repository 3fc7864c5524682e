// Parts of tensors: Slice and Split.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil::onnx {
namespace {

// Exporters write the ends of 32 or 64 bits for "as far as it goes"; on an axis that is longer the former is a place.
constexpr int64_t far = INT32_MAX;

bool is_far_behind(const Dim& position, const Dim& size) {
    return position.constant().value_or(0) >= std::max(far, size.constant().value_or(far));
}

bool is_far_before(const Dim& position, const Dim& size) {
    return position.constant().value_or(0) <= -std::max(far, size.constant().value_or(far));
}

// A position counted from the front: negative ones count from the end. An expression whose sign is not known becomes
// one that decides at run time, as floordiv(p, 2^40) is -1 below 0 and else 0.
Dim from_front(const Dim& position, const Dim& size) {
    if (auto number = position.constant()) return *number < 0 ? size + position : position;
    if (auto low = position.lower_bound(); low && *low >= 0) return position;
    return position - size * Dim::floordiv(position, int64_t{1} << 40);
}

struct Range {
    Dim start, size;
};

Range forward_range(const Dim& start, const Dim& end, int64_t step, const Dim& size) {
    auto clamp_low = [&](const Dim& p) { return is_far_before(p, size) ? Dim(0) : Dim::max(from_front(p, size), 0); };
    Dim first = is_far_behind(start, size) ? size : clamp_low(start);
    Dim stop = is_far_behind(end, size) ? size : Dim::min(clamp_low(end), size);
    // Where `first` is behind the end the difference is negative all the same, so it needs no limit there.
    return {Dim::min(first, size), Dim::max(Dim::ceildiv(stop - first, step), 0)};
}

Range backward_range(const Dim& start, const Dim& end, int64_t step, const Dim& size) {
    auto clamp = [&](const Dim& p, int64_t low) {
        if (is_far_behind(p, size) || p.is(-1)) return size - 1;
        if (is_far_before(p, size)) return Dim(low);
        return Dim::min(Dim::max(from_front(p, size), low), size - 1);
    };
    Dim first = clamp(start, 0), stop = clamp(end, -1);
    return {Dim::max(first, 0), Dim::max(Dim::ceildiv(first - stop, -step), 0)};
}

Value& slice_axes(Node& node, const std::vector<Dim>& starts, const std::vector<Dim>& ends,
                  std::optional<std::vector<int64_t>> axes, std::optional<std::vector<int64_t>> steps) {
    Value* x = &node.input(0);
    int64_t rank = x->type().rank();
    if (!axes) axes = all_axes(std::min(rank, static_cast<int64_t>(starts.size())));
    if (!steps) steps = std::vector<int64_t>(starts.size(), 1);
    if (ends.size() != starts.size() || axes->size() != starts.size() || steps->size() != starts.size())
        throw ImportError("bad-node", "starts, ends, axes and steps have different lengths");
    for (int64_t& axis : *axes) axis = normal_axis(axis, rank);
    normal_axes(*axes, rank); // each once
    for (size_t i = 0; i < starts.size(); i++) {
        int64_t axis = (*axes)[i], step = (*steps)[i];
        if (step == 0 || step == INT64_MIN) throw ImportError("bad-node", fmt::format("a step of {}", step));
        const Dim size = x->type().dim(axis);
        Range range =
            step > 0 ? forward_range(starts[i], ends[i], step, size) : backward_range(starts[i], ends[i], step, size);
        x = &node.build.slice(*x, axis, range.start, range.size, step);
    }
    return *x;
}

Values slice_attributes(Node& node) {
    auto starts = node.integers("starts"), ends = node.integers("ends");
    if (!starts || !ends) bad_attribute("attributes \"starts\" and \"ends\" are missing");
    return {
        &slice_axes(node, {starts->begin(), starts->end()}, {ends->begin(), ends->end()}, node.integers("axes"), {})};
}

// Starts, ends and steps of all axes, as data, and which axes may be cut.
struct DataRanges {
    Value *starts, *ends, *steps;
    std::vector<int64_t> axes;
};

// The inputs as they are, or put into vectors of all axes where only data shows which they mean.
DataRanges data_ranges(Node& node) {
    GraphBuilder& build = node.build;
    int64_t rank = node.type(0).rank(), count = build.length_of(node.input(1));
    auto as_i64 = [&](size_t i) -> Value& { return build.cast(node.input(i), DType::I64); };
    Value& ones = build.broadcast_to(build.scalar(DType::I64, 1), {count});
    DataRanges given{&as_i64(1), &as_i64(2), node.has_input(4) ? &as_i64(4) : &ones, all_axes(rank)};
    if (!node.has_input(3)) {
        given.axes.resize(static_cast<size_t>(std::min(rank, count)));
        return given;
    }
    if (auto axes = node.known_numbers(3)) {
        given.axes = *axes;
        for (int64_t& axis : given.axes) axis = normal_axis(axis, rank);
        normal_axes(given.axes, rank); // each once
        return given;
    }
    auto spread = [&](Value& to, Value& values) -> Value* {
        return &build.make("scatter_elements", {&to, &as_i64(3), &values});
    };
    Value& zeros = build.broadcast_to(build.scalar(DType::I64, 0), {rank});
    Value& all_ones = build.broadcast_to(build.scalar(DType::I64, 1), {rank});
    given.starts = spread(zeros, *given.starts);
    given.ends = spread(build.dims(node.type(0).shape(), {rank}), *given.ends);
    given.steps = spread(all_ones, *given.steps);
    return given;
}

// Of steps that only data shows: what is picked along an axis is computed while running.
Value& slice_by_data(Node& node) {
    GraphBuilder& build = node.build;
    Value* x = &node.input(0);
    DataRanges ranges = data_ranges(node);
    Shape sizes;
    for (int64_t axis : ranges.axes) sizes.push_back(x->type().dim(axis));
    auto op = [&](std::string_view name, Value& a, Value& b) -> Value& { return build.elementwise(name, {&a, &b}); };
    auto where = [&](Value& c, Value& a, Value& b) -> Value& {
        return build.make("where", build.broadcast_together({&c, &a, &b}));
    };
    Value &zero = build.scalar(DType::I64, 0), &one = build.scalar(DType::I64, 1);
    Value &size = build.dims(sizes, {static_cast<int64_t>(sizes.size())}), &last = op("sub", size, one);
    Value& step = *ranges.steps;
    Value& goes_back = op("less", step, zero);
    // From the front, and between the ends: 0 .. size, or -1 .. size - 1 on the way back.
    auto clamp = [&](Value& at, Value& low) -> Value& {
        Value& wrapped = where(op("less", at, zero), op("add", at, size), at);
        return op("minimum", op("maximum", wrapped, low), where(goes_back, last, size));
    };
    Value& start = clamp(*ranges.starts, zero);
    Value& end = clamp(*ranges.ends, where(goes_back, build.scalar(DType::I64, -1), zero));
    Value& span = op("sub", end, start);
    Value& goes_on = where(goes_back, op("less", span, zero), op("greater", span, zero));
    Value& more = op("div", op("sub", span, build.make("sign", {&step})), step);
    std::vector<Dim> counts = build.counts_of(where(goes_on, op("add", more, one), zero), "a size");
    for (const Dim& is_step : build.counts_of(op("minimum", build.make("abs", {&step}), one), "a step"))
        build.require(is_step, 1, "a step is 0");
    for (size_t i = 0; i < ranges.axes.size(); i++) {
        auto at = static_cast<int64_t>(i);
        auto scalar = [&](Value& v) -> Value& { return build.reshape(build.slice(v, 0, at, 1), {}); };
        x = &build.gather(*x, build.range(scalar(start), scalar(step), counts[i]), ranges.axes[i]);
    }
    return *x;
}

Values slice(Node& node) {
    auto is_number = [&](size_t i) { return !node.has_input(i) || node.known_numbers(i); };
    for (size_t i = 1; i < node.input_count(); i++)
        if (node.has_input(i) && (node.type(i).rank() != 1 || node.type(i).dim(0) != node.type(1).dim(0)))
            throw ImportError("bad-node", "starts, ends, axes and steps have different lengths");
    if (!is_number(3) || !is_number(4)) return {&slice_by_data(node)};
    return {&slice_axes(node, node.sizes(1), node.sizes(2), node.numbers(3, "axes"), node.numbers(4, "steps"))};
}

Values cut(Node& node, int64_t axis, const std::vector<Dim>& sizes) {
    Dim sum = 0;
    for (const Dim& size : sizes) {
        if (size.constant().value_or(0) < 0) throw ImportError("shape-mismatch", "the size of a part is negative");
        sum = sum + size;
    }
    if (sizes.size() != node.output_count())
        throw ImportError("bad-node", fmt::format("{} parts for {} outputs", sizes.size(), node.output_count()));
    node.build.require_equal(sum, node.type(0).dim(axis));
    Values parts;
    Dim start = 0;
    for (size_t i = 0; i < sizes.size(); i++) {
        parts.push_back(node.wants(i) ? &node.build.slice(node.input(0), axis, start, sizes[i]) : nullptr);
        start = start + sizes[i];
    }
    return parts;
}

Values split(Node& node) {
    int64_t axis = node.axis("axis", 0, node.type(0).rank());
    const Dim& size = node.type(0).dim(axis);
    if (node.has_input(1)) return cut(node, axis, node.counts(1, "the size of a part"));
    if (auto given = node.integers("split")) return cut(node, axis, {given->begin(), given->end()});
    auto count = static_cast<int64_t>(node.output_count());
    if (node.has_attribute("num_outputs") && node.integer("num_outputs") != count)
        bad_attribute(fmt::format("attribute \"num_outputs\" is {}, but there are {} outputs",
                                  node.integer("num_outputs"), count));
    if (count == 0) throw ImportError("bad-node", "it has no outputs");
    // Since opset 18 the last part may be smaller.
    Dim part = node.opset >= 18 ? Dim::ceildiv(size, count) : Dim::floordiv(size, count);
    std::vector<Dim> sizes(static_cast<size_t>(count), part);
    if (node.opset >= 18) sizes.back() = size - part * Dim(count - 1);
    return cut(node, axis, sizes);
}

const Row rows[] = {
    {"Slice", 1, 9, slice_attributes, 1, 1, "axes ends starts", "slice"},
    {"Slice", 10, newest, slice, 3, 5, "", "slice"},
    {"Split", 2, 12, split, 1, 1, "axis split", "slice"},
    {"Split", 13, 17, split, 1, 2, "axis", "slice"},
    {"Split", 18, newest, split, 1, 2, "axis num_outputs", "slice"},
};

} // namespace

std::span<const Row> slice_rows() { return rows; }

} // namespace cuvil::onnx
