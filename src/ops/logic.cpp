// Comparisons and logic; results are bool.
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
