// The compiler's stages one by one, for callers that hold a Program: cuvil/compile.hpp joins them.
#pragma once

#include "artifact/writer.hpp"
#include "codegen/cxx_module.hpp"
#include "cuvil/compile.hpp"
#include "plan/plan.hpp"

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
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
// The typed program, whatever framework the model came from.
Program imported(const Source& source, const CompileOptions& options, Diagnostics& diag);
// Runs the passes; the program is the target-free result.
void optimize(Program& program, const CompileOptions& options, Diagnostics& diag);
// Plans an optimised program for the levels and writes its C++.
Lowered lower(Program program, std::vector<std::string> levels, const CompileOptions& options);
// The same with progress, and the dump that the options ask for.
Lowered planned(Program program, std::vector<std::string> levels, const CompileOptions& options);
// What the module's manifest will say, before any code is made.
std::string manifest_of(const Lowered& lowered, const CompileOptions& options);
// The linked shared object of the C++.
std::string shared_object(const Lowered& lowered, const CompileOptions& options, Diagnostics& diag);
// Compiles the C++ and joins it with manifest and weights, which stay where they are.
Artifact assemble(std::shared_ptr<const Lowered> lowered, const CompileOptions& options, Diagnostics& diag);
// The constants in the order of the plan, where they are.
WeightsSource weights_of(const Plan& plan);
// All of it.
Artifact compile(Program program, const CompileOptions& options, Diagnostics& diag);

// Begins a stage: tells options.progress, and throws Cancelled after options.cancel.
void tell(const CompileOptions& options, int step, std::string_view stage);

// How the C++ is compiled: asks for a stop of the code generator when options.cancel is set.
class CancelWatch {
public:
    explicit CancelWatch(const CompileOptions& options) : options_(options) {}
    CXXCompileOptions cxx_options();

private:
    const CompileOptions& options_;
    std::stop_source stop_;
};

} // namespace cuvil
