// What the code of a step is written from.
#pragma once

#include "codegen/cxx_text.hpp"

namespace cuvil {

struct StepContext {
    const Program& program;
    Plan& plan;
    const Step& step;
    int region_depth;          // of the region that the step stands in
    std::vector<int>& buffers; // that the code turned out to need, by their numbers in the plan

    // "buffer[2]": the number of the buffer that holds the value.
    std::string buffer(const Value& value) const { return buffer(plan.buffer(value)); }
    std::string buffer(int number) const;
};

} // namespace cuvil
