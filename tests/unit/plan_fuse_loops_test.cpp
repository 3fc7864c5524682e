// Which ops share a step.
#include "plan_testing.hpp"

namespace cuvil {
namespace {

using Texts = std::vector<std::string>;

TEST(Fuse, AChainIsOneLoop) {
    Planned p(R"(func @main(%x: f32[N,4], %b: f32[4]) -> f32[N,4] {
  %1 = broadcast %b {shape = [N,4]} : f32[N,4]
  %2 = add %x, %1 : f32[N,4]
  %3 = relu %2 : f32[N,4]
  %4 = mul %3, %2 : f32[N,4]
  return %4
})");
    EXPECT_EQ(p.steps(), (Texts{"add, relu, mul"}));
}

// What is read from outside of the chain is computed once and kept.
TEST(Fuse, AValueThatOthersReadEndsItsChain) {
    Planned p(R"(func @main(%x: f32[4]) -> (f32[4], f32[4]) {
  %1 = neg %x : f32[4]
  %2 = exp %1 : f32[4]
  %3 = softmax %1 : f32[4]
  return %2, %3
})");
    EXPECT_EQ(p.steps(), (Texts{"neg", "exp", "softmax"}));
}

TEST(Fuse, AValueThatARegionReadsEndsItsChain) {
    Planned p(R"(func @main(%c: bool[], %x: f32[4]) -> (f32[4], f32[4]) {
  %1 = neg %x : f32[4]
  %2 = exp %1 : f32[4]
  %3 = if %c : f32[4] then {
    return %1
  } else {
    return %x
  }
  return %2, %3
})");
    EXPECT_EQ(p.steps(), (Texts{"neg", "exp", "if"}));
}

TEST(Fuse, ChainsOfOtherShapesAreOtherLoops) {
    Planned p(R"(func @main(%x: f32[4,1], %y: f32[4,8]) -> f32[4,8] {
  %1 = exp %x : f32[4,1]
  %2 = broadcast %1 {shape = [4,8]} : f32[4,8]
  %3 = add %y, %2 : f32[4,8]
  return %3
})");
    EXPECT_EQ(p.steps(), (Texts{"exp", "add"}));
}

// A broadcast that a kernel reads is made; loops read behind it.
TEST(Fuse, OnlyKernelsNeedBroadcastsInMemory) {
    Planned p(R"(func @main(%x: f32[4], %y: f32[2,4]) -> (f32[2,4], f32[2,4]) {
  %1 = broadcast %x {shape = [2,4]} : f32[2,4]
  %2 = add %y, %1 : f32[2,4]
  %3 = softmax %1 : f32[2,4]
  return %2, %3
})");
    EXPECT_EQ(p.steps(), (Texts{"broadcast", "add", "softmax"}));
}

TEST(Fuse, AMatrixProductTakesTheChainBehindIt) {
    Planned p(R"(func @main(%x: f32[M,6], %s: f32[M,2], %w: f32[6,2]) -> f32[M,2] {
  %b = constant [1.0, 2.0] : f32[2]
  %1 = matmul %x, %w : f32[M,2]
  %2 = broadcast %b {shape = [M,2]} : f32[M,2]
  %3 = add %1, %2 : f32[M,2]
  %4 = mul %3, %s : f32[M,2]
  %5 = relu %4 : f32[M,2]
  return %5
})");
    EXPECT_EQ(p.steps(), (Texts{"pack_b", "gemm, add, mul, relu"}));
}

TEST(Fuse, AProductThatOthersReadKeepsItsResult) {
    Planned p(R"(func @main(%x: f32[M,6], %w: f32[6,2]) -> (f32[M,2], f32[M,2]) {
  %1 = matmul %x, %w : f32[M,2]
  %2 = relu %1 : f32[M,2]
  return %1, %2
})");
    EXPECT_EQ(p.steps(), (Texts{"pack_b", "gemm", "relu"}));
}

// An epilogue reads operands at the result's offset or along the columns, so not one value per row.
TEST(Fuse, AnEpilogueReadsNoColumnOfRows) {
    Planned p(R"(func @main(%x: f32[M,6], %s: f32[M,1], %w: f32[6,2]) -> f32[M,2] {
  %1 = matmul %x, %w : f32[M,2]
  %2 = broadcast %s {shape = [M,2]} : f32[M,2]
  %3 = mul %1, %2 : f32[M,2]
  return %3
})");
    EXPECT_EQ(p.steps(), (Texts{"pack_b", "gemm", "mul"}));
}

TEST(Fuse, AnEpilogueComputesInF32Only) {
    Planned p(R"(func @main(%x: f32[M,6], %w: f32[6,2]) -> f64[M,2] {
  %1 = matmul %x, %w : f32[M,2]
  %2 = cast %1 {to = f64} : f64[M,2]
  return %2
})");
    EXPECT_EQ(p.steps(), (Texts{"pack_b", "gemm", "cast"}));
}

// Two products meet: the later carries the chain, the earlier keeps its result.
TEST(Fuse, OneProductCarriesTheChain) {
    Planned p(R"(func @main(%x: f32[M,6], %w: f32[6,2], %v: f32[6,2]) -> f32[M,2] {
  %1 = matmul %x, %w : f32[M,2]
  %2 = matmul %x, %v : f32[M,2]
  %3 = add %1, %2 : f32[M,2]
  return %3
})");
    EXPECT_EQ(p.steps(), (Texts{"pack_b", "gemm", "pack_b", "gemm, add"}));
}

