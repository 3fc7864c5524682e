// Images in blocks of 16 channels, and where they are laid out anew.
#include "plan_testing.hpp"

namespace cuvil {
namespace {

using Texts = std::vector<std::string>;

// A convolution to 16 channels with a window of 3 x 3 and constant weights named "w".
std::string program(std::string_view inputs, std::string_view output, std::string_view body) {
    std::string text = "weight \"w\" : f32[16,16,3,3] = [";
    for (int i = 0; i < 16 * 16 * 9; i++) text += i ? ", 1.0" : "1.0";
    return text + "]\nfunc @main(" + std::string(inputs) + ") -> (" + std::string(output) +
           ") {\n  %w = weight \"w\" : f32[16,16,3,3]\n" + std::string(body) + "}\n";
}

TEST(Layouts, ConvolutionsExchangeBlocksWithTheHaloOfTheReader) {
    Planned p(program("%x: f32[1,16,8,8]", "f32[1,16,8,8]", R"(
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  %b = relu %a : f32[1,16,8,8]
  %c = conv2d %b, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  return %c
)"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_blocked, relu", "conv2d_blocked", "relayout"}));
    EXPECT_EQ(p.value("b").type().layout().kind, Layout::Blocked);
    EXPECT_EQ(p.value("b").type().layout().top, Dim(1));
}

// A transpose writes plain memory, so what it makes must be laid out anew before a blocked loop reads it.
TEST(Layouts, WhatOtherOpsWriteStaysPlain) {
    Planned p(program("%x: f32[1,16,8,8], %y: f32[16,1,8,8]", "f32[1,16,8,8]", R"(
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  %t = transpose %y {perm = [1,0,2,3]} : f32[1,16,8,8]
  %s = add %a, %t : f32[1,16,8,8]
  return %s
)"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "transpose", "relayout", "conv2d_blocked, add", "relayout"}));
}

TEST(Layouts, APoolOfAPlainImageStaysPlain) {
    Planned p(program("%x: f32[1,16,8,8], %y: f32[1,16,8,8]", "f32[1,16,8,8]", R"(
  %m = max_pool2d %y {kernel = [3,3], pads = [1,1,1,1]} : f32[1,16,8,8]
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  %s = add %m, %a : f32[1,16,8,8]
  return %s
)"));
    EXPECT_EQ(p.steps(), (Texts{"pool_any", "relayout", "relayout", "conv2d_blocked, add", "relayout"}));
}

TEST(Layouts, PoolsAndMeansReadBlocks) {
    Planned p(program("%x: f32[1,16,8,8]", "f32[1,16,1,1]", R"(
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  %m = max_pool2d %a {kernel = [2,2], strides = [2,2]} : f32[1,16,4,4]
  %b = relu %m : f32[1,16,4,4]
  %c = reduce_mean %b {axes = [2,3]} : f32[1,16,1,1]
  return %c
)"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_blocked", "pool_blocked", "relu", "global_avg_pool"}));
}

TEST(Layouts, WholeBlocksOfChannelsAreTakenAndJoinedInBlocks) {
    Planned p(program("%x: f32[1,16,8,8]", "f32[1,40,8,8]", R"(
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  %j = concat %a, %a, %a {axis = 1} : f32[1,48,8,8]
  %s = slice %j {starts = [0,16,0,0], sizes = [1,24,8,8], steps = [1,1,1,1]} : f32[1,24,8,8]
  %k = concat %a, %s {axis = -3} : f32[1,40,8,8]
  %r = relu %k : f32[1,40,8,8]
  return %r
)"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_blocked", "concat_blocked", "slice_blocked", "concat_blocked",
                                "relu", "relayout"}));
}

TEST(Layouts, PartsOfBlocksAreTakenAndJoinedPlain) {
    Planned p(program("%x: f32[1,16,8,8]", "f32[1,24,8,8]", R"(
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  %s = slice %a {starts = [0,8,0,0], sizes = [1,8,8,8], steps = [1,1,1,1]} : f32[1,8,8,8]
  %j = concat %s, %a {axis = 1} : f32[1,24,8,8]
  return %j
)"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_blocked", "relayout", "slice", "concat"}));
}

