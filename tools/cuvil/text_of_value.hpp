// Arrays as text.
#pragma once

#include "cuvil/cuvil.h"

#include <string>
#include <string_view>

namespace cuvil::cli {

// "f32"
std::string_view dtype_text(cuvil_dtype dtype);
// "f32[1,3]"
std::string type_text(const cuvil_value& value);
// How far a number is off: "0.00123"
std::string difference_text(double difference);
// The elements in nested brackets; numbers in the shortest form that reads back the same. Axes longer than `limit` show
// their first and last few elements; 0: all of them. The value has no gaps between its elements.
std::string elements_text(const cuvil_value& value, int64_t limit);

} // namespace cuvil::cli
