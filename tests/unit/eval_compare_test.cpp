#include "eval/compare.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace cuvil::evaluation {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float tiny = std::numeric_limits<float>::denorm_min();

template <class T> Tensor tensor(DType dtype, const std::vector<T>& elements) {
    auto [x, data] = new_tensor(dtype, {static_cast<int64_t>(elements.size())});
    std::ranges::copy(std::as_bytes(std::span(elements)), data);
    return x;
}
Tensor floats(const std::vector<float>& elements) { return tensor(DType::F32, elements); }

Difference compared(const std::vector<float>& actual, const std::vector<float>& expected, const Tolerance& t = {}) {
    return compare(floats(actual), floats(expected), t);
}

TEST(UlpDistance, CountsRepresentableNumbers) {
    EXPECT_EQ(ulp_distance(1.0f, 1.0f), 0u);
    EXPECT_EQ(ulp_distance(1.0f, std::nextafter(1.0f, 2.0f)), 1u);
    EXPECT_EQ(ulp_distance(1.0, std::nextafter(std::nextafter(1.0, 0.0), 0.0)), 2u);
    EXPECT_EQ(ulp_distance(std::numeric_limits<float>::max(), infinity), 1u);
    EXPECT_EQ(ulp_distance(-1.0f, -std::nextafter(1.0f, 2.0f)), 1u);
}

TEST(UlpDistance, CrossesZeroWhichIsOneNumber) {
    EXPECT_EQ(ulp_distance(0.0f, -0.0f), 0u);
    EXPECT_EQ(ulp_distance(0.0f, tiny), 1u);
    EXPECT_EQ(ulp_distance(-0.0f, tiny), 1u);
    EXPECT_EQ(ulp_distance(-tiny, tiny), 2u);
    EXPECT_EQ(ulp_distance(-tiny, 0.0f), 1u);
    EXPECT_EQ(ulp_distance(-infinity, infinity), 2 * ulp_distance(0.0f, infinity));
}

TEST(UlpDistance, NanIsFarFromNumbersOnly) {
    EXPECT_EQ(ulp_distance(nan, nan), 0u);
    EXPECT_EQ(ulp_distance(nan, 1.0f), std::numeric_limits<uint64_t>::max());
    EXPECT_EQ(ulp_distance(infinity, nan), std::numeric_limits<uint64_t>::max());
}

TEST(Compare, SpecialValuesMeetTheirLike) {
    Difference d = compared({nan, infinity, -infinity, 0.0f}, {-nan, infinity, -infinity, -0.0f});
    EXPECT_TRUE(d.passes());
    EXPECT_EQ(d.unequal, 0);
    EXPECT_FALSE(d.at);
    const Tolerance generous{1e30, 1e30};
    EXPECT_EQ(compared({nan, 1, infinity, 1, infinity}, {1, nan, 1, infinity, -infinity}, generous).outside, 5);
    EXPECT_EQ(compared({0, 1}, {infinity, 1.5f}, {1, 0.1}).at, 0) << "nothing is worse than what is not finite";
}

TEST(Compare, TellsTheWorstElement) {
    Difference d = compared({1, 2.5f, 3, -4}, {1, 2, 3, -4.25f}, {0.3, 0});
    EXPECT_EQ(d.count, 4);
    EXPECT_EQ(d.unequal, 2);
    EXPECT_EQ(d.outside, 1);
    EXPECT_EQ(d.at, 1);
    EXPECT_EQ(d.actual, "2.5");
    EXPECT_EQ(d.expected, "2");
    EXPECT_DOUBLE_EQ(d.largest_absolute, 0.5);
    EXPECT_DOUBLE_EQ(d.largest_relative, 0.25);
    EXPECT_DOUBLE_EQ(d.mean_absolute, 0.75 / 4);
    EXPECT_EQ(d.largest_ulp, uint64_t{1} << 21);
}

TEST(Compare, EachToleranceIsEnough) {
    EXPECT_FALSE(compared({101}, {100}, {0, 0.009}).passes());
    EXPECT_TRUE(compared({101}, {100}, {0.5, 0.009}).passes());
    EXPECT_TRUE(compared({101}, {100}, {1, 0}).passes());
    EXPECT_TRUE(compared({std::nextafter(1.0f, 2.0f)}, {1}, {0, 0, 1}).passes());
    EXPECT_FALSE(compared({std::nextafter(1.0f, 2.0f)}, {1}, {0, 0, 0}).passes());
}

TEST(Compare, TheUsualToleranceKnowsTheLargestElement) {
    Tensor expected = floats({1000, 0, infinity});
    EXPECT_TRUE(compare(floats({1000, 0.009f, infinity}), expected, default_tolerance(expected)).passes());
    EXPECT_FALSE(compare(floats({1000, 0.011f, infinity}), expected, default_tolerance(expected)).passes());
    Tensor integers = tensor<int32_t>(DType::I32, {7});
    EXPECT_FALSE(compare(tensor<int32_t>(DType::I32, {8}), integers, default_tolerance(integers)).passes());
}

TEST(Compare, IntegersAndBoolsAreExact) {
    Difference d = compare(tensor<int64_t>(DType::I64, {1, -5}), tensor<int64_t>(DType::I64, {1, 5}), {100, 100});
    EXPECT_EQ(d.outside, 1);
    EXPECT_DOUBLE_EQ(d.largest_absolute, 10);
    EXPECT_EQ(d.actual, "-5");
    uint64_t most = std::numeric_limits<uint64_t>::max();
    EXPECT_DOUBLE_EQ(
        compare(tensor<uint64_t>(DType::U64, {most}), tensor<uint64_t>(DType::U64, {most - 3}), {}).largest_absolute,
        3);
    // Any byte but 0 is true.
    EXPECT_TRUE(compare(tensor<uint8_t>(DType::Bool, {2, 0}), tensor<uint8_t>(DType::Bool, {1, 0}), {}).passes());
    EXPECT_EQ(compare(tensor<uint8_t>(DType::Bool, {0}), tensor<uint8_t>(DType::Bool, {1}), {}).expected, "true");
}

TEST(Compare, HalvesAndStrings) {
    Tensor one = tensor<uint16_t>(DType::F16, {0x3c00}), next = tensor<uint16_t>(DType::F16, {0x3c01});
    EXPECT_EQ(compare(one, next, {}).largest_ulp, 1u);
    one.dtype = next.dtype = DType::BF16;
    EXPECT_EQ(compare(one, next, {}).largest_ulp, 1u);
    auto strings = [](std::vector<std::string> elements) {
        Tensor x{DType::String, {static_cast<int64_t>(elements.size())}, nullptr, nullptr};
        x.strings = std::make_shared<const std::vector<std::string>>(std::move(elements));
        return x;
    };
    Difference d = compare(strings({"a", "b"}), strings({"a", "c"}), {});
    EXPECT_EQ(d.outside, 1);
    EXPECT_EQ(d.actual, "\"b\"");
}

TEST(Compare, OtherTypesAndShapesAreNoPairs) {
    EXPECT_EQ(compared({1, 2}, {1}).mismatch, "it is f32[2], expected f32[1]");
    EXPECT_FALSE(compare(floats({1}), tensor<double>(DType::F64, {1}), {}).passes());
    EXPECT_TRUE(compared({}, {}).passes());
    EXPECT_EQ(index_text(5, {2, 3}), "[1,2]");
    EXPECT_EQ(index_text(0, {}), "[]");
}

} // namespace
} // namespace cuvil::evaluation
