// LowerToCXXPass: the planned program as readable C++ over kernels/.
#pragma once

#include "codegen/cxx_module.hpp"
#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace cuvil {

// Steps become functions with the layers' names, the program a function that calls them in order, and the shapes of the
// inputs the table of dims. Adds to plan.checks the sentences that the code refers to.
CXXModule lower_to_cxx(const Program& program, Plan& plan, const std::vector<std::string>& levels);

} // namespace cuvil
