#include "plan_testing.hpp"

#include <gtest/gtest.h>

namespace cuvil {
namespace {

TEST(ChooseAlgorithms, ValuesWithoutCodeAreRefusedAllAtOnce) {
    try {
        Planned planned(R"(func @main(%a: list<i64[N]>, %b: f32[*], %c: f32[N]) -> (f32[*], f32[N]) {
  %1 = relu %b : f32[*]
  return %1, %c
})");
        FAIL() << "not refused";
    } catch (const Refused& refused) {
        EXPECT_STREQ(refused.what(),
                     "error[unsupported-type]: argument 0 is list<i64[N]>: only tensors have code\n"
                     "error[unknown-rank]: argument 1 is f32[*]: only tensors with a rank have code\n"
                     "error[unknown-rank]: a result of relu is f32[*]: only tensors with a rank have code\n");
    }
}

TEST(ChooseAlgorithms, ArgumentsHaveNoLayout) {
    try {
        Planned planned(R"(func @main(%x: f32[1,3,4,4]{blocked, halo=[0,0,0,0]}) -> f32[1,3,4,4] {
  %1 = relayout %x : f32[1,3,4,4]
  return %1
})");
        FAIL() << "not refused";
    } catch (const Refused& refused) {
        EXPECT_STREQ(refused.what(),
                     "error[invalid-ir]: argument 0 is f32[1,3,4,4]{blocked, halo=[0,0,0,0]}: what comes "
                     "from outside has no layout of its own\n");
    }
}

// A model whose table of words is the weights of its last product, transposed, if they are equal.
std::string language_model(bool is_equal) {
    std::string table, product;
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 2; column++)
            table += (table.empty() ? "" : ", ") + std::to_string(2 * row + column);
    for (int column = 0; column < 2; column++)
        for (int row = 0; row < 3; row++)
            product += (product.empty() ? "" : ", ") + std::to_string(2 * row + column + (is_equal ? 0 : 1));
    return "weight \"table\" : f32[3,2] = [" + table + "]\nweight \"out\" : f32[2,3] = [" + product + R"(]
func @main(%i: i64[N]) -> f32[N,3] {
  %t = weight "table" : f32[3,2]
  %w = weight "out" : f32[2,3]
  %1 = gather %t, %i {axis = 0} : f32[N,2]
  %2 = matmul %1, %w : f32[N,3]
  return %2
})";
}

TEST(ChooseAlgorithms, ATableThatIsAProductsWeightsIsKeptOnce) {
    Planned tied(language_model(true));
    EXPECT_EQ(tied.steps(), (std::vector<std::string>{"gather_packed", "gemm"}));
    EXPECT_EQ(tied.plan.constants.size(), 1u);
    Planned narrow(language_model(true), {.matrices = DType::I8});
    EXPECT_EQ(narrow.steps(), (std::vector<std::string>{"gather_packed", "gemm_i8"}));
    EXPECT_EQ(narrow.plan.constants.size(), 1u);
    Planned others(language_model(false));
    EXPECT_EQ(others.steps(), (std::vector<std::string>{"gather", "gemm"}));
    EXPECT_EQ(others.plan.constants.size(), 2u);
}

constexpr std::string_view two_products = R"(weight "w" : f32[2,2] = [1.0, -2.0, 3.0, 70000.0]
func @main(%x: f32[N,2], %b: f32[2,2]) -> f32[N,2] {
  %w = weight "w" : f32[2,2]
  %1 = matmul %x, %w : f32[N,2]  loc "layer"
  %2 = relu %1 : f32[N,2]
  %3 = matmul %2, %b : f32[N,2]
  return %3
})";

TEST(ChooseAlgorithms, ConstantMatricesTakeTheDtypeThatIsAskedFor) {
    Planned p(two_products, {.matrices = DType::I8});
    EXPECT_EQ(p.steps(), (std::vector<std::string>{"gemm_i8, relu", "pack_b", "gemm"}));
    ASSERT_EQ(p.plan.constants.size(), 1u);
    EXPECT_EQ(p.plan.constants[0].name, "w/packed_i8");
    EXPECT_EQ(p.plan.constants[0].bytes.size(), 4u * 64 + 2 * 64);
}

TEST(ChooseAlgorithms, NumbersThatTheDtypeLacksAreRefused) {
    try {
        Planned planned(two_products, {.matrices = DType::F16});
        FAIL() << "not refused";
    } catch (const Refused& refused) {
        EXPECT_STREQ(refused.what(),
                     "error[weight-out-of-range]: weight \"w\" holds 70000, for which f16 has no number\n"
                     "  --> node \"layer\"\n"
                     "help: --precision bf16-weights has the range of f32\n");
    }
}

} // namespace
} // namespace cuvil
