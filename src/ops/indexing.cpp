// Ops whose reads depend on data.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

void infer_gather(Inference& in) {
    const Type &x = in.ranked(0), &indices = in.ranked(1);
    auto axis = static_cast<size_t>(normal_axis(in, in.node().get<int64_t>("axis"), x.rank()));
    Shape shape(x.shape().begin(), x.shape().begin() + static_cast<int64_t>(axis));
    shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
    shape.insert(shape.end(), x.shape().begin() + static_cast<int64_t>(axis) + 1, x.shape().end());
    in.result(x.with_layout({}).with_shape(std::move(shape)));
    if (!in.elements(0) || !in.elements(1) || x.rank() != 1) return;
    auto size = static_cast<int64_t>(in.elements(0)->size());
    std::vector<Dim> elements;
    for (const Dim& index : *in.elements(1)) {
        auto i = index.constant();
        if (!i || *i < -size || *i >= size) return;
        elements.push_back((*in.elements(0))[static_cast<size_t>(*i < 0 ? *i + size : *i)]);
    }
    in.result_elements(std::move(elements));
}

void infer_nonzero(Inference& in) {
    in.result(Type::tensor(DType::I64, {Dim(in.ranked(0).rank()), Dim::symbol(in.node().get<std::string>("count"))}));
}

// The indices have the data's rank and, but for the axis, no greater sizes.
void expect_elements_along(Inference& in, const Type& x, const Type& indices, size_t axis) {
    bool fits = x.rank() == indices.rank();
    for (size_t i = 0; fits && i < x.shape().size(); i++)
        fits = i == axis || (indices.shape()[i] - x.shape()[i]).lower_bound().value_or(0) <= 0;
    if (!fits) in.fail("indices " + indices.text() + " do not fit " + x.text());
}

void infer_gather_elements(Inference& in) {
    const Type &x = in.ranked(0), &indices = in.ranked(1);
    auto axis = static_cast<size_t>(normal_axis(in, in.node().get<int64_t>("axis"), x.rank()));
    expect_elements_along(in, x, indices, axis);
    in.result(x.with_layout({}).with_shape(indices.shape()));
}

void expect_reduction(Inference& in) {
    const auto& reduction = in.node().get<std::string>("reduction");
    for (std::string_view known : {"none", "add", "mul", "max", "min"})
        if (reduction == known) return;
    in.fail("attribute 'reduction' is '" + reduction + "', which is none of none, add, mul, max, min");
}

void infer_scatter_elements(Inference& in) {
    const Type &x = in.ranked(0), &indices = in.ranked(1), &updates = in.ranked(2);
    auto axis = static_cast<size_t>(normal_axis(in, in.node().get<int64_t>("axis"), x.rank()));
    if (updates.dtype() != x.dtype() || updates.shape() != indices.shape())
        in.fail("operands do not fit each other: " + x.text() + ", " + indices.text() + ", " + updates.text());
    expect_elements_along(in, x, indices, axis);
    expect_reduction(in);
    in.result(x.with_layout({}));
}

// How many axes of the data an index tuple names.
int64_t tuple_length(Inference& in, const Type& x, const Type& indices, int64_t batch_axes) {
    auto length = indices.rank() == 0 ? std::nullopt : indices.dim(-1).constant();
    if (!length || *length < 1 || *length + batch_axes > x.rank() || batch_axes >= indices.rank())
        in.fail("the last axis of " + indices.text() + " must have a fixed size that names axes of " + x.text());
    return *length;
}

void infer_gather_nd(Inference& in) {
    const Type &x = in.ranked(0), &indices = in.ranked(1);
    int64_t batch_axes = in.node().get<int64_t>("batch_axes");
    if (batch_axes < 0) in.fail("attribute 'batch_axes' is negative");
    int64_t named = batch_axes + tuple_length(in, x, indices, batch_axes);
    for (int64_t i = 0; i < batch_axes; i++)
        if (compare(x.dim(i), indices.dim(i)) == Equality::Different)
            in.fail("batches differ, " + x.text() + " and " + indices.text());
    Shape shape(indices.shape().begin(), indices.shape().end() - 1);
    shape.insert(shape.end(), x.shape().begin() + named, x.shape().end());
    in.result(x.with_layout({}).with_shape(std::move(shape)));
}

void infer_scatter_nd(Inference& in) {
    const Type &x = in.ranked(0), &indices = in.ranked(1), &updates = in.ranked(2);
    Shape shape(indices.shape().begin(), indices.shape().end() - (indices.rank() > 0 ? 1 : 0));
    shape.insert(shape.end(), x.shape().begin() + tuple_length(in, x, indices, 0), x.shape().end());
    bool fits = updates.dtype() == x.dtype() && updates.shape().size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); i++)
        fits = compare(updates.shape()[i], shape[i]) != Equality::Different;
    if (!fits) in.fail("updates " + updates.text() + " do not fit indices " + indices.text() + " of " + x.text());
    expect_reduction(in);
    in.result(x.with_layout({}));
}

const OpDef defs[] = {
    {
        .name = "gather",
        .summary =
            "Slices of x along the axis, picked by indices; negative ones count from the end; others out of range fail",
        .operands = {{"x"}, {"indices", Accepts::Index}},
        .attributes = {{"axis", AttributeKind::Int, int64_t{0}}},
        .infer = infer_gather,
        .lower = kernel("gather"),
    },
    {
        .name = "gather_elements",
        .summary = "For each index, the element of x at its own place but for the axis, where the index says which; "
                   "indices as in gather",
        .operands = {{"x"}, {"indices", Accepts::Index}},
        .attributes = {{"axis", AttributeKind::Int, int64_t{0}}},
        .infer = infer_gather_elements,
        .lower = kernel("gather_elements"),
    },
    {
        .name = "gather_nd",
        .summary = "Slices of x that tuples of indices name, the last axis of `indices`; x and indices begin with "
                   "`batch_axes` axes in common",
        .operands = {{"x"}, {"indices", Accepts::Index}},
        .attributes = {{"batch_axes", AttributeKind::Int, int64_t{0}}},
        .infer = infer_gather_nd,
        .lower = kernel("gather_nd"),
    },
    {
        .name = "scatter_elements",
        .summary = "x with each update put to, or combined with, the element at its own place but for the axis, where "
                   "the index says which; in row-major order",
        .operands = {{"x"}, {"indices", Accepts::Index}, {"updates"}},
        .attributes = {{"axis", AttributeKind::Int, int64_t{0}},
                       {"reduction", AttributeKind::String, std::string("none")}},
        .infer = infer_scatter_elements,
        .lower = kernel("scatter_elements"),
    },
    {
        .name = "scatter_nd",
        .summary = "x with updates put to, or combined with, the slices that tuples of indices name; in row-major "
                   "order",
        .operands = {{"x"}, {"indices", Accepts::Index}, {"updates"}},
        .attributes = {{"reduction", AttributeKind::String, std::string("none")}},
        .infer = infer_scatter_nd,
        .lower = kernel("scatter_nd"),
    },
    {
        .name = "nonzero",
        .summary = "The indices of the elements that are not 0, one column each, in row-major order; `count` names "
                   "their number",
        .operands = {{"x", Accepts::Any}},
        .attributes = {{"count", AttributeKind::String}},
        .infer = infer_nonzero,
        .lower = kernel("nonzero"),
    },
};

} // namespace

std::span<const OpDef> indexing_ops() { return defs; }

} // namespace cuvil
