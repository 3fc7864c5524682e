// One step as a C++ function over kernels/: a row per kernel family.
#pragma once

#include "codegen/cxx_text.hpp"

namespace cuvil {

struct StepContext {
    const Program& program;
    Plan& plan;
    const Step& step;
    int region_depth; // of the region that the step stands in; blocks from the host live until its end
};

// "void step_3(Frame& f)", with the layer's name as its symbol on each level.
std::string step_declaration(const Step& step);
// The whole function.
std::string step_code(const StepContext& context);

} // namespace cuvil
