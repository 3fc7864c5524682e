// Matrix products.
#include "ops/families.hpp"
#include "ops/infer.hpp"

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
