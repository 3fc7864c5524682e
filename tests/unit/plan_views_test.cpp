// What products read and write in place.
#include "plan_testing.hpp"

namespace cuvil {
namespace {

using Texts = std::vector<std::string>;

// "shape strides + offset" of an operand.
std::string read(const Planned& p, std::string_view result, size_t operand) {
    View view = view_of(*p.value(result).producer()->operand(operand));
    return text(view.shape) + " " + text(view.strides) + " + " + view.offset.text();
}

TEST(Views, ProductsReadAndWriteTransposed) {
    Planned p(R"(func @main(%a: f32[K,M], %b: f32[N,K], %c: f32[3,M,K]) -> (f32[M,N], f32[M,3,N]) {
  %1 = transpose %a {perm = [1,0]}
  %2 = transpose %b {perm = [1,0]}
  %y = matmul %1, %2
  %z = matmul %c, %2
  %3 = transpose %z {perm = [1,0,2]}
  return %y, %3
})");
    EXPECT_EQ(p.steps(), (Texts{"pack_b", "gemm", "pack_b", "gemm"}));
    EXPECT_EQ(read(p, "y", 0), "[M,K] [1,M] + 0");
    EXPECT_EQ(p.value("z").type().text(), "f32[M,3,N]");
}

// Two axes that are no neighbours are no axis of a matrix.
TEST(Views, AMergedAxisWithoutAStrideIsCopied) {
    Planned p(R"(func @main(%a: f32[2,M,3], %b: f32[6,N]) -> f32[M,N] {
  %1 = transpose %a {perm = [1,0,2]}
  %2 = reshape %1 {shape = [M,6]}
  %y = matmul %2, %b
  return %y
})");
    EXPECT_EQ(p.steps(), (Texts{"transpose", "pack_b", "gemm"}));
}

// The step that makes a slice checks a size that may be below 0.
TEST(Views, ASliceOfUnknownSizeIsMade) {
    Planned p(R"(func @main(%a: f32[N,4], %b: f32[4,3]) -> f32[N-2,3] {
  %1 = slice %a {starts = [2,0], sizes = [N-2,4], steps = [1,1]}
  %y = matmul %1, %b
  return %y
})");
    EXPECT_EQ(p.steps(), (Texts{"slice", "pack_b", "gemm"}));
}

} // namespace
} // namespace cuvil
