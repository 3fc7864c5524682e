// Which of the epilogues of kernels/epilogue.hpp a step has.
#pragma once

#include "codegen/step_context.hpp"

#include <optional>
#include <string>

namespace cuvil {

// Light<addend != nullptr, activation>, whose activation is made of the arguments.
struct LightEpilogue {
    const Value* addend = nullptr; // lies as the result does
    std::string activation = "Clamp", arguments;
};

// Of a convolution with a bias; nothing if its epilogue does more, or other things.
std::optional<LightEpilogue> light_epilogue(const StepContext& context);

} // namespace cuvil
