// Parts of tensors: Slice and Split.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil::onnx {
namespace {

// Exporters write the ends of 32 or 64 bits for "as far as it goes".
constexpr int64_t far = INT32_MAX;

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
    auto clamp_low = [&](const Dim& p) {
        auto number = p.constant();
        return number && *number <= -far ? Dim(0) : Dim::max(from_front(p, size), 0);
    };
    bool is_past_end = start.constant().value_or(0) >= far, goes_to_end = end.constant().value_or(0) >= far;
    Dim first = is_past_end ? size : clamp_low(start);
    Dim stop = goes_to_end ? size : Dim::min(clamp_low(end), size);
    // Where `first` is behind the end the difference is negative all the same, so it needs no limit there.
    return {Dim::min(first, size), Dim::max(Dim::ceildiv(stop - first, step), 0)};
}

Range backward_range(const Dim& start, const Dim& end, int64_t step, const Dim& size) {
    auto clamp = [&](const Dim& p, int64_t low) {
        auto number = p.constant();
        if (number && (*number >= far || *number == -1)) return size - 1;
        if (number && *number <= -far) return Dim(low);
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

Values slice(Node& node) {
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
    if (node.has_input(1)) return cut(node, axis, node.sizes(1));
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
