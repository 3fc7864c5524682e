// Ops that move elements and compute nothing.
#include "ops/families.hpp"
#include "ops/infer.hpp"

#include <algorithm>

namespace cuvil {
namespace {

void keep_elements(Inference& in) {
    if (in.elements(0)) in.result_elements(*in.elements(0));
}

void infer_identity(Inference& in) {
    in.result(in.type(0));
    keep_elements(in);
}

void infer_reshape(Inference& in) {
    const Type& x = in.ranked(0);
    const Shape& shape = in.node().get<Shape>("shape");
    Dim from = element_count(x.shape()), to = element_count(shape);
    if (compare(from, to) == Equality::Different)
        in.fail(x.text() + " has " + from.text() + " elements, " + text(shape) + " has " + to.text());
    in.assume_equal_counts(x.shape(), shape);
    in.result(x.with_layout({}).with_shape(shape));
    keep_elements(in);
}

void infer_transpose(Inference& in) {
    const Type& x = in.ranked(0);
    const auto& perm = in.node().get<std::vector<int64_t>>("perm");
    Shape shape;
    std::vector<bool> seen(x.shape().size());
    for (int64_t axis : perm) {
        if (axis < 0 || axis >= x.rank() || seen[static_cast<size_t>(axis)]) break;
        seen[static_cast<size_t>(axis)] = true;
        shape.push_back(x.dim(axis));
    }
    if (shape.size() != x.shape().size() || perm.size() != shape.size())
        in.fail("attribute 'perm' does not name each axis of " + x.text() + " once");
    in.result(x.with_layout({}).with_shape(std::move(shape)));
}

// Right-aligned: each axis keeps its size or grows from 1.
void infer_broadcast(Inference& in) {
    const Type& x = in.ranked(0);
    const Shape& shape = in.node().get<Shape>("shape");
    if (static_cast<size_t>(x.rank()) > shape.size()) in.fail(x.text() + " has more axes than " + text(shape));
    for (int64_t i = 1; i <= x.rank(); i++)
        if (!x.dim(-i).is(1) && x.dim(-i) != shape[shape.size() - static_cast<size_t>(i)])
            in.fail("Broadcast mismatch at axis -" + std::to_string(i) + ": " + x.text() + " to " + text(shape));
    in.result(x.with_shape(shape));
    if (in.elements(0) && in.elements(0)->size() == 1 && shape.size() == 1)
        if (auto count = shape[0].constant(); count && *count >= 0 && *count <= 64)
            in.result_elements(std::vector<Dim>(static_cast<size_t>(*count), (*in.elements(0))[0]));
}

// What is known to lie outside of x is refused; sizes that are not known are the maker's to keep within it.
void expect_within(const Inference& in, const Dim& axis, const Dim& start, const Dim& size, int64_t step) {
    auto first = start.constant(), count = size.constant(), end = axis.constant();
    if (!first || !count || *count <= 0) return;
    auto last = static_cast<__int128>(*first) + static_cast<__int128>(*count - 1) * step;
    auto is_outside = [&](__int128 at) { return at < 0 || (end && at >= *end); };
    if (is_outside(*first) || is_outside(last)) in.fail("the slice leaves " + in.type(0).text());
}

// Starts, sizes and steps for every axis.
void infer_slice(Inference& in) {
    const Type& x = in.ranked(0);
    const Shape &starts = in.node().get<Shape>("starts"), &sizes = in.node().get<Shape>("sizes");
    const auto& steps = in.node().get<std::vector<int64_t>>("steps");
    size_t rank = x.shape().size();
    if (starts.size() != rank || sizes.size() != rank || steps.size() != rank)
        in.fail("starts, sizes and steps must be given for each axis of " + x.text());
    for (size_t i = 0; i < rank; i++) expect_within(in, x.shape()[i], starts[i], sizes[i], steps[i]);
    in.result(x.with_layout({}).with_shape(sizes));
    auto start = rank == 1 ? starts[0].constant() : std::nullopt;
    auto size = rank == 1 ? sizes[0].constant() : std::nullopt;
    if (!in.elements(0) || !start || !size) return;
    auto known = static_cast<int64_t>(in.elements(0)->size());
    std::vector<Dim> elements;
    for (int64_t i = 0; i < *size; i++) {
        auto at = static_cast<__int128>(*start) + static_cast<__int128>(i) * steps[0];
        if (at < 0 || at >= known || *size > known) in.fail("the slice leaves " + x.text());
        elements.push_back((*in.elements(0))[static_cast<size_t>(at)]);
    }
    in.result_elements(std::move(elements));
}

void infer_concat(Inference& in) {
    if (in.operand_count() == 0) in.fail("needs an operand");
    const Type& first = in.ranked(0);
    auto axis = static_cast<size_t>(normal_axis(in, in.node().get<int64_t>("axis"), first.rank()));
    Shape shape = first.shape();
    std::vector<Dim> elements;
    bool known = first.rank() == 1;
    for (size_t i = 0; i < in.operand_count(); i++) {
        const Type& x = in.ranked(i);
        if (x.dtype() != first.dtype() || x.rank() != first.rank())
            in.fail("operands do not fit each other: " + first.text() + " and " + x.text());
        for (size_t k = 0; k < shape.size(); k++)
            if (k != axis && x.shape()[k] != shape[k])
                in.fail("sizes differ at axis " + std::to_string(k) + ": " + first.text() + " and " + x.text());
        if (i > 0) shape[axis] = shape[axis] + x.shape()[axis];
        known = known && in.elements(i).has_value();
        if (known) elements.insert(elements.end(), in.elements(i)->begin(), in.elements(i)->end());
    }
    in.result(first.with_layout({}).with_shape(std::move(shape)));
    if (known) in.result_elements(std::move(elements));
}

void infer_pad(Inference& in) {
    const Type& x = in.ranked(0);
    const Shape &low = in.node().get<Shape>("low"), &high = in.node().get<Shape>("high");
    if (low.size() != x.shape().size() || high.size() != x.shape().size())
        in.fail("low and high must be given for each axis of " + x.text());
    Shape shape = x.shape();
    for (size_t i = 0; i < shape.size(); i++) {
        if (low[i].constant().value_or(0) < 0 || high[i].constant().value_or(0) < 0) in.fail("low or high is negative");
        shape[i] = shape[i] + low[i] + high[i];
    }
    in.result(x.with_layout({}).with_shape(std::move(shape)));
}

[[noreturn]] void refuse(Inference& in) { in.fail("is made by planning only"); }

const OpDef defs[] = {
    {
        .name = "identity",
        .summary = "x",
        .operands = {{"x"}},
        .infer = infer_identity,
        .lower = alias,
    },
    {
        .name = "reshape",
        .summary = "The elements of x, in row-major order, under another shape",
        .operands = {{"x"}},
        .attributes = {{"shape", AttributeKind::Dims}},
        .infer = infer_reshape,
        .lower = alias,
    },
    {
        .name = "transpose",
        .summary = "Axis i of the result is axis perm[i] of x",
        .operands = {{"x"}},
        .attributes = {{"perm", AttributeKind::Ints}},
        .infer = infer_transpose,
        .lower = kernel("transpose"),
    },
    {
        .name = "broadcast",
        .summary = "x repeated along new leading axes and along axes of size 1",
        .operands = {{"x"}},
        .attributes = {{"shape", AttributeKind::Dims}},
        .infer = infer_broadcast,
        .lower = kernel("broadcast"),
    },
    {
        .name = "slice",
        .summary =
            "x[start], x[start + step], ... along each axis, `sizes` of them, all within x; steps may be negative",
        .operands = {{"x"}},
        .attributes = {{"starts", AttributeKind::Dims}, {"sizes", AttributeKind::Dims}, {"steps", AttributeKind::Ints}},
        .infer = infer_slice,
        .lower = kernel("slice"),
    },
    {
        .name = "concat",
        .summary = "The operands behind each other along the axis",
        .operands = {{"inputs", Accepts::Any, OperandDef::Variadic}},
        .attributes = {{"axis", AttributeKind::Int}},
        .infer = infer_concat,
        .lower = kernel("concat"),
    },
    {
        .name = "pad",
        .summary = "x with `low` elements of `value` before and `high` behind it along each axis, at least 0",
        .operands = {{"x", Accepts::Number}},
        .attributes = {{"low", AttributeKind::Dims},
                       {"high", AttributeKind::Dims},
                       {"value", AttributeKind::Float, 0.0}},
        .infer = infer_pad,
        .lower = kernel("pad"),
    },
    {
        .name = "view",
        .summary =
            "Elements of x, read from an offset on in strides; its leading axes may be cut otherwise than those of "
            "the result; made by planning only",
        .operands = {{"x"}},
        .attributes = {{"shape", AttributeKind::Dims},
                       {"strides", AttributeKind::Dims},
                       {"offset", AttributeKind::Dims}},
        .infer = refuse,
        .lower = alias,
    },
    {
        .name = "relayout",
        .summary = "x in another memory layout; made by planning only",
        .operands = {{"x", Accepts::F32}},
        .lower = kernel("relayout"),
    },
};

} // namespace

std::span<const OpDef> movement_ops() { return defs; }

} // namespace cuvil
