// Matrix products.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

namespace cuvil::onnx {
namespace {

Values matmul(Node& node) { return {&node.build.matmul(node.input(0), node.input(1))}; }

Value& scaled(GraphBuilder& build, Value& x, double factor) {
    return factor == 1 ? x : build.elementwise("mul", x, factor);
}

// alpha * A' * B' + beta * C, with C broadcast to the product.
Values gemm(Node& node) {
    GraphBuilder& build = node.build;
    if (node.type(0).rank() != 2 || node.type(1).rank() != 2)
        throw ImportError("shape-mismatch", fmt::format("the operands are no matrices, {} and {}", node.type(0).text(),
                                                        node.type(1).text()));
    Value& a = node.integer("transA", 0) != 0 ? build.swap_last_axes(node.input(0)) : node.input(0);
    Value& b = node.integer("transB", 0) != 0 ? build.swap_last_axes(node.input(1)) : node.input(1);
    double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
    Value& product = scaled(build, build.matmul(a, b), alpha);
    if (!node.has_input(2)) return {&product};
    Value& c = build.broadcast_to(scaled(build, node.input(2), beta), product.type().shape());
    return {&build.elementwise("add", {&product, &c})};
}

// The product of the diagonal when there is nothing left below it.
Values det(Node& node) {
    GraphBuilder& build = node.build;
    Value* x = &node.input(0);
    const Type& type = x->type();
    if (type.rank() < 2) throw ImportError("shape-mismatch", fmt::format("{} is no matrix", type.text()));
    Shape shape = type.shape();
    shape.back() = type.dim(-2);
    DType wide = type.dtype() == DType::F64 ? DType::F64 : DType::F32;
    x = &build.make("eliminate", {&build.cast(build.fit(*x, shape), wide)});
    Value& place = build.positions(shape.back());
    Value& is_diagonal = build.elementwise("equal", {&build.unsqueeze(place, {1}), &place});
    Value& ones = build.broadcast_to(build.scalar(*x, 1), shape);
    Value& diagonal = build.make("where", {&build.broadcast_to(is_diagonal, shape), x, &ones});
    Value& product = build.reduce("reduce_prod", diagonal, {x->type().rank() - 2, x->type().rank() - 1}, false);
    return {&build.cast(product, node.type(0).dtype())};
}

const Row rows[] = {
    {"Det", 11, newest, det, 1, 1, "", "eliminate, reduce_prod"},
    {"Gemm", 1, 6, gemm, 3, 3, "alpha beta broadcast transA transB", "matmul, add"},
    {"Gemm", 7, 10, gemm, 3, 3, "alpha beta transA transB", "matmul, add"},
    {"Gemm", 11, newest, gemm, 2, 3, "alpha beta transA transB", "matmul, add"},
    {"MatMul", 1, newest, matmul, 2, 2, "", "matmul"},
};

} // namespace

std::span<const Row> linear_rows() { return rows; }

} // namespace cuvil::onnx
