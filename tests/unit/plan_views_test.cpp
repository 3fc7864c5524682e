// What products and attention read and write in place.
#include "plan/views.hpp"
#include "plan_testing.hpp"

namespace cuvil {
namespace {

using Texts = std::vector<std::string>;

// "shape strides + offset" of an operand.
std::string read(const Planned& p, std::string_view result, size_t operand) {
    View view = view_of(*p.value(result).producer()->operand(operand));
    return text(view.shape) + " " + text(view.strides) + " + " + view.offset.text();
}

// Queries, keys and values are parts of one product; heads are an axis inside of it.
TEST(Views, AttentionReadsAndWritesInPlace) {
    Planned p(R"(func @main(%x: f32[B,S,72]) {
  %1 = reshape %x {shape = [B,S,3,4,6]}
  %2 = transpose %1 {perm = [2,0,3,1,4]}
  %3 = slice %2 {starts = [0,0,0,0,0], sizes = [1,B,4,S,6], steps = [1,1,1,1,1]}
  %4 = slice %2 {starts = [2,0,0,0,0], sizes = [1,B,4,S,6], steps = [1,1,1,1,1]}
  %5 = reshape %3 {shape = [B,4,S,6]}
  %6 = reshape %4 {shape = [B,4,S,6]}
  %7 = transpose %5 {perm = [0,1,3,2]}
  %y = attention %5, %7, %6, _
  %8 = transpose %y {perm = [0,2,1,3]}
  %9 = reshape %8 {shape = [B,S,24]}
  return %9
})");
    EXPECT_EQ(p.steps(), (Texts{"attention"}));
    EXPECT_EQ(read(p, "y", 0), "[B,4,S,6] [72*S,6,72,1] + 0");
    EXPECT_EQ(read(p, "y", 1), "[B,4,6,S] [72*S,6,1,72] + 0");
    EXPECT_EQ(read(p, "y", 2), "[B,4,S,6] [72*S,6,72,1] + 48");
    EXPECT_EQ(p.value("y").type().text(), "f32[B,S,4,6]");
}

// One head of keys for each group of queries: repeated, then taken for heads like the others.
TEST(Views, RepeatedHeadsAreReadInPlace) {
    Planned p(R"(func @main(%q: f32[B,6,S,8], %k: f32[B,2,8,T], %v: f32[B,2,T,8]) {
  %1 = reshape %k {shape = [B,2,1,8,T]}
  %2 = broadcast %1 {shape = [B,2,3,8,T]}
  %3 = reshape %2 {shape = [B,6,8,T]}
  %4 = reshape %v {shape = [B,2,1,T,8]}
  %5 = broadcast %4 {shape = [B,2,3,T,8]}
  %6 = reshape %5 {shape = [B,6,T,8]}
  %y = attention %q, %3, %6, _
  return %y
})");
    EXPECT_EQ(p.steps(), (Texts{"attention"}));
    EXPECT_EQ(read(p, "y", 1), "[2*B,3,8,T] [8*T,0,T,1] + 0");
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

// Queries are rows of neighbours; a result that moves parts of rows, or that others want as it is, is copied.
TEST(Views, WhatTheKernelsCannotDoIsCopied) {
    Planned p(R"(func @main(%q: f32[8,S], %k: f32[8,T], %v: f32[T,8]) -> (f32[S,8], f32[8,S], f32[8,S]) {
  %1 = transpose %q {perm = [1,0]}
  %y = attention %1, %k, %v, _
  %2 = transpose %y {perm = [1,0]}
  %z = attention %y, %k, %v, _
  %3 = transpose %z {perm = [1,0]}
  return %y, %2, %3
})");
    EXPECT_EQ(p.steps(), (Texts{"transpose", "attention", "transpose", "attention", "transpose"}));
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
