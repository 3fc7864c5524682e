// Operators that rank elements, or go through an axis step by step.
#include "import/onnx/axes.hpp"
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

namespace cuvil::onnx {
namespace {

Values arg_extreme(Node& node, std::string_view op) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    int64_t axis = node.axis("axis", 0, x.type().rank());
    build.require_at_least(x.type().dim(axis), 1, "the size of the axis");
    Value& positions = build.make(op, {&x}, {{"axis", axis}, {"last", node.integer("select_last_index", 0) != 0}});
    return {node.integer("keepdims", 1) != 0 ? &positions : &build.squeeze(positions, {axis})};
}

Values arg_max(Node& node) { return arg_extreme(node, "arg_max"); }
Values arg_min(Node& node) { return arg_extreme(node, "arg_min"); }

Values top_k(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    int64_t axis = node.axis("axis", -1, x.type().rank());
    const Dim& size = x.type().dim(axis);
    std::vector<Dim> k = node.opset < 10 ? std::vector<Dim>{node.integer("k")} : node.counts(1, "k");
    if (k.size() != 1) throw ImportError("bad-node", fmt::format("{} values of k", k.size()));
    build.require_at_least(k[0], 0, "k");
    build.require_at_least(size - k[0], 0, "the size of the axis, less k,");
    Value& positions =
        build.make("top_k", {&x}, {{"axis", axis}, {"k", Shape{k[0]}}, {"largest", node.integer("largest", 1) != 0}});
    return {&build.make("gather_elements", {&x, &positions}, {{"axis", axis}}), &positions};
}

Values cumulative(Node& node, std::string_view op) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    int64_t rank = x.type().rank();
    auto along = [&](Value& from, int64_t axis) -> Value& {
        return build.make(op, {&from},
                          {{"axis", axis},
                           {"exclusive", node.integer("exclusive", 0) != 0},
                           {"reverse", node.integer("reverse", 0) != 0}});
    };
    if (!checked_count(node.type(1).shape()).is(1))
        throw ImportError("bad-node", fmt::format("the axis is {}", node.type(1).text()));
    if (auto axis = node.known_numbers(1)) return {&along(x, normal_axis(axis->at(0), rank))};
    const Shape shape = x.type().shape();
    Shape around = around_axis(build, shape, axis_from_front(build, node.input(1), rank));
    return {&build.reshape(along(build.reshape(x, around), 1), shape)};
}

Values cum_sum(Node& node) { return cumulative(node, "cum_sum"); }
Values cum_prod(Node& node) { return cumulative(node, "cum_prod"); }

// What sorting shows of the equal rows of a list: groups, in rising order.
struct Groups {
    Value* first;  // where in the list the first row of each stands
    Value* of_row; // the group of each row
    Value* counts; // how many rows each has
};

Groups groups_of_rows(GraphBuilder& build, Value& rows) {
    const Dim& count = rows.type().dim(0);
    Value& order = build.make("sort_rows", {&rows});
    Value& sorted = build.gather(rows, order, 0);
    // A row begins a group unless it is the one before; NaN is taken to be equal to itself.
    Value& place = build.positions(count);
    Value& before = build.gather(sorted, build.elementwise("maximum", build.elementwise("sub", place, 1), 0), 0);
    Value* differ = &build.make("logical_not", {&build.make("equal", {&sorted, &before})});
    if (is_floating(rows.type().dtype())) {
        auto is_number = [&](Value& v) -> Value& { return build.make("equal", {&v, &v}); };
        Value& any_number = build.make("logical_or", {&is_number(sorted), &is_number(before)});
        differ = &build.make("logical_and", {differ, &any_number});
    }
    Value& changes = build.reduce("reduce_max", build.cast(*differ, DType::I32), {1}, false);
    Value& begins = build.elementwise(
        "logical_or", {&build.elementwise("greater", changes, 0), &build.elementwise("equal", place, 0)});
    std::string symbol = build.fresh_dim("unique").as_symbol().value();
    Value& starts = build.make("nonzero", {&begins}, {{"count", symbol}});
    Dim groups = starts.type().dim(1);
    Value& group =
        build.elementwise("sub", build.make("cum_sum", {&build.cast(begins, DType::I64)}, {{"axis", int64_t{0}}}), 1);
    Value& zeros = build.broadcast_to(build.scalar(DType::I64, 0), {count});
    Value& ones = build.broadcast_to(build.scalar(DType::I64, 1), {count});
    Value& none = build.broadcast_to(build.scalar(DType::I64, 0), {groups});
    return {&build.gather(order, build.reshape(starts, {groups}), 0),
            &build.make("scatter_elements", {&zeros, &order, &group}),
            &build.make("scatter_elements", {&none, &group, &ones}, {{"reduction", std::string("add")}})};
}

