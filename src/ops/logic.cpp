// Comparisons and logic, whose results are bool, and logic of bits.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

void infer_where(Inference& in) {
    const Type &c = in.type(0), &a = in.type(1), &b = in.type(2);
    if (a != b || c != a.with_dtype(DType::Bool))
        in.fail("operands do not fit each other: " + c.text() + ", " + a.text() + ", " + b.text());
    in.result(a);
}

const OpDef defs[] = {
    {
        .name = "equal",
        .summary = "a is equal to b; NaN to nothing",
        .operands = {{"a", Accepts::Any}, {"b", Accepts::Any}},
        .infer = bool_for_all,
        .traits = pure | elementwise | commutative,
        .lower = scalar_loop("equal(a, b)"),
        .reference = "a == b",
        .tests = &binary_grid,
    },
    {
        .name = "less",
        .summary = "a < b",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = bool_for_all,
        .traits = pure | elementwise,
        .lower = scalar_loop("less(a, b)"),
        .reference = "a < b",
        .tests = &binary_grid,
    },
    {
        .name = "less_equal",
        .summary = "a <= b",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = bool_for_all,
        .traits = pure | elementwise,
        .lower = scalar_loop("less_equal(a, b)"),
        .reference = "a <= b",
        .tests = &binary_grid,
    },
    {
        .name = "greater",
        .summary = "a > b",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = bool_for_all,
        .traits = pure | elementwise,
        .lower = scalar_loop("greater(a, b)"),
        .reference = "a > b",
        .tests = &binary_grid,
    },
    {
        .name = "greater_equal",
        .summary = "a >= b",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = bool_for_all,
        .traits = pure | elementwise,
        .lower = scalar_loop("greater_equal(a, b)"),
        .reference = "a >= b",
        .tests = &binary_grid,
    },
    {
        .name = "logical_and",
        .summary = "Both",
        .operands = {{"a", Accepts::Bool}, {"b", Accepts::Bool}},
        .infer = bool_for_all,
        .traits = pure | elementwise | commutative,
        .lower = scalar_loop("logical_and(a, b)"),
        .reference = "a & b",
        .tests = &bool_binary_grid,
    },
    {
        .name = "logical_or",
        .summary = "Either or both",
        .operands = {{"a", Accepts::Bool}, {"b", Accepts::Bool}},
        .infer = bool_for_all,
        .traits = pure | elementwise | commutative,
        .lower = scalar_loop("logical_or(a, b)"),
        .reference = "a | b",
        .tests = &bool_binary_grid,
    },
    {
        .name = "logical_xor",
        .summary = "Either, not both",
        .operands = {{"a", Accepts::Bool}, {"b", Accepts::Bool}},
        .infer = bool_for_all,
        .traits = pure | elementwise | commutative,
        .lower = scalar_loop("logical_xor(a, b)"),
        .reference = "a ^ b",
        .tests = &bool_binary_grid,
    },
    {
        .name = "logical_not",
        .summary = "Not x",
        .operands = {{"x", Accepts::Bool}},
        .infer = bool_for_all,
        .traits = pure | elementwise,
        .lower = scalar_loop("logical_not(x)"),
        .reference = "~x",
        .tests = &bool_unary_grid,
    },
    {
        .name = "bitwise_and",
        .summary = "The bits that both have",
        .operands = {{"a", Accepts::Integer}, {"b", Accepts::Integer}},
        .infer = same_for_all,
        .traits = pure | elementwise | commutative,
        .lower = scalar_loop("bitwise_and(a, b)"),
        .reference = "a & b",
        .tests = &integer_binary_grid,
    },
    {
        .name = "bitwise_or",
        .summary = "The bits that either has",
        .operands = {{"a", Accepts::Integer}, {"b", Accepts::Integer}},
        .infer = same_for_all,
        .traits = pure | elementwise | commutative,
        .lower = scalar_loop("bitwise_or(a, b)"),
        .reference = "a | b",
        .tests = &integer_binary_grid,
    },
    {
        .name = "bitwise_xor",
        .summary = "The bits that one has and the other has not",
        .operands = {{"a", Accepts::Integer}, {"b", Accepts::Integer}},
        .infer = same_for_all,
        .traits = pure | elementwise | commutative,
        .lower = scalar_loop("bitwise_xor(a, b)"),
        .reference = "a ^ b",
        .tests = &integer_binary_grid,
    },
    {
        .name = "bitwise_not",
        .summary = "All bits turned",
        .operands = {{"x", Accepts::Integer}},
        .infer = same_for_all,
        .traits = pure | elementwise,
        .lower = scalar_loop("bitwise_not(x)"),
        .reference = "~x",
        .tests = &integer_unary_grid,
    },
    {
        .name = "shift_left",
        .summary = "a with its bits moved up by b; 0 where b is negative or all bits and more",
        .operands = {{"a", Accepts::Integer}, {"b", Accepts::Integer}},
        .infer = same_for_all,
        .traits = pure | elementwise,
        .lower = scalar_loop("shift_left(a, b)"),
        .reference = "np.where((b < 0) | (b >= a.itemsize * 8), 0, a << (b & 7))",
        .tests = &integer_binary_grid,
    },
    {
        .name = "shift_right",
        .summary = "a with its bits moved down by b, the sign filling up; nothing but that where b is negative or all "
                   "bits and more",
        .operands = {{"a", Accepts::Integer}, {"b", Accepts::Integer}},
        .infer = same_for_all,
        .traits = pure | elementwise,
        .lower = scalar_loop("shift_right(a, b)"),
        .reference = "np.where((b < 0) | (b >= a.itemsize * 8), np.where(a < 0, -1, 0), a >> (b & 7))",
        .tests = &integer_binary_grid,
    },
    {
        .name = "where",
        .summary = "a where c is true, else b",
        .operands = {{"c", Accepts::Bool}, {"a"}, {"b"}},
        .infer = infer_where,
        .traits = pure | elementwise,
        .lower = scalar_loop("where(c, a, b)"),
    },
};

} // namespace

std::span<const OpDef> logic_ops() { return defs; }

} // namespace cuvil
