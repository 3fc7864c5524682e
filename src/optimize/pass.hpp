// Passes over the target-free IR, and the engine that runs them.
#pragma once

#include "cuvil/compile.hpp"
#include "ir/program.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace cuvil {

// Computes the results of a pure node whose operands are all constants; nothing where it cannot. src/eval provides it.
using ConstantEvaluator = std::function<std::optional<std::vector<std::string>>(const Program&, const OpNode&)>;

struct PassContext {
    Program& program;
    Diagnostics& diag;
    ConstantEvaluator evaluate;                            // may be empty: then nothing is folded
    size_t changes = 0;                                    // how often a pass changed something; passes add to it
    std::function<void(std::string_view line)> trace = {}; // what inference finds, where it is asked for
    std::optional<int64_t> may_fold = {}; // bytes of constants; what canonicalize leaves for its next run
};

struct PassDef {
    std::string_view name;
    void (*run)(FuncIR&, PassContext&);
};

// All passes in their order (pipeline.cpp), by name for --print-after, --disable-pass and --stop-after.
std::span<const PassDef> all_passes();
// Runs one pass over all functions, then verifies.
void run_pass(const PassDef& pass, PassContext& context);
// Runs passes, by default the whole pipeline: prints on options.print_after, skips options.disabled_passes, ends after
// options.stop_after, tells options.pass_done and options.trace_inference.
void run_passes(Program& program, const CompileOptions& options, const ConstantEvaluator& evaluate, Diagnostics& diag,
                std::span<const PassDef> passes = all_passes());

} // namespace cuvil
