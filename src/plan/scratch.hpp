// Memory that kernels work in beside their operands and results.
#pragma once

#include "plan/plan.hpp"

namespace cuvil {

// The bytes that a step needs, on the level that needs most; 0 for most kernels.
Dim scratch_bytes(const Plan& plan, const Step& step);

} // namespace cuvil
