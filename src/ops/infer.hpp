// Inference rules that several ops share.
#pragma once

#include "ir/op_def.hpp"
#include "ir/op_node.hpp"

#include <initializer_list>
#include <string_view>

namespace cuvil {

// The result is like the first operand.
void same_as_first(Inference& in);
// All operands have one dtype and one shape, which are the result's.
void same_for_all(Inference& in);
// All operands have one dtype and one shape; the result is bool of that shape.
void bool_for_all(Inference& in);

// The axis counted from the front; fails when it is out of range for `rank`.
int64_t normal_axis(const Inference& in, int64_t axis, int64_t rank);
// Output size of a sliding window: floor((size + padding - dilation * (kernel - 1) - 1) / stride) + 1.
Dim window_output(const Dim& size, const Dim& kernel, int64_t stride, int64_t dilation, const Dim& padding);
// Fails unless the list has `count` entries, each at least `least`.
void expect_ints(const Inference& in, std::string_view attribute, size_t count, int64_t least);
// Fails unless the text is one of the words.
void expect_one_of(const Inference& in, std::string_view attribute, std::initializer_list<std::string_view> words);

// The shared test shapes of elementwise ops with one, two and three operands.
extern const TestGrid unary_grid, positive_grid, binary_grid, power_grid, integer_binary_grid, integer_unary_grid,
    bool_binary_grid, bool_unary_grid;

} // namespace cuvil
