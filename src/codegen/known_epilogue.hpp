// Which of the known epilogues of kernels/epilogue.hpp a step has.
#pragma once

#include "codegen/step_context.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace cuvil {

// Known<where, function>, whose function is made of the arguments.
struct KnownEpilogue {
    std::string_view where = "none", function = "Clamp";
    const Value* addend = nullptr; // lies as the result does
    std::string arguments = "{}";
};

// Of a convolution with a bias; nothing if its epilogue does more, or other things.
std::optional<KnownEpilogue> known_epilogue(const StepContext& context);

} // namespace cuvil
