// What all levels of a module share, as C++: `bind`, `workspace_size` and the descriptor that is exported.
#pragma once

#include "codegen/cxx_text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cuvil {

// The whole source. `bind` computes the table of dims from the shapes of the inputs and checks all sizes that depend on
// them alone; adds to plan.checks the sentences that it refers to.
std::string entry_source(const Program& program, Plan& plan, const std::vector<std::string>& levels);

// What `workspace_size` returns, where no size depends on the call.
std::optional<int64_t> fixed_workspace_size(const Plan& plan);

} // namespace cuvil
