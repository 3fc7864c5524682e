// One step as C++ over kernels/: a row per kernel family.
#pragma once

#include "codegen/cxx_text.hpp"

namespace cuvil {

// The code of a step, free of the buffers that it works on: equal layers have equal code.
struct StepCode {
    std::string body;         // statements over `f`, a Frame, and `buffer`, the numbers of buffers
    std::vector<int> buffers; // what `buffer` is for this step
};

// `region_depth` is that of the region that the step stands in; blocks from the host live until its end.
StepCode step_code(const Program& program, Plan& plan, const Step& step, int region_depth);

} // namespace cuvil
