// Elementwise arithmetic. Operands have one dtype and one shape; integers wrap and never trap.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

using Combine = Dim (*)(const Dim&, const Dim&);

// Shape arithmetic stays known: elements of the result as dims, where both operands' are and none wraps.
template <Combine combine> void infer_known(Inference& in) {
    same_for_all(in);
    const auto &a = in.elements(0), &b = in.elements(1);
    if (!a || !b || a->size() != b->size()) return;
    std::vector<Dim> elements;
    try {
        for (size_t i = 0; i < a->size(); i++) elements.push_back(combine((*a)[i], (*b)[i]));
    } catch (const DimOverflow&) {
        return;
    }
    in.result_elements(std::move(elements));
}

Dim plus(const Dim& a, const Dim& b) { return a + b; }
Dim minus(const Dim& a, const Dim& b) { return a - b; }
Dim times(const Dim& a, const Dim& b) { return a * b; }

// Integer division truncates, dims divide downwards: the same where neither side is negative.
void infer_div(Inference& in) {
    same_for_all(in);
    const auto &a = in.elements(0), &b = in.elements(1);
    if (!a || !b || a->size() != b->size()) return;
    std::vector<Dim> elements;
    for (size_t i = 0; i < a->size(); i++) {
        if ((*a)[i].lower_bound().value_or(-1) < 0 || (*b)[i].lower_bound().value_or(0) < 1) return;
        elements.push_back(Dim::floordiv((*a)[i], (*b)[i]));
    }
    in.result_elements(std::move(elements));
}

// a - b * floor(a / b) where no divisor is 0.
void infer_mod(Inference& in) {
    same_for_all(in);
    const auto &a = in.elements(0), &b = in.elements(1);
    if (!a || !b || a->size() != b->size()) return;
    std::vector<Dim> rests;
    try {
        for (size_t i = 0; i < a->size(); i++) {
            const Dim &dividend = (*a)[i], &divisor = (*b)[i];
            if (divisor.is(0) || (!divisor.constant() && divisor.lower_bound().value_or(0) < 1)) return;
            rests.push_back(dividend - divisor * Dim::floordiv(dividend, divisor));
        }
    } catch (const DimOverflow&) {
        return;
    }
    in.result_elements(std::move(rests));
}

// The first operand's type, of any rank.
const Type& tensor(const Inference& in) {
    if (!in.type(0).is_tensor()) in.fail("the operand is " + in.type(0).text());
    return in.type(0);
}

void infer_cast(Inference& in) {
    DType to = in.node().get<DType>("to");
    in.result(tensor(in).with_dtype(to));
    if (in.elements(0) && (to == DType::I64 || to == DType::I32)) in.result_elements(*in.elements(0));
}

void infer_bitcast(Inference& in) {
    DType to = in.node().get<DType>("to"), from = tensor(in).dtype();
    if (size_of(to) != size_of(from) || size_of(to) == 0 || to == DType::Bool)
        in.fail("the bits of " + std::string(name(from)) + " are none of " + std::string(name(to)));
    in.result(in.type(0).with_dtype(to));
}

constexpr unsigned unary = pure | elementwise;
constexpr unsigned binary = pure | elementwise;

const OpDef defs[] = {
    {
        .name = "add",
        .summary = "a + b",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = infer_known<plus>,
        .traits = binary | commutative,
        .lower = scalar_loop("add(a, b)"),
        .reference = "a + b",
        .tests = &binary_grid,
    },
    {
        .name = "sub",
        .summary = "a - b",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = infer_known<minus>,
        .traits = binary,
        .lower = scalar_loop("sub(a, b)"),
        .reference = "a - b",
        .tests = &binary_grid,
    },
    {
        .name = "mul",
        .summary = "a * b",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = infer_known<times>,
        .traits = binary | commutative,
        .lower = scalar_loop("mul(a, b)"),
        .reference = "a * b",
        .tests = &binary_grid,
    },
    {
        .name = "div",
        .summary = "a / b; integers truncate, and give 0 where b is 0",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = infer_div,
        .traits = binary,
        .lower = scalar_loop("div(a, b)"),
        .reference = "truncated_division(a, b)",
        .tests = &binary_grid,
    },
    {
        .name = "mod",
        .summary = "a - b * floor(a / b), with the sign of b; integers give 0 where b is 0, floats NaN",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = infer_mod,
        .traits = binary,
        .lower = scalar_loop("mod(a, b)"),
        .reference = "np.mod(a, b)",
        .tests = &binary_grid,
    },
    {
        .name = "rem",
        .summary =
            "What is left of a / b after truncation, with the sign of a; integers give 0 where b is 0, floats NaN",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = same_for_all,
        .traits = binary,
        .lower = scalar_loop("rem(a, b)"),
        .reference = "np.fmod(a, b)",
        .tests = &binary_grid,
    },
    {
        .name = "pow",
        .summary = "a to the power of b; integers wrap, and their negative powers are 0 unless a is 1 or -1",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = same_for_all,
        .traits = binary,
        .lower = scalar_loop("pow(a, b)"),
        .reference = "a ** b",
        .tests = &power_grid,
    },
    {
        .name = "minimum",
        .summary = "The smaller of a and b; NaN if either is NaN",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = infer_known<Dim::min>,
        .traits = binary | commutative,
        .lower = scalar_loop("minimum(a, b)"),
        .reference = "np.minimum(a, b)",
        .tests = &binary_grid,
    },
    {
        .name = "maximum",
        .summary = "The larger of a and b; NaN if either is NaN",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = infer_known<Dim::max>,
        .traits = binary | commutative,
        .lower = scalar_loop("maximum(a, b)"),
        .reference = "np.maximum(a, b)",
        .tests = &binary_grid,
    },
    {
        .name = "neg",
        .summary = "-x",
        .operands = {{"x", Accepts::Number}},
        .infer = same_as_first,
        .traits = unary,
        .lower = scalar_loop("neg(x)"),
        .reference = "-x",
        .tests = &unary_grid,
    },
    {
        .name = "abs",
        .summary = "|x|",
        .operands = {{"x", Accepts::Number}},
        .infer = same_as_first,
        .traits = unary,
        .lower = scalar_loop("abs(x)"),
        .reference = "np.abs(x)",
        .tests = &unary_grid,
    },
    {
        .name = "sign",
        .summary = "-1, 0 or 1 by the sign of x; NaN stays NaN",
        .operands = {{"x", Accepts::Number}},
        .infer = same_as_first,
        .traits = unary,
        .lower = scalar_loop("sign(x)"),
        .reference = "np.sign(x)",
        .tests = &unary_grid,
    },
    {
        .name = "reciprocal",
        .summary = "1 / x",
        .operands = {{"x", Accepts::Floating}},
        .infer = same_as_first,
        .traits = unary,
        .lower = scalar_loop("reciprocal(x)"),
        .reference = "1 / x",
        .tests = &positive_grid,
    },
    {
        .name = "cast",
        .summary =
            "x as another dtype; floats to integers towards zero, saturating, NaN to 0; integers wrap; to bool: not 0",
        .operands = {{"x"}},
        .attributes = {{"to", AttributeKind::DType}},
        .infer = infer_cast,
        .traits = unary,
        .lower = scalar_loop("cast<To>(x)"),
    },
    {
        .name = "bitcast",
        .summary = "The bits of x as elements of another dtype of the same size, which is not bool",
        .operands = {{"x"}},
        .attributes = {{"to", AttributeKind::DType}},
        .infer = infer_bitcast,
        .lower = alias,
    },
};

} // namespace

std::span<const OpDef> arithmetic_ops() { return defs; }

} // namespace cuvil
