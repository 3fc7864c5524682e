#include "ops/views.hpp"

#include "ir/parser.hpp"
#include "ir/rewriter.hpp"
#include "ops/op_table.hpp"

#include <gtest/gtest.h>

namespace cuvil {
namespace {

TEST(Views, NameOperandsAttributesResultsAndRegions) {
    Diagnostics diag;
    auto program = parse(R"(
func @main(%x: f32[1,3,8,8], %w: f32[4,3,3,3], %c: bool[]) {
  %y = conv2d %x, %w {pads = [1,1,1,1]}
  %z = concat %y, %y, %y {axis = 1}
  %1, %2 = if %c : f32[1,4,8,8], bool[] then {
    return %y, %c
  } else {
    return %y, %c
  }
  return %z
}
)",
                         "test", builtin_op_table(), diag);
    ASSERT_TRUE(program) << diag.render();
    auto node = program->main().body().nodes().begin();
    auto conv = (*node++)->as<Conv2dOp>();
    ASSERT_TRUE(conv);
    EXPECT_EQ(conv->x().name(), "x");
    EXPECT_EQ(conv->weight().name(), "w");
    EXPECT_EQ(conv->bias(), nullptr);
    EXPECT_EQ(conv->pads(), (std::vector<int64_t>{1, 1, 1, 1}));
    EXPECT_EQ(conv->groups(), 1);
    EXPECT_EQ(conv->result().name(), "y");
    EXPECT_FALSE(conv->node().as<MatMulOp>());

    auto concat = (*node++)->as<ConcatOp>();
    ASSERT_TRUE(concat);
    EXPECT_EQ(concat->inputs().size(), 3u);

    auto branch = (*node++)->as<IfOp>();
    ASSERT_TRUE(branch);
    EXPECT_EQ(branch->results().size(), 2u);
    EXPECT_EQ(branch->else_region().terminator()->op(), "return");

    auto end = (*node++)->as<ReturnOp>();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->values().size(), 1u);
}

} // namespace
} // namespace cuvil
