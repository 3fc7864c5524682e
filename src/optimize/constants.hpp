// Reading and writing the elements of constants.
#pragma once

#include "ir/rewriter.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cuvil {

// The value behind a broadcast, or the value itself.
const Value& behind_broadcast(const Value& value);

// Whether each element of a constant, or of a broadcast constant, has the bits of `number` (so -0 is not 0). False for
// dtypes other than f64, f32 and integers, and for constants without elements.
bool is_filled_with(const Program& program, const Value& value, double number);

// Element `at` of an i64 or i32 constant; nothing for other values.
std::optional<int64_t> constant_integer(const Program& program, const Value& value, int64_t at);

// The elements of an f32 or f64 constant; nothing for other values.
std::optional<std::vector<double>> constant_floats(const Program& program, const Value& value);

// The one number that all elements of an f32 or f64 constant, or of a broadcast of one, are; NaN is none.
std::optional<double> only_number(const Program& program, const Value& value);

// Elements of an f32 or f64 tensor, each rounded to the nearest value of `dtype`.
std::string float_bytes(std::span<const double> elements, DType dtype);

// A small whole number as a scalar constant; nullptr for dtypes other than f64, f32 and integers.
Value* number_of(Rewriter& rewriter, DType dtype, double number);

// A name for what is computed from a constant: "conv1.weight/folded".
std::string folded_name(const Value& from);

} // namespace cuvil
