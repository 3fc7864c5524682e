#include "optimize/pass.hpp"

#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace cuvil {
namespace {

// The state that the importer leaves, by the name that --print-after and --stop-after have for it.
constexpr std::string_view frontend_parse = "FrontendParse";
// The step behind the last pass; its caller prints what --print-after wants of it.
constexpr std::string_view lowering = "LowerToCXXPass";

void expect_sound(const Program& program, std::string_view after) {
    std::vector<std::string> broken = verify(program);
    if (!broken.empty()) throw InternalError("after " + std::string(after) + ": " + broken.front());
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_pass(std::string_view name) {
    return std::ranges::any_of(all_passes(), [&](const PassDef& pass) { return pass.name == name; });
}

std::string known_passes() {
    std::string names(frontend_parse);
    for (const PassDef& pass : all_passes()) names += ", " + std::string(pass.name);
    return names;
}

void expect_known_names(const CompileOptions& options, Diagnostics& diag) {
    auto expect = [&](const std::string& name, bool known) {
        if (!known)
            diag.error("unknown-pass", "no pass is named " + cuvil::quoted(name)).suggest("passes: " + known_passes());
    };
    for (const std::string& name : options.print_after)
        expect(name, name == "all" || name == frontend_parse || name == lowering || is_pass(name));
    for (const std::string& name : options.disabled_passes) expect(name, is_pass(name));
    if (!options.stop_after.empty())
        expect(options.stop_after, options.stop_after == frontend_parse || is_pass(options.stop_after));
    diag.stop_if_errors();
}

void print_if_asked(const Program& program, std::string_view after, const CompileOptions& options) {
    if (!options.dump) return;
    if (contains(options.print_after, "all") || contains(options.print_after, after))
        options.dump(after, print(program));
}

void run_timed(const PassDef& pass, PassContext& context, const CompileOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    context.changes = 0;
    run_pass(pass, context);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (options.pass_done) options.pass_done({pass.name, time.count(), context.changes});
}

} // namespace

std::string text_of(const PassReport& report) {
    return fmt::format("{:<20} {:>9.2f} ms {:>7} change{}", report.pass, report.seconds * 1e3, report.changes,
                       report.changes == 1 ? "" : "s");
}

void run_pass(const PassDef& pass, PassContext& context) {
    try {
        for (const auto& function : context.program.functions()) pass.run(*function, context);
        expect_sound(context.program, pass.name);
    } catch (const InferenceError& e) {
        throw CompilerBug(std::string(pass.name) + ": " + e.what(), std::string(pass.name));
    } catch (const DimOverflow& e) { // the importer accepts sizes that only become too large by what a pass learns
        context.diag.error("too-complex", e.what());
        context.diag.stop_if_errors();
    } catch (const std::logic_error& e) { // InternalError is one
        throw CompilerBug(e.what(), std::string(pass.name));
    }
}

void run_passes(Program& program, const CompileOptions& options, const ConstantEvaluator& evaluate, Diagnostics& diag,
                std::span<const PassDef> passes) {
    expect_known_names(options, diag);
    expect_sound(program, frontend_parse);
    print_if_asked(program, frontend_parse, options);
    if (options.stop_after == frontend_parse) return;

    PassContext context{program, diag, evaluate, 0, options.trace_inference};
    for (const PassDef& pass : passes) {
        if (options.cancel && options.cancel->load(std::memory_order_relaxed)) throw Cancelled();
        if (!contains(options.disabled_passes, pass.name)) {
            run_timed(pass, context, options);
            diag.stop_if_errors();
            print_if_asked(program, pass.name, options);
        }
        if (options.stop_after == pass.name) return;
    }
}

} // namespace cuvil
