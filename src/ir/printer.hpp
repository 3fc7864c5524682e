// IR text, the grammar of docs/ir.md. `parse(print(p)) == p` for every program.
#pragma once

#include "ir/program.hpp"

#include <string>

namespace cuvil {

std::string print(const Program& program);
std::string print(const FuncIR& function);
// One line without its regions: "%2 = relu %1 : f32[N,4]  loc \"conv1\"", for error excerpts.
std::string print(const OpNode& node);

} // namespace cuvil
