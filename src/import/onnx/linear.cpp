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

const Row rows[] = {
    {"Gemm", 1, 6, gemm, 3, 3, "alpha beta broadcast transA transB", "matmul, add"},
    {"Gemm", 7, 10, gemm, 3, 3, "alpha beta transA transB", "matmul, add"},
    {"Gemm", 11, newest, gemm, 2, 3, "alpha beta transA transB", "matmul, add"},
    {"MatMul", 1, newest, matmul, 2, 2, "", "matmul"},
};

} // namespace

std::span<const Row> linear_rows() { return rows; }

} // namespace cuvil::onnx
