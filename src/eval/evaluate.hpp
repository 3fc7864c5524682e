// The kernels with run-time shapes: folds constants. The same templates as in artifacts, with exact fma, so the bits
// are those of the compiled code on v3 and v4.
#pragma once

#include "ir/program.hpp"

#include <optional>
#include <string>
#include <vector>

namespace cuvil {

// The bytes of each result of a pure node whose operands are constants with static shapes; nothing for ops and sizes
// (above 256 MiB) that it does not compute.
std::optional<std::vector<std::string>> evaluate(const Program& program, const OpNode& node);

} // namespace cuvil