// Squeeze and excitation: means, a convolution of one pixel and the product with what it makes stay in blocks.
TEST(Layouts, OneValuePerChannelIsReadInPlace) {
    Planned p(program("%x: f32[2,16,8,8]", "f32[2,16,8,8]", R"(
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[2,16,8,8]
  %m = reduce_mean %a {axes = [2,3]} : f32[2,16,1,1]
  %b = conv2d %m, %w {pads = [1,1,1,1]} : f32[2,16,1,1]
  %c = sigmoid %b : f32[2,16,1,1]
  %d = broadcast %c {shape = [2,16,8,8]} : f32[2,16,8,8]
  %e = mul %a, %d : f32[2,16,8,8]
  return %e
)"));
    EXPECT_EQ(p.steps(),
              (Texts{"relayout", "conv2d_blocked", "global_avg_pool", "conv2d_blocked, sigmoid", "mul", "relayout"}));
    EXPECT_EQ(p.value("m").type().layout().top, Dim(1));
    EXPECT_EQ(p.value("c").type().layout(), (Layout{Layout::Blocked, 0, 0, 0, 0}));
}

// Where a truth value only chooses between images, choosing is part of the loop.
TEST(Layouts, AChoiceBySignStaysInBlocks) {
    Planned p(program("%x: f32[1,16,8,8]", "f32[1,16,8,8]", R"(
  %k = constant 0.1 : f32[]
  %slope = broadcast %k {shape = [1,16,8,8]} : f32[1,16,8,8]
  %z = constant 0 : f32[]
  %zero = broadcast %z {shape = [1,16,8,8]} : f32[1,16,8,8]
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  %s = mul %a, %slope : f32[1,16,8,8]
  %n = less %a, %zero : bool[1,16,8,8]
  %b = where %n, %s, %a : f32[1,16,8,8]
  %c = conv2d %b, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  return %c
)"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_blocked, mul, less, where", "conv2d_blocked", "relayout"}));
}

// A truth value that others read needs memory, and no memory holds it in blocks.
TEST(Layouts, AChoiceThatOthersReadIsPlain) {
    Planned p(program("%x: f32[1,16,8,8]", "f32[1,16,8,8], bool[1,16,8,8]", R"(
  %z = constant 0 : f32[]
  %zero = broadcast %z {shape = [1,16,8,8]} : f32[1,16,8,8]
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  %n = less %a, %zero : bool[1,16,8,8]
  %s = neg %a : f32[1,16,8,8]
  %b = where %n, %s, %a : f32[1,16,8,8]
  return %b, %n
)"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_blocked", "relayout", "less", "neg", "relayout", "where"}));
}

// What a convolution reads in blocks is pooled and joined in blocks, too.
TEST(Layouts, APoolBeforeAConvolutionReadsBlocks) {
    Planned p(program("%x: f32[1,16,8,8]", "f32[1,16,4,4]", R"(
  %m = max_pool2d %x {kernel = [2,2], strides = [2,2]} : f32[1,16,4,4]
  %a = conv2d %m, %w {pads = [1,1,1,1]} : f32[1,16,4,4]
  return %a
)"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "pool_blocked", "conv2d_blocked", "relayout"}));
}

TEST(Layouts, RegionsSeePlainImages) {
    Planned p(program("%c: bool[], %x: f32[1,16,8,8]", "f32[1,16,8,8]", R"(
  %a = conv2d %x, %w {pads = [1,1,1,1]} : f32[1,16,8,8]
  %r = if %c : f32[1,16,8,8] then {
    return %a
  } else {
    return %x
  }
  return %r
)"));
    EXPECT_EQ(p.steps(), (Texts{"relayout", "conv2d_blocked", "relayout", "if"}));
}

} // namespace
} // namespace cuvil
