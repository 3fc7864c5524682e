// Ops that rank elements along an axis, or go through it step by step.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

// i64, with another size along the axis.
void infer_positions(Inference& in, const Dim& size) {
    const Type& x = in.ranked(0);
    Shape shape = x.shape();
    shape[static_cast<size_t>(normal_axis(in, in.node().get<int64_t>("axis"), x.rank()))] = size;
    in.result(Type::tensor(DType::I64, std::move(shape)));
}

void infer_arg_extreme(Inference& in) {
    const Type& x = in.ranked(0);
    if (x.dim(normal_axis(in, in.node().get<int64_t>("axis"), x.rank())).is(0))
        in.fail("there is no largest or smallest of no elements, " + x.text());
    infer_positions(in, 1);
}

void infer_top_k(Inference& in) {
    const Shape& k = in.node().get<Shape>("k");
    if (k.size() != 1) in.fail("attribute 'k' needs one size");
    infer_positions(in, k[0]);
}

void infer_sort_rows(Inference& in) {
    const Type& x = in.ranked(0);
    if (x.rank() != 2) in.fail(x.text() + " is no list of rows");
    in.result(Type::tensor(DType::I64, {x.dim(0)}));
}

void infer_cumulative(Inference& in) {
    normal_axis(in, in.node().get<int64_t>("axis"), in.ranked(0).rank());
    in.result(in.type(0).with_layout({}));
}

void infer_suppression(Inference& in) {
    const Type &boxes = in.ranked(0), &scores = in.ranked(1), &order = in.ranked(2);
    bool fits = boxes.rank() == 3 && scores.rank() == 3 && order.rank() == 3 && boxes.dim(2).is(4) &&
                scores.shape() == order.shape() && boxes.dim(0) == scores.dim(0) && boxes.dim(1) == scores.dim(2);
    if (!fits) in.fail("operands do not fit each other: " + boxes.text() + ", " + scores.text() + ", " + order.text());
    in.result(scores.with_layout({}).with_dtype(DType::Bool));
}

OpDef arg_extreme(std::string_view name, std::string_view summary) {
    return {
        .name = name,
        .summary = summary,
        .operands = {{"x", Accepts::Number}},
        .attributes = {{"axis", AttributeKind::Int}, {"last", AttributeKind::Bool, false}},
        .infer = infer_arg_extreme,
        .lower = kernel(name),
    };
}

OpDef cumulative(std::string_view name, std::string_view summary) {
    return {
        .name = name,
        .summary = summary,
        .operands = {{"x", Accepts::Number}},
        .attributes = {{"axis", AttributeKind::Int},
                       {"exclusive", AttributeKind::Bool, false},
                       {"reverse", AttributeKind::Bool, false}},
        .infer = infer_cumulative,
        .lower = kernel(name),
    };
}

const OpDef defs[] = {
    arg_extreme("arg_max", "Where along the axis the largest element stands, the first or `last` of equal ones; a NaN "
                           "is the largest. The axis stays with size 1"),
    arg_extreme("arg_min", "Where along the axis the smallest element stands, the first or `last` of equal ones; a "
                           "NaN is the smallest. The axis stays with size 1"),
    {
        .name = "top_k",
        .summary = "Where along the axis the k largest (else smallest) elements stand, best first; of equal ones that "
                   "with the lower index. A NaN is greater than all numbers",
        .operands = {{"x", Accepts::Number}},
        .attributes = {{"axis", AttributeKind::Int},
                       {"k", AttributeKind::Dims},
                       {"largest", AttributeKind::Bool, true}},
        .infer = infer_top_k,
        .lower = kernel("top_k"),
    },
    {
        .name = "sort_rows",
        .summary = "The positions of the rows of x in rising lexicographic order; equal rows keep theirs. A NaN is "
                   "greater than all numbers",
        .operands = {{"x", Accepts::Any}},
        .infer = infer_sort_rows,
        .lower = kernel("sort_rows"),
    },
    cumulative("cum_sum", "The sum of the elements up to each along the axis: without itself if `exclusive`, from "
                          "the end if `reverse`"),
    cumulative("cum_prod", "The product of the elements up to each along the axis: without itself if `exclusive`, "
                           "from the end if `reverse`"),
    {
        .name = "non_max_suppression",
        .summary = "For scores [batch, class, box] in their `order`, best first, whether a box stays: at most `most` "
                   "do, their scores are above `score_threshold`, and none overlaps a better one by more than "
                   "`iou_threshold`",
        .operands = {{"boxes", Accepts::F32},
                     {"scores", Accepts::F32},
                     {"order", Accepts::Index},
                     {"most", Accepts::Index},
                     {"iou_threshold", Accepts::F32},
                     {"score_threshold", Accepts::F32, OperandDef::Optional}},
        .attributes = {{"centered", AttributeKind::Bool, false}},
        .infer = infer_suppression,
        .lower = kernel("non_max_suppression"),
    },
};

} // namespace

std::span<const OpDef> order_ops() { return defs; }

} // namespace cuvil
