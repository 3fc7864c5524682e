// Movement of elements: what moves nothing goes, what moves twice moves once.
#include "optimize/rules/rule.hpp"

#include <algorithm>

namespace cuvil {
namespace {

using Ints = std::vector<int64_t>;

Value* only_operand(OpNode& node, Rewriter&) { return node.operands().size() == 1 ? node.operand(0) : nullptr; }

// For ops that keep their operand if its type is that of the result.
Value* same_type(OpNode& node, Rewriter&) {
    return node.operand(0)->type() == node.result().type() ? node.operand(0) : nullptr;
}

// The node that makes the operand, if it is of the same op.
OpNode* same_op_before(const OpNode& node) {
    OpNode* inner = node.operand(0)->producer();
    return inner && inner->op() == node.op() ? inner : nullptr;
}

Value* reshape_of_reshape(OpNode& node, Rewriter& rewriter) {
    OpNode* inner = same_op_before(node);
    return inner ? &rewriter.make("reshape", {inner->operand(0)}, node.attributes()) : nullptr;
}

Value* broadcast_of_broadcast(OpNode& node, Rewriter& rewriter) {
    OpNode* inner = same_op_before(node);
    return inner ? &rewriter.make("broadcast", {inner->operand(0)}, node.attributes()) : nullptr;
}

Value* transpose_of_transpose(OpNode& node, Rewriter& rewriter) {
    OpNode* inner = same_op_before(node);
    if (!inner) return nullptr;
    const auto& first = inner->get<Ints>("perm");
    Ints both;
    for (int64_t axis : node.get<Ints>("perm")) both.push_back(first[static_cast<size_t>(axis)]);
    return &rewriter.make("transpose", {inner->operand(0)}, {{"perm", std::move(both)}});
}

Value* transpose_nothing(OpNode& node, Rewriter&) {
    return std::ranges::is_sorted(node.get<Ints>("perm")) ? node.operand(0) : nullptr;
}

// A transpose that keeps the order of all axes longer than 1 leaves the elements where they are.
Value* transpose_ones(OpNode& node, Rewriter& rewriter) {
    const Type& x = node.operand(0)->type();
    Ints moved;
    for (int64_t axis : node.get<Ints>("perm"))
        if (!x.dim(axis).is(1)) moved.push_back(axis);
    if (!std::ranges::is_sorted(moved)) return nullptr;
    return &rewriter.make("reshape", {node.operand(0)}, {{"shape", node.result().type().shape()}});
}

// A broadcast that only puts axes of size 1 in front repeats nothing.
Value* broadcast_ones(OpNode& node, Rewriter& rewriter) {
    const Shape &from = node.operand(0)->type().shape(), &to = node.result().type().shape();
    size_t added = to.size() - from.size();
    bool repeats = std::any_of(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(added),
                               [](const Dim& d) { return !d.is(1); }) ||
                   !std::equal(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(added));
    return repeats ? nullptr : &rewriter.make("reshape", {node.operand(0)}, node.attributes());
}

// The whole tensor in its own order. Equal sizes do not suffice: steps may be negative.
Value* slice_all(OpNode& node, Rewriter&) {
    const Shape& shape = node.operand(0)->type().shape();
    const auto& steps = node.get<Ints>("steps");
    const Shape &starts = node.get<Shape>("starts"), &sizes = node.get<Shape>("sizes");
    for (size_t i = 0; i < shape.size(); i++)
        if (!starts[i].is(0) || sizes[i] != shape[i] || (steps[i] != 1 && !shape[i].is(1))) return nullptr;
    return node.operand(0);
}

Value* pad_nothing(OpNode& node, Rewriter&) {
    auto is_zero = [](const Dim& d) { return d.is(0); };
    bool nothing =
        std::ranges::all_of(node.get<Shape>("low"), is_zero) && std::ranges::all_of(node.get<Shape>("high"), is_zero);
    return nothing ? node.operand(0) : nullptr;
}

constexpr Rule rules[] = {
    {"identity", "identity", only_operand},
    {"cast_to_same", "cast", same_type},
    {"reshape_to_same", "reshape", same_type},
    {"reshape_of_reshape", "reshape", reshape_of_reshape},
    {"broadcast_to_same", "broadcast", same_type},
    {"broadcast_of_broadcast", "broadcast", broadcast_of_broadcast},
    {"broadcast_ones", "broadcast", broadcast_ones},
    {"transpose_nothing", "transpose", transpose_nothing},
    {"transpose_of_transpose", "transpose", transpose_of_transpose},
    {"transpose_ones", "transpose", transpose_ones},
    {"slice_all", "slice", slice_all},
    {"concat_of_one", "concat", only_operand},
    {"pad_nothing", "pad", pad_nothing},
};

} // namespace

std::span<const Rule> shape_rules() { return rules; }

} // namespace cuvil
