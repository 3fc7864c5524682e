// Algebra on elements.
//
// Absent on purpose, as they are not exact for floats: x + 0 (-0 + 0 is 0), x - (-0), x * 0 and x - x (NaN,
// infinities), x / x, sqrt(x) * sqrt(x).
#include "optimize/constants.hpp"
#include "optimize/rules/rule.hpp"

namespace cuvil {
namespace {

bool is_float(const OpNode& node) { return is_floating(node.result().type().dtype()); }

// The left operand, if the right one is `neutral` everywhere.
Value* left_of(OpNode& node, Rewriter& rewriter, double neutral) {
    return is_filled_with(rewriter.program(), *node.operand(1), neutral) ? node.operand(0) : nullptr;
}

Value* right_of(OpNode& node, Rewriter& rewriter, double neutral) {
    return is_filled_with(rewriter.program(), *node.operand(0), neutral) ? node.operand(1) : nullptr;
}

Value* mul_one(OpNode& node, Rewriter& rewriter) {
    Value* left = left_of(node, rewriter, 1);
    return left ? left : right_of(node, rewriter, 1);
}

Value* div_one(OpNode& node, Rewriter& rewriter) { return left_of(node, rewriter, 1); }

// x + -0 is x for every x, -0 included.
Value* add_zero(OpNode& node, Rewriter& rewriter) {
    double zero = is_float(node) ? -0.0 : 0.0;
    Value* left = left_of(node, rewriter, zero);
    return left ? left : right_of(node, rewriter, zero);
}

Value* sub_zero(OpNode& node, Rewriter& rewriter) { return left_of(node, rewriter, 0); }

// f(f(x)) is f(x).
Value* idempotent(OpNode& node, Rewriter&) {
    Value* inner = node.operand(0);
    return inner->producer() && inner->producer()->op() == node.op() ? inner : nullptr;
}

// f(f(x)) is x.
Value* involution(OpNode& node, Rewriter& rewriter) {
    Value* inner = idempotent(node, rewriter);
    return inner ? inner->producer()->operand(0) : nullptr;
}

constexpr Rule rules[] = {
    {"mul_one", "mul", mul_one},
    {"div_one", "div", div_one},
    {"add_zero", "add", add_zero},
    {"sub_zero", "sub", sub_zero},
    {"relu_relu", "relu", idempotent},
    {"abs_abs", "abs", idempotent},
    {"floor_floor", "floor", idempotent},
    {"ceil_ceil", "ceil", idempotent},
    {"round_round", "round", idempotent},
    {"neg_neg", "neg", involution},
    {"not_not", "logical_not", involution},
};

} // namespace

std::span<const Rule> algebra_rules() { return rules; }

} // namespace cuvil
