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

} // namespace
} // namespace cuvil
