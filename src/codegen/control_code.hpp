// The order of a program as C++: calls of steps, and If and Loop around them.
#pragma once

#include "codegen/cxx_text.hpp"

namespace cuvil {

// The statements of a region and of all regions inside. Any failure leaves through `return f.finish();`.
void region_code(Plan& plan, const RegionPlan& region, int depth, CxxText& out);

} // namespace cuvil