Values unique(Node& node) {
    GraphBuilder& build = node.build;
    Value* x = &node.input(0);
    if (x->type().dtype() == DType::String) node.unsupported("strings");
    int64_t axis = 0;
    if (node.has_attribute("axis"))
        axis = node.axis("axis", {}, x->type().rank());
    else
        x = &build.reshape(*x, {checked_count(x->type().shape())});
    // One row for each place along the axis.
    std::vector<int64_t> perm{axis};
    for (int64_t i = 0; i < x->type().rank(); i++)
        if (i != axis) perm.push_back(i);
    Value& moved = build.transpose(*x, perm);
    Dim length = checked_count(std::span(moved.type().shape()).subspan(1));
    Groups groups = groups_of_rows(build, build.reshape(moved, {moved.type().dim(0), length}));
    if (node.integer("sorted", 1) == 0) {
        // By where they first occur: `order` lists the groups, `rank` says where each went.
        const Shape& shape = groups.first->type().shape();
        Value& order = build.make("sort_rows", {&build.reshape(*groups.first, {shape[0], 1})});
        Value& zeros = build.broadcast_to(build.scalar(DType::I64, 0), shape);
        Value& rank = build.make("scatter_elements", {&zeros, &order, &build.positions(shape[0])});
        groups = {&build.gather(*groups.first, order, 0), &build.gather(rank, *groups.of_row, 0),
                  &build.gather(*groups.counts, order, 0)};
    }
    return {&build.gather(*x, *groups.first, axis), groups.first, groups.of_row, groups.counts};
}

Values non_max_suppression(Node& node) {
    GraphBuilder& build = node.build;
    Value &boxes = node.input(0), &given = node.input(1);
    if (boxes.type().rank() != 3 || given.type().rank() != 3)
        throw ImportError("shape-mismatch",
                          fmt::format("boxes {} and scores {}", boxes.type().text(), given.type().text()));
    const Dim &batch = boxes.type().dim(0), &count = boxes.type().dim(1);
    Value& scores = build.fit(given, {batch, given.type().dim(1), count});
    auto scalar = [&](size_t i, DType dtype) -> Value& {
        if (!node.has_input(i)) return build.scalar(dtype, 0);
        if (node.type(i).dtype() != dtype || !checked_count(node.type(i).shape()).is(1))
            throw ImportError("bad-node", fmt::format("input {} is {}", i, node.type(i).text()));
        return build.reshape(node.input(i), {});
    };
    Value& order = build.make("top_k", {&scores}, {{"axis", int64_t{2}}, {"k", Shape{count}}});
    Value& stays = build.make("non_max_suppression",
                              {&boxes, &scores, &order, &scalar(2, DType::I64), &scalar(3, DType::F32),
                               node.has_input(4) ? &scalar(4, DType::F32) : nullptr},
                              {{"centered", node.integer("center_point_box", 0) != 0}});
    // Batch, class, and the place in order, which leads to the box.
    std::string symbol = build.fresh_dim("selected").as_symbol().value();
    Value& places = build.transpose(build.make("nonzero", {&stays}, {{"count", symbol}}), {1, 0});
    Value& box = build.make("gather_nd", {&order, &places});
    return {&build.concat({&build.slice(places, 1, 0, 2), &build.unsqueeze(box, {1})}, 1)};
}

const Row rows[] = {
    {"ArgMax", 1, 11, arg_max, 1, 1, "axis keepdims", "arg_max"},
    {"ArgMax", 12, newest, arg_max, 1, 1, "axis keepdims select_last_index", "arg_max"},
    {"ArgMin", 1, 11, arg_min, 1, 1, "axis keepdims", "arg_min"},
    {"ArgMin", 12, newest, arg_min, 1, 1, "axis keepdims select_last_index", "arg_min"},
    {"CumProd", 26, newest, cum_prod, 2, 2, "exclusive reverse", "cum_prod"},
    {"CumSum", 11, newest, cum_sum, 2, 2, "exclusive reverse", "cum_sum"},
    {"NonMaxSuppression", 10, newest, non_max_suppression, 2, 5, "center_point_box", "non_max_suppression"},
    {"TopK", 1, 9, top_k, 1, 1, "axis k", "top_k"},
    {"TopK", 10, 10, top_k, 2, 2, "axis", "top_k"},
    {"TopK", 11, newest, top_k, 2, 2, "axis largest sorted", "top_k"},
    {"Unique", 11, newest, unique, 1, 1, "axis sorted", "sort_rows"},
};

} // namespace

std::span<const Row> order_rows() { return rows; }

} // namespace cuvil::onnx
