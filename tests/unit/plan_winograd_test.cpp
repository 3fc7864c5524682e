#include "plan/winograd.hpp"

#include "plan/pack.hpp"
#include "plan_testing.hpp"

#include <gtest/gtest.h>

namespace cuvil {
namespace {

// Two layers of `channels` channels on an image of 28 x 28, the second with the given attributes.
std::string layers(int channels, const std::string& attributes, int size) {
    std::string n = std::to_string(channels), weights = "f32[" + n + "," + n + ",3,3]";
    std::string image = "f32[1," + n + ",28,28]",
                y = "f32[1," + n + "," + std::to_string(size) + "," + std::to_string(size) + "]";
    std::string text = "weight \"w\" : " + weights + " = [1.0";
    for (int i = 1; i < channels * channels * 9; i++) text += ", 1.0";
    return text + "]\nfunc @main(%x: " + image + ") -> " + y + " {\n  %w = weight \"w\" : " + weights +
           "\n  %a = conv2d %x, %w {pads = [1,1,1,1]} : " + image + "\n  %b = conv2d %a, %w {" + attributes +
           "} : " + y + "\n  return %b\n}\n";
}

TEST(Winograd, LargeImagesTakeTilesOf4AndSmallOnesOf2) {
    EXPECT_EQ(winograd_kernel(1, 64, 64, 56, 56), "conv2d_winograd4");
    EXPECT_EQ(winograd_kernel(1, 128, 128, 28, 28), "conv2d_winograd4");
    EXPECT_EQ(winograd_kernel(1, 256, 256, 14, 14), "conv2d_winograd4");
    EXPECT_EQ(winograd_kernel(1, 512, 512, 7, 7), "conv2d_winograd2");
    EXPECT_EQ(winograd_kernel(1, 32, 32, 160, 160), "conv2d_winograd4");
}

TEST(Winograd, WhatGainsNothingStaysDirect) {
    EXPECT_EQ(winograd_kernel(1, 64, 64, 1, 1), "conv2d_blocked");
    EXPECT_EQ(winograd_kernel(1, 8, 64, 56, 56), "conv2d_blocked");
    EXPECT_EQ(winograd_kernel(1, 64, 8, 56, 56), "conv2d_blocked");
    EXPECT_EQ(winograd_kernel(1, 16, 32, 8, 8), "conv2d_blocked");
}

TEST(Winograd, AWindowThatMovesByTwoIsTakenApart) {
    EXPECT_EQ(winograd_kernel(2, 64, 128, 28, 28), "conv2d_winograd4");
    EXPECT_EQ(winograd_kernel(2, 128, 256, 14, 14), "conv2d_winograd4");
    EXPECT_EQ(winograd_kernel(2, 16, 32, 160, 160), "conv2d_blocked");
    Planned p(layers(96, "pads = [1,1,1,1], strides = [2,2]", 14));
    EXPECT_EQ(p.steps()[2], "conv2d_winograd4");
}

TEST(Winograd, OpenSizesAreTakenFromTheChannels) {
    EXPECT_EQ(winograd_kernel(1, 64, 64, Dim::symbol("H"), Dim::symbol("W")), "conv2d_winograd4");
    EXPECT_EQ(winograd_kernel(1, 512, 512, Dim::symbol("H"), Dim::symbol("W")), "conv2d_winograd2");
    EXPECT_EQ(winograd_kernel(1, 512, 512, 56, Dim::symbol("W")), "conv2d_winograd4");
}

TEST(Winograd, StepsInTurnWorkInOneBuffer) {
    Planned p(layers(32, "pads = [1,1,1,1]", 28));
    EXPECT_EQ(p.steps(), (std::vector<std::string>{"relayout", "conv2d_winograd4", "conv2d_winograd4", "relayout"}));
    const auto& steps = p.plan.main.steps;
    ASSERT_GE(steps[1].scratch, 0);
    ASSERT_GE(steps[2].scratch, 0);
    const Buffer &first = p.plan.buffers[static_cast<size_t>(steps[1].scratch)],
                 &second = p.plan.buffers[static_cast<size_t>(steps[2].scratch)];
    EXPECT_EQ(first.place, Buffer::Slot);
    EXPECT_EQ(first.index, second.index);
    EXPECT_EQ(p.plan.slots[static_cast<size_t>(first.index)].size,
              Dim(winograd_scratch_bytes({4, 1}, 1, 32, 32, 28, 28)));
    EXPECT_EQ(steps[0].scratch, -1);
}

// A layer as networks begin with, on an image of `channels` channels.
std::string first_layer(int channels) {
    int count = 64 * channels * 49;
    std::string weights = "f32[64," + std::to_string(channels) + ",7,7]";
    std::string text = "weight \"w\" : " + weights + " = [1.0";
    for (int i = 1; i < count; i++) text += ", 1.0";
    return text + "]\nfunc @main(%x: f32[1," + std::to_string(channels) +
           ",224,223]) -> f32[1,64,112,112] {\n  %w = weight \"w\" : " + weights +
           "\n  %y = conv2d %x, %w {pads = [3,3,3,3], strides = [2,2]} : f32[1,64,112,112]\n  return %y\n}\n";
}

TEST(Winograd, LargeWindowsOfTheFirstLayerWorkOnPhases) {
    Planned p(first_layer(3));
    EXPECT_EQ(p.steps(), (std::vector<std::string>{"relayout", "conv2d_phased", "relayout"}));
    EXPECT_EQ(p.value("x").type().layout(), (Layout{Layout::Phased, 2, 2, 1, 1}));
    EXPECT_EQ(p.value("x").type().bytes(), Dim(115 * 115 * 16 * 4));
    Planned small(first_layer(3), {.least_bytes = true});
    EXPECT_EQ(small.steps()[1], "conv2d_padded");
    Planned many_channels(first_layer(5));
    EXPECT_EQ(many_channels.steps()[1], "conv2d_padded");
}

TEST(Winograd, OtherWindowsStayDirect) {
    Planned strided(layers(32, "pads = [1,1,1,1], strides = [3,3]", 10));
    EXPECT_EQ(strided.steps()[2], "conv2d_blocked");
    Planned uneven(layers(32, "pads = [1,1,1,15], strides = [1,2]", 28));
    EXPECT_EQ(uneven.steps()[2], "conv2d_blocked");
    Planned dilated(layers(32, "pads = [2,2,2,2], dilations = [2,2]", 28));
    EXPECT_EQ(dilated.steps()[2], "conv2d_blocked");
}

} // namespace
} // namespace cuvil
