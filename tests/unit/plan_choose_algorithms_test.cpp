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

} // namespace
} // namespace cuvil
