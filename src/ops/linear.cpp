// Matrix products.
#include "ops/families.hpp"
#include "ops/infer.hpp"

#include <algorithm>
#include <limits>

namespace cuvil {
namespace {

// [..., M, K] x [..., K, N] -> [..., M, N]; leading dimensions are equal, or b has none.
void infer_matmul(Inference& in) {
    const Type &a = in.ranked(0), &b = in.ranked(1);
    if (a.dtype() != b.dtype()) in.fail("operands have different dtypes, " + a.text() + " and " + b.text());
    if (a.rank() < 2 || (b.rank() != 2 && b.rank() != a.rank()))
        in.fail("operands " + a.text() + " and " + b.text() + " are no matrices or stacks of equal size");
    if (compare(a.dim(-1), b.dim(-2)) == Equality::Different)
        in.fail("inner dimensions differ, " + a.dim(-1).text() + " and " + b.dim(-2).text());
    if (compare(a.dim(-1), b.dim(-2)) == Equality::Unknown)
        in.fail("inner dimensions " + a.dim(-1).text() + " and " + b.dim(-2).text() + " are not known to be equal");
    Shape shape = a.shape();
    for (int64_t i = 0; b.rank() > 2 && i < b.rank() - 2; i++)
        if (a.dim(i) != b.dim(i)) in.fail("leading dimensions differ, " + a.text() + " and " + b.text());
    shape.back() = b.dim(-1);
    in.result(a.with_shape(std::move(shape)));
}

void infer_eliminate(Inference& in) {
    const Type& x = in.ranked(0);
    if (x.rank() < 2 || compare(x.dim(-1), x.dim(-2)) != Equality::Equal)
        in.fail(x.text() + " is no stack of square matrices");
    if (x.dtype() != DType::F32 && x.dtype() != DType::F64) in.fail("elements of " + x.text() + " are not taken");
    in.result(x.with_layout({}));
}

// q [..., M, D], k [..., D, N], v [..., N, W] -> [..., M, W]; leading dimensions are equal.
void infer_attention(Inference& in) {
    const Type &q = in.ranked(0), &k = in.ranked(1), &v = in.ranked(2);
    auto fits = [&](const Type& type, const Dim& rows, const Dim& columns) {
        return type.rank() == q.rank() && type.dim(-2) == rows && type.dim(-1) == columns &&
               std::equal(q.shape().begin(), q.shape().end() - 2, type.shape().begin());
    };
    bool fit = q.rank() >= 2 && k.rank() == q.rank() && v.rank() == q.rank() && fits(k, q.dim(-1), k.dim(-1)) &&
               fits(v, k.dim(-1), v.dim(-1));
    if (!fit) in.fail("operands do not fit each other: " + q.text() + ", " + k.text() + " and " + v.text());
    if (in.has_operand(3)) {
        const Type& mask = in.ranked(3);
        if (!fits(mask, q.dim(-2), k.dim(-1)) || (mask.dtype() != DType::F32 && mask.dtype() != DType::Bool))
            in.fail("operand 'mask' is " + mask.text() + ", expected f32 or bool, one for each score");
    }
    Shape shape = q.shape();
    shape.back() = v.dim(-1);
    in.result(q.with_shape(std::move(shape)));
}

const TestGrid attention_grid{{{{1, 1}, {1, 1}, {1, 1}, {1, 1}},
                               {{3, 5}, {5, 7}, {7, 4}, {3, 7}},
                               {{0, 4}, {4, 3}, {3, 2}, {0, 3}},
                               {{2, 4}, {4, 1}, {1, 0}, {2, 1}},
                               {{1, 16}, {16, 200}, {200, 16}, {1, 200}},
                               {{70, 33}, {33, 65}, {65, 17}, {70, 65}},
                               {{31, 130}, {130, 64}, {64, 130}, {31, 64}},
                               {{2, 3, 17, 8}, {2, 3, 8, 33}, {2, 3, 33, 8}, {2, 3, 17, 33}}},
                              {"f32"},
                              -1,
                              1};

const TestGrid matmul_grid{{{{1, 1}, {1, 1}},
                            {{3, 5}, {5, 7}},
                            {{17, 33}, {33, 31}},
                            {{0, 4}, {4, 3}},
                            {{2, 0}, {0, 3}},
                            {{2, 3, 4}, {2, 4, 5}},
                            {{2, 3, 4}, {4, 5}}},
                           {"f32", "f64", "i32", "i64"}};

const OpDef defs[] = {
    {
        .name = "matmul",
        .summary = "The matrix product over the last two axes: sum over k of a[..., m, k] * b[..., k, n]",
        .operands = {{"a", Accepts::Number}, {"b", Accepts::Number}},
        .infer = infer_matmul,
        .lower = kernel("gemm"),
        .reference = "a @ b",
        .tests = &matmul_grid,
    },
    {
        .name = "eliminate",
        .summary = "Each matrix [..., N, N] brought to zeros below the diagonal by adding rows to others and swapping "
                   "them, one with its sign changed: the determinant stays",
        .operands = {{"x", Accepts::Floating}},
        .infer = infer_eliminate,
        .lower = kernel("eliminate"),
    },
    {
        .name = "attention",
        .summary =
            "softmax(q @ k * scale + mask) @ v over the last two axes; where a mask of bools is false, `fill` takes "
            "the place of the scaled score. With nan_to_zero a NaN that softmax gives counts as 0",
        .operands = {{"q", Accepts::F32},
                     {"k", Accepts::F32},
                     {"v", Accepts::F32},
                     {"mask", Accepts::Any, OperandDef::Optional}},
        .attributes = {{"scale", AttributeKind::Float, 1.0},
                       {"fill", AttributeKind::Float, -std::numeric_limits<double>::infinity()},
                       {"nan_to_zero", AttributeKind::Bool, false}},
        .infer = infer_attention,
        .lower = kernel("attention"),
        .reference = "(lambda e: e / e.sum(-1, keepdims=True) @ v)(np.exp(q @ k + mask - (q @ k + mask).max(-1, "
                     "keepdims=True)))",
        .tests = &attention_grid,
    },
    {
        .name = "pack",
        .summary =
            "The right side of a matmul in panels of 16 columns, [..., ceil(N / 16), K, 16]; made by planning only",
        .operands = {{"b", Accepts::F32}},
        .lower = kernel("pack_b"),
    },
};

} // namespace

std::span<const OpDef> linear_ops() { return defs; }

} // namespace cuvil
