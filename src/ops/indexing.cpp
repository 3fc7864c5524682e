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
