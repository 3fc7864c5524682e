// Checks what every pass may rely on.
#pragma once

#include "ir/program.hpp"

#include <string>
#include <vector>

namespace cuvil {

// Each broken invariant as a sentence; empty when all hold: operands are defined before their use in the same or an
// enclosing region, uses are mirrored, arity and attributes match the op's record, dtypes are accepted, regions end in
// one terminator, ports match the body, result types agree with inference, weights exist.
std::vector<std::string> verify(const Program& program);

} // namespace cuvil
