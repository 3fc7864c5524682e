// Operators whose reads and writes go where data says.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <array>

namespace cuvil::onnx {
namespace {

void refuse_strings(Node& node) {
    if (node.type(0).dtype() == DType::String) node.unsupported("strings");
}

Values gather(Node& node) {
    refuse_strings(node);
    return {&node.build.gather(node.input(0), node.input(1), node.axis("axis", 0, node.type(0).rank()))};
}

// But for the axis, the indices must not be longer than the data.
void check_elements_along(Node& node, int64_t axis) {
    const Type &x = node.type(0), &indices = node.type(1);
    if (indices.rank() != x.rank())
        throw ImportError("shape-mismatch", fmt::format("indices {} and data {}", indices.text(), x.text()));
    for (int64_t i = 0; i < x.rank(); i++)
        if (i != axis)
            node.build.require_at_least(x.dim(i) - indices.dim(i), 0,
                                        fmt::format("what the data has at axis {} beyond the indices", i));
}

Values gather_elements(Node& node) {
    refuse_strings(node);
    int64_t axis = node.axis("axis", 0, node.type(0).rank());
    check_elements_along(node, axis);
    return {&node.build.make("gather_elements", {&node.input(0), &node.input(1)}, {{"axis", axis}})};
}

Values gather_nd(Node& node) {
    refuse_strings(node);
    Value *x = &node.input(0), *indices = &node.input(1);
    int64_t batch_axes = node.integer("batch_dims", 0);
    for (int64_t i = 0; i < batch_axes && i < std::min(x->type().rank(), indices->type().rank()); i++)
        node.build.require_equal(x->type().dim(i), indices->type().dim(i));
    return {&node.build.make("gather_nd", {x, indices}, {{"batch_axes", batch_axes}})};
}

// Which reductions there are depends on the version of the definition.
std::string reduction_of(Node& node) {
    std::string reduction(node.text("reduction", "none"));
    bool is_known = reduction == "none" || reduction == "add" || reduction == "mul" ||
                    (node.opset >= 18 && (reduction == "max" || reduction == "min"));
    if (!is_known) bad_attribute(fmt::format("attribute \"reduction\" is \"{}\"", reduction));
    return reduction;
}

// Combining needs numbers; bools are combined as the bytes 0 and 1.
Value& scatter(Node& node, std::string_view op, Value& updates, Attributes attributes) {
    GraphBuilder& build = node.build;
    refuse_strings(node);
    Value &x = node.input(0), &indices = node.input(1);
    std::string reduction = reduction_of(node);
    attributes["reduction"] = reduction;
    if (x.type().dtype() != DType::Bool || reduction == "none")
        return build.make(op, {&x, &indices, &updates}, attributes);
    attributes["reduction"] = reduction == "add" ? "max" : reduction == "mul" ? "min" : reduction;
    Value& bytes = build.make(op, {&build.cast(x, DType::U8), &indices, &build.cast(updates, DType::U8)}, attributes);
    return build.cast(bytes, DType::Bool);
}

Values scatter_elements(Node& node) {
    int64_t axis = node.axis("axis", 0, node.type(0).rank());
    check_elements_along(node, axis);
    if (node.type(2).rank() != node.type(1).rank())
        throw ImportError("shape-mismatch",
                          fmt::format("indices {} and updates {}", node.type(1).text(), node.type(2).text()));
    return {&scatter(node, "scatter_elements", node.build.fit(node.input(2), node.type(1).shape()), {{"axis", axis}})};
}

Values scatter_nd(Node& node) {
    const Type &x = node.type(0), &indices = node.type(1), &updates = node.type(2);
    auto length = indices.rank() == 0 ? std::nullopt : indices.dim(-1).constant();
    if (!length) throw ImportError("data-dependent-shape", "how many axes the indices name depends on a size");
    if (*length > x.rank())
        throw ImportError("shape-mismatch", fmt::format("indices {} and data {}", indices.text(), x.text()));
    Shape shape(indices.shape().begin(), indices.shape().end() - 1);
    shape.insert(shape.end(), x.shape().begin() + *length, x.shape().end());
    if (updates.shape().size() != shape.size())
        throw ImportError("shape-mismatch", fmt::format("updates {}, expected {}", updates.text(), text(shape)));
    return {&scatter(node, "scatter_nd", node.build.fit(node.input(2), shape), {})};
}

// The indices of what is not zero: [rank, count].
Value& nonzero_of(GraphBuilder& build, Value& x) {
    std::string count = build.fresh_dim("nonzero").as_symbol().value();
    return build.make("nonzero", {&x}, {{"count", std::move(count)}});
}

Values nonzero(Node& node) {
    refuse_strings(node);
    return {&nonzero_of(node.build, node.input(0))};
}

Values compress(Node& node) {
    GraphBuilder& build = node.build;
    refuse_strings(node);
    Value *x = &node.input(0), &condition = node.input(1);
    if (condition.type().rank() != 1 || condition.type().dtype() != DType::Bool)
        throw ImportError("type-mismatch", fmt::format("the condition is {}", condition.type().text()));
    int64_t axis = 0;
    if (node.has_attribute("axis"))
        axis = node.axis("axis", {}, x->type().rank());
    else
        x = &build.reshape(*x, {checked_count(x->type().shape())});
    Value& chosen = nonzero_of(build, condition);
    return {&build.gather(*x, build.reshape(chosen, {chosen.type().dim(1)}), axis)};
}

// Off everywhere, on where the index along the new axis is that of the input. Other indices leave off everywhere.
Values one_hot(Node& node) {
    GraphBuilder& build = node.build;
    Value& depth_input = build.cast(node.input(1), DType::I64);
    if (!checked_count(depth_input.type().shape()).is(1) || node.type(2).rank() != 1)
        throw ImportError("shape-mismatch",
                          fmt::format("depth is {}, values are {}", node.type(1).text(), node.type(2).text()));
    Value& values = build.fit(node.input(2), {2});
    Dim depth;
    if (auto number = build.constant_number(depth_input))
        depth = static_cast<int64_t>(*number);
    else
        depth = build.counts_of(depth_input, "the depth").at(0);
    Value& indices = build.cast(node.input(0), DType::I64);
    int64_t axis = node.axis("axis", -1, indices.type().rank() + 1);
    Value& wrapped = build.make("where", {&build.elementwise("less", indices, 0),
                                          &build.elementwise("add", {&indices, &build.dims({depth}, {})}), &indices});
    Shape places(static_cast<size_t>(indices.type().rank() + 1), 1);
    places[static_cast<size_t>(axis)] = depth;
    Value& is_on =
        build.elementwise("equal", {&build.unsqueeze(wrapped, {axis}), &build.reshape(build.positions(depth), places)});
    auto value = [&](int64_t i) -> Value& {
        return build.broadcast_to(build.reshape(build.slice(values, 0, i, 1), {}), is_on.type().shape());
    };
    return {&build.make("where", {&is_on, &value(1), &value(0)})};
}

// Elements of the last two axes by their distance from the diagonal: column - row.
Value& distance_from_diagonal(GraphBuilder& build, const Dim& rows, const Dim& columns) {
    return build.elementwise("sub", {&build.positions(columns), &build.reshape(build.positions(rows), {rows, 1})});
}

Values trilu(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    if (x.type().rank() < 2) throw ImportError("shape-mismatch", fmt::format("{} is no matrix", x.type().text()));
    Value& k = node.has_input(1) ? build.reshape(node.input(1), {}) : build.scalar(DType::I64, 0);
    Value& distance = distance_from_diagonal(build, x.type().dim(-2), x.type().dim(-1));
    Value& stays = build.elementwise(node.integer("upper", 1) != 0 ? "greater_equal" : "less_equal", {&distance, &k});
    const Shape& shape = x.type().shape();
    return {
        &build.make("where", {&build.broadcast_to(stays, shape), &x, &build.broadcast_to(build.scalar(x, 0), shape)})};
}

Values eye_like(Node& node) {
    GraphBuilder& build = node.build;
    const Type& like = node.type(0);
    if (like.rank() != 2) throw ImportError("shape-mismatch", fmt::format("{} is no matrix", like.text()));
    auto dtype = node.has_attribute("dtype") ? dtype_of(node.integer("dtype")) : like.dtype();
    if (!dtype) bad_attribute(fmt::format("element type {} is unknown", node.integer("dtype")));
    Value& distance = distance_from_diagonal(build, like.dim(0), like.dim(1));
    Value& k = build.rewriter().scalar_constant(DType::I64, node.integer("k", 0));
    return {&build.cast(build.elementwise("equal", {&distance, &k}), *dtype)};
}

const Row rows[] = {
    {"Compress", 9, newest, compress, 2, 2, "axis", "nonzero"},
    {"EyeLike", 9, newest, eye_like, 1, 1, "dtype k", "range"},
    {"Gather", 1, newest, gather, 2, 2, "axis", "gather"},
    {"GatherElements", 11, newest, gather_elements, 2, 2, "axis", "gather_elements"},
    {"GatherND", 11, 11, gather_nd, 2, 2, "", "gather_nd"},
    {"GatherND", 12, newest, gather_nd, 2, 2, "batch_dims", "gather_nd"},
    {"NonZero", 9, newest, nonzero, 1, 1, "", "nonzero"},
    {"OneHot", 9, newest, one_hot, 3, 3, "axis", "equal"},
    {"Scatter", 9, newest, scatter_elements, 3, 3, "axis", "scatter_elements"},
    {"ScatterElements", 11, 15, scatter_elements, 3, 3, "axis", "scatter_elements"},
    {"ScatterElements", 16, newest, scatter_elements, 3, 3, "axis reduction", "scatter_elements"},
    {"ScatterND", 11, 15, scatter_nd, 3, 3, "", "scatter_nd"},
    {"ScatterND", 16, newest, scatter_nd, 3, 3, "reduction", "scatter_nd"},
    {"Trilu", 14, newest, trilu, 1, 2, "upper", "where"},
};

} // namespace

std::span<const Row> indexing_rows() { return rows; }

} // namespace cuvil::onnx
