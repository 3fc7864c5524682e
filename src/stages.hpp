// The compiler's stages one by one, for callers that hold a Program: cuvil/compile.hpp joins them.
#pragma once

#include "codegen/cxx_module.hpp"
#include "cuvil/compile.hpp"
#include "plan/plan.hpp"

#include <memory>
#include <string>
#include <vector>

namespace cuvil {

// A planned program with its C++.
struct Lowered {
    Program program; // owns what the plan refers to
    Plan plan;
    CXXModule cxx;
    std::vector<std::string> levels;
};

// The levels to compile for, least demanding first. Throws Refused for an unknown target, level or optimisation level.
std::vector<std::string> levels_of(const CompileOptions& options);
// Runs the passes; the program is the target-free result.
void optimize(Program& program, const CompileOptions& options, Diagnostics& diag);
// Plans an optimised program for the levels and writes its C++.
Lowered lower(Program program, std::vector<std::string> levels);
// What the module's manifest will say, before any code is made.
std::string manifest_of(const Lowered& lowered, const CompileOptions& options);
// The linked shared object of the C++.
std::string shared_object(const Lowered& lowered, const CompileOptions& options, Diagnostics& diag);
// Compiles the C++ and joins it with manifest and weights, which stay where they are.
Artifact assemble(std::shared_ptr<const Lowered> lowered, const CompileOptions& options, Diagnostics& diag);
// All of it.
Artifact compile(Program program, const CompileOptions& options, Diagnostics& diag);

} // namespace cuvil
