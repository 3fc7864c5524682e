// The compiler on one page.
#include "cuvil/compile.hpp"

#include "artifact/manifest.hpp"
#include "artifact/writer.hpp"
#include "codegen/lower_to_cxx.hpp"
#include "eval/evaluate.hpp"
#include "import/importer.hpp"
#include "import/onnx/onnx.hpp"
#include "ir/printer.hpp"
#include "ops/op_table.hpp"
#include "optimize/pass.hpp"
#include "plan/plan.hpp"
#include "support/diagnostics.hpp"

#include "runtime/cpu.hpp"

#include <algorithm>
#include <stop_token>

namespace cuvil {

struct Artifact::Content {
    std::string shared_object;
    std::string manifest;
    WeightsSource weights;
    Program program; // owns what `weights` points to
};

Artifact::Artifact(std::unique_ptr<Content> content) : content_(std::move(content)) {}
Artifact::Artifact(Artifact&&) noexcept = default;
Artifact& Artifact::operator=(Artifact&&) noexcept = default;
Artifact::~Artifact() = default;

namespace {

constexpr int stage_count = 5;

void tell(const CompileOptions& options, int step, std::string_view stage) {
    if (options.cancel && *options.cancel) throw Cancelled();
    if (options.progress) options.progress({step, stage_count, stage});
}

// The levels to compile for, least demanding first. Refuses unknown targets and levels.
std::vector<std::string> levels_of(const CompileOptions& options) {
    Diagnostics diag;
    std::string wanted = options.target == "host" ? "native" : options.target;
    auto target = std::ranges::find(targets(), wanted, &Target::name);
    if (target == targets().end()) {
        std::string known;
        for (const Target& t : targets()) known += (known.empty() ? "" : ", ") + t.name;
        diag.error("unknown-target", "there is no target '" + options.target + "'").suggest("targets: " + known);
        throw Refused(diag);
    }
    for (const std::string& level : options.levels)
        if (std::ranges::find(target->levels, level) == target->levels.end())
            diag.error("unknown-level", "target '" + wanted + "' has no level '" + level + "'")
                .suggest("see `cuvil targets`");
    if (options.opt_level.size() != 2 || options.opt_level[0] != 'O' || options.opt_level[1] < '0' ||
        options.opt_level[1] > '3')
        diag.error("bad-option", "there is no optimisation level '" + options.opt_level + "'")
            .suggest("O0, O1, O2 or O3");
    for (const auto* names : {&options.disabled_passes, &options.print_after})
        for (const std::string& name : *names) {
            std::vector<std::string> known = pass_names();
            if (name != "all" && std::ranges::find(known, name) == known.end())
                diag.error("unknown-pass", "there is no pass '" + name + "'").suggest("see `cuvil compile --help`");
        }
    diag.stop_if_errors();
    std::vector<std::string> levels;
    for (const std::string& level : target->levels)
        if (options.levels.empty() || std::ranges::find(options.levels, level) != options.levels.end())
            levels.push_back(level);
    return levels;
}

void dump_after(const CompileOptions& options, std::string_view pass, const std::string& text) {
    auto asked = [&](std::string_view name) {
        return std::ranges::find(options.print_after, name) != options.print_after.end();
    };
    if (options.dump && (asked(pass) || asked("all"))) options.dump(pass, text);
}

struct Lowered {
    Program program;
    Plan plan;
    CXXModule cxx;
};

Program optimized(const Source& source, const CompileOptions& options, Diagnostics& diag) {
    tell(options, 1, "import");
    // One SSA program, whatever framework the model came from. Reports every unsupported op, then stops.
    Program program = import_model(source, options, builtin_op_table(), diag);
    diag.stop_if_errors();
    tell(options, 2, "optimize");
    run_passes(program, options, evaluate, diag); // target-free: no layout, no ISA, no thread count
    diag.stop_if_errors();
    return program;
}

Lowered lowered(const Source& source, const std::vector<std::string>& levels, const CompileOptions& options,
                Diagnostics& diag) {
    Program program = optimized(source, options, diag);
    tell(options, 3, "plan");
    // From here on the target is known and no rewrite rule runs.
    Plan plan = choose_algorithms(program);
    choose_layouts(program, plan); // adds `relayout` ops
    fuse_loops(program, plan);
    plan_memory(program, plan); // the program is frozen from here on
    CXXModule cxx = lower_to_cxx(program, plan, levels);
    dump_after(options, "LowerToCXXPass", cxx.source_text());
    return {std::move(program), std::move(plan), std::move(cxx)};
}

// CompileOptions::cancel as the stop token that the code generator takes.
class CancelWatch {
public:
    explicit CancelWatch(const CompileOptions& options) : options_(options) {}
    CXXCompileOptions cxx_options() {
        auto watch = [this](size_t, size_t) {
            if (options_.cancel && *options_.cancel) stop_.request_stop();
        };
        return {options_.jobs, watch, stop_.get_token()};
    }

private:
    const CompileOptions& options_;
    std::stop_source stop_;
};

} // namespace

Artifact compile(const Source& source, const CompileOptions& options, Diagnostics& diag) {
    std::vector<std::string> levels = levels_of(options);
    auto [program, plan, cxx] = lowered(source, levels, options, diag);
    tell(options, 4, "codegen");
    CancelWatch watch(options);
    std::string shared_object = cxx.compile(watch.cxx_options(), diag);
    tell(options, 5, "write");
    WeightsSource weights;
    for (const PlacedConstant& constant : plan.constants) weights.push_back(constant.bytes);
    std::string manifest = manifest_of(program, plan, {std::string(version()), options.target, levels});
    return Artifact(std::make_unique<Artifact::Content>(
        Artifact::Content{std::move(shared_object), std::move(manifest), std::move(weights), std::move(program)}));
}

std::vector<EmittedText> emit(const Source& source, Emit what, const CompileOptions& options, Diagnostics& diag) {
    CUVIL_ASSERT(what != Emit::Module, "a module is no text");
    std::vector<std::string> levels = levels_of(options);
    if (what == Emit::Ir) return {{"cuir", print(optimized(source, options, diag))}};
    Lowered all = lowered(source, levels, options, diag);
    if (what == Emit::Cxx) return {{"cpp", all.cxx.source_text()}};
    CancelWatch watch(options);
    std::vector<EmittedText> out;
    for (auto& [name, text] : all.cxx.emit(what == Emit::Llvm ? Output::Llvm : Output::Assembly, watch.cxx_options()))
        out.push_back({std::move(name), std::move(text)});
    return out;
}

namespace {

ArtifactParts parts_of(const Artifact& artifact) {
    const Artifact::Content& c = artifact.content();
    return {c.shared_object, c.manifest, {}, c.weights};
}

} // namespace

void write(const Artifact& artifact, const std::filesystem::path& path, Diagnostics& diag) {
    write_artifact(path, parts_of(artifact), diag);
    diag.stop_if_errors();
}

std::string bytes(const Artifact& artifact) { return artifact_bytes(parts_of(artifact)); }
std::string manifest(const Artifact& artifact) { return artifact.content().manifest; }

const std::vector<Target>& targets() {
    static const std::vector<Target> all = [] {
        std::vector<std::string> x86 = {"v2", "v3", "v4"};
        return std::vector<Target>{
            {"cpu-x86-64", "x86-64 with SSE4.2 (v2), AVX2 (v3) and AVX-512 (v4) code in one file, chosen at load", x86},
            {"native",
             "only the best level of this machine's processor",
             {std::string(rt::cpu_levels().empty() ? "v2" : rt::cpu_levels().back())}},
        };
    }();
    return all;
}

std::vector<ImportedOp> imported_ops(std::string_view format) {
    return format == "onnx" ? onnx_rows() : std::vector<ImportedOp>{};
}

std::vector<std::string> pass_names() {
    std::vector<std::string> names = {"FrontendParse"};
    for (const PassDef& pass : all_passes()) names.emplace_back(pass.name);
    names.emplace_back("LowerToCXXPass");
    return names;
}

std::string_view version() { return CUVIL_VERSION; }

} // namespace cuvil