TEST(Fuse, PackingReadsThroughATranspose) {
    Planned p(R"(func @main(%q: f32[B,H,S,D], %k: f32[B,T,H,D]) -> f32[B,H,S,T] {
  %1 = transpose %k {perm = [0,2,3,1]} : f32[B,H,D,T]
  %2 = matmul %q, %1 : f32[B,H,S,T]
  return %2
})");
    EXPECT_EQ(p.steps(), (Texts{"pack_b", "gemm"}));
}

TEST(Fuse, ATransposeThatOthersReadIsMade) {
    Planned p(R"(func @main(%q: f32[S,D], %k: f32[T,D]) -> (f32[S,T], f32[D,T]) {
  %1 = transpose %k {perm = [1,0]} : f32[D,T]
  %2 = matmul %q, %1 : f32[S,T]
  return %2, %1
})");
    EXPECT_EQ(p.steps(), (Texts{"transpose", "pack_b", "gemm"}));
}

// Bias, the sum with another path and the activation cost no step.
TEST(Fuse, AConvolutionTakesBiasResidualAndActivation) {
    Planned p(R"(func @main(%x: f32[N,1,8,8], %y: f32[N,1,8,8]) -> f32[N,1,8,8] {
  %w = constant [2.0] : f32[1,1,1,1]
  %b = constant [1.0] : f32[1]
  %1 = conv2d %x, %w, _ : f32[N,1,8,8]
  %2 = conv2d %y, %w, %b : f32[N,1,8,8]
  %3 = add %2, %1 : f32[N,1,8,8]
  %4 = relu %3 : f32[N,1,8,8]
  return %4
})");
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_padded", "relayout", "conv2d_padded, add, relu", "relayout"}));
}

TEST(Fuse, AProductTakesBiasAndActivation) {
    Planned p(R"(func @main(%x: f32[M,2]) -> f32[M,2] {
  %w = constant [1.0, 2.0, 3.0, 4.0] : f32[2,2]
  %b = constant [1.0, 2.0] : f32[2]
  %1 = matmul %x, %w : f32[M,2]
  %2 = broadcast %b {shape = [M,2]} : f32[M,2]
  %3 = add %1, %2 : f32[M,2]
  %4 = gelu %3 : f32[M,2]
  return %4
})");
    EXPECT_EQ(p.steps(), (Texts{"gemm, add, gelu"}));
}

// What stays inside of an epilogue may be of any type.
TEST(Fuse, AProductTakesAChoiceBySign) {
    Planned p(R"(func @main(%x: f32[M,2]) -> f32[M,2] {
  %w = constant [1.0, 2.0, 3.0, 4.0] : f32[2,2]
  %s = constant [0.1, 0.2] : f32[2]
  %z = constant 0.0 : f32[]
  %zero = broadcast %z {shape = [M,2]} : f32[M,2]
  %slope = broadcast %s {shape = [M,2]} : f32[M,2]
  %1 = matmul %x, %w : f32[M,2]
  %2 = mul %1, %slope : f32[M,2]
  %3 = less %1, %zero : bool[M,2]
  %4 = where %3, %2, %1 : f32[M,2]
  return %4
})");
    EXPECT_EQ(p.steps(), (Texts{"gemm, mul, less, where"}));
}

// x of 8 channels to 16, and a depthwise convolution behind; `end` makes what is returned of both.
std::string expansion(const std::string& size, const std::string& end, const std::string& results) {
    const auto image = [&](int channels) { return "f32[1," + std::to_string(channels) + "," + size + "]"; };
    const auto ones = [](int count) {
        std::string text = "1.0";
        for (int i = 1; i < count; i++) text += ", 1.0";
        return "[" + text + "]";
    };
    return "weight \"e\" : f32[16,8,1,1] = " + ones(128) + "\nweight \"d\" : f32[16,1,3,3] = " + ones(144) +
           "\nfunc @main(%x: " + image(8) + ") -> " + results +
           " {\n  %e = weight \"e\" : f32[16,8,1,1]\n  %d = weight \"d\" : "
           "f32[16,1,3,3]\n  %1 = conv2d %x, %e : " +
           image(16) + "\n  %2 = relu %1 : " + image(16) +
           "\n  %3 = conv2d %2, %d {pads = [1,1,1,1], groups = 16} : " + image(16) + end + "\n}\n";
}

TEST(Fuse, AConvolutionRunsWithinTheDepthwiseOneBehindIt) {
    Planned p(expansion("20,20", "\n  return %3", "f32[1,16,20,20]"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_depthwise", "relayout"}));
    const Step& step = p.plan.main.steps[1];
    ASSERT_EQ(step.within.size(), 1u);
    EXPECT_EQ(step.within[0].fused.size(), 1u);
    EXPECT_EQ(step.number, 1);
    EXPECT_EQ(p.plan.step_count, 3);
    EXPECT_FALSE(p.plan.buffer_of.contains(step.within[0].outputs[0]));
    EXPECT_EQ(p.slots().back(), std::to_string(22 * 22 * 16 * 4));
}

TEST(Fuse, AConvolutionThatOthersReadIsAStep) {
    Planned p(expansion("20,20", "\n  return %2, %3", "(f32[1,16,20,20], f32[1,16,20,20])"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_padded, relu", "relayout", "conv2d_narrow", "relayout"}));
}

// The memory between two such convolutions is for rows of any width.
TEST(Fuse, OpenSizesAreOneStepToo) {
    Planned p(expansion("H,W", "\n  return %3", "f32[1,16,H,W]"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_depthwise", "relayout"}));
    EXPECT_NE(p.slots().back().find('W'), std::string::npos) << p.slots().back();
}

} // namespace
} // namespace cuvil
