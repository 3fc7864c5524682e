// The compiler on one page.
#include "src/stages.hpp"

#include "artifact/manifest.hpp"
#include "artifact/writer.hpp"
#include "codegen/lower_to_cxx.hpp"
#include "eval/evaluate.hpp"
#include "import/importer.hpp"
#include "import/onnx/onnx.hpp"
#include "ops/op_table.hpp"
#include "optimize/pass.hpp"
#include "support/diagnostics.hpp"
#include "support/file.hpp"

#include "runtime/cpu.hpp"
#include "src/reproducer.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace cuvil {

struct Artifact::Content {
    std::string shared_object;
    std::string manifest;
    std::vector<AttachedFile> files;
    WeightsSource weights;
    std::shared_ptr<const Lowered> lowered; // owns what `weights` points to
};

Artifact::Artifact(std::unique_ptr<Content> content) : content_(std::move(content)) {}
Artifact::Artifact(Artifact&&) noexcept = default;
Artifact& Artifact::operator=(Artifact&&) noexcept = default;
Artifact::~Artifact() = default;

namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

std::vector<AttachedFile> attached(const CompileOptions& options) {
    Diagnostics diag;
    std::vector<AttachedFile> files;
    for (const std::filesystem::path& path : options.attachments) {
        try {
            files.push_back({path.filename().string(), std::string(MappedFile(path).text())});
        } catch (const std::system_error& error) {
            diag.error("bad-attachment", "cannot read '" + path.string() + "': " + error.code().message());
        }
    }
    diag.stop_if_errors();
    return files;
}

} // namespace

static constexpr int stage_count = 5;

void tell(const CompileOptions& options, int step, std::string_view stage) {
    if (options.cancel && *options.cancel) throw Cancelled();
    if (options.progress) options.progress({step, stage_count, stage});
}

WeightsSource weights_of(const Plan& plan) {
    WeightsSource weights;
    for (const PlacedConstant& constant : plan.constants) weights.push_back(constant.bytes);
    return weights;
}

CXXCompileOptions CancelWatch::cxx_options() {
    auto watch = [this](size_t done, size_t total) {
        if (options_.cancel && *options_.cancel) stop_.request_stop();
        if (options_.progress) options_.progress({4, stage_count, "codegen", done, total});
    };
    int effort = options_.opt_level == "O3" ? 2 : 1;
    return {effort, options_.jobs, watch, stop_.get_token(), options_.cache_folder};
}

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
        if (!contains(target->levels, level))
            diag.error("unknown-level", "target '" + wanted + "' has no level '" + level + "'")
                .suggest("see `cuvil targets`");
    const std::string& effort = options.opt_level;
    if (effort.size() != 2 || effort[0] != 'O' || effort[1] < '0' || effort[1] > '3')
        diag.error("bad-option", "there is no optimisation level '" + effort + "'").suggest("O0, O1, O2 or O3");
    diag.stop_if_errors();
    std::vector<std::string> levels;
    for (const std::string& level : target->levels)
        if (options.levels.empty() || contains(options.levels, level)) levels.push_back(level);
    return levels;
}

void optimize(Program& program, const CompileOptions& options, Diagnostics& diag) {
    tell(options, 2, "optimize");
    run_passes(program, options, evaluate, diag); // target-free: no layout, no ISA, no thread count
    diag.stop_if_errors();
}

static DType matrices_of(Precision precision) {
    switch (precision) {
    case Precision::F32: return DType::F32;
    case Precision::Bf16Weights: return DType::BF16;
    case Precision::F16Weights: return DType::F16;
    case Precision::Int8Weights: return DType::I8;
    }
}

Lowered lower(Program program, std::vector<std::string> levels, const CompileOptions& options) try {
    // From here on the target is known and no rewrite rule runs.
    Plan plan = choose_algorithms(program, {.least_bytes = options.optimize_for == OptimizeFor::Size,
                                            .kernels = options.kernels,
                                            .matrices = matrices_of(options.precision)});
    choose_layouts(program, plan); // adds `relayout` ops
    fuse_loops(program, plan);
    plan_memory(program, plan); // the program is frozen from here on
    CXXModule cxx = lower_to_cxx(program, plan, levels);
    return {std::move(program), std::move(plan), std::move(cxx), std::move(levels)};
} catch (const DimOverflow& error) { // halos, or all that a run keeps at once
    Diagnostics diag;
    diag.error("too-complex", error.what());
    throw Refused(diag);
}

std::string manifest_of(const Lowered& lowered, const CompileOptions& options) {
    return manifest_of(lowered.program, lowered.plan,
                       {std::string(version()), options.target, lowered.levels, std::string(name(options.precision))});
}

std::string shared_object(const Lowered& lowered, const CompileOptions& options, Diagnostics& diag) {
    CancelWatch watch(options);
    return lowered.cxx.compile(watch.cxx_options(), diag);
}

Artifact assemble(std::shared_ptr<const Lowered> lowered, const CompileOptions& options, Diagnostics& diag) {
    tell(options, 4, "codegen");
    std::string object = shared_object(*lowered, options, diag);
    tell(options, 5, "write");
    std::vector<AttachedFile> files = attached(options);
    WeightsSource weights = weights_of(lowered->plan);
    std::string manifest = manifest_of(*lowered, options);
    return Artifact(std::make_unique<Artifact::Content>(Artifact::Content{
        std::move(object), std::move(manifest), std::move(files), std::move(weights), std::move(lowered)}));
}

Program imported(const Source& source, const CompileOptions& options, Diagnostics& diag) {
    tell(options, 1, "import");
    // One SSA program, whatever framework the model came from. Reports every unsupported op, then stops.
    Program program = import_model(source, options, builtin_op_table(), diag);
    diag.stop_if_errors();
    return program;
}

Lowered planned(Program program, std::vector<std::string> levels, const CompileOptions& options) {
    tell(options, 3, "plan");
    Lowered lowered = lower(std::move(program), std::move(levels), options);
    bool is_asked = contains(options.print_after, "LowerToCXXPass") || contains(options.print_after, "all");
    if (options.dump && is_asked) options.dump("LowerToCXXPass", lowered.cxx.source_text());
    return lowered;
}

Artifact compile(Program program, const CompileOptions& options, Diagnostics& diag) {
    if (!options.stop_after.empty())
        diag.error("bad-option", "a module cannot stop after " + cuvil::quoted(options.stop_after))
            .suggest("emit the IR instead");
    diag.stop_if_errors();
    std::vector<std::string> levels = levels_of(options);
    optimize(program, options, diag);
    return assemble(std::make_shared<const Lowered>(planned(std::move(program), std::move(levels), options)), options,
                    diag);
}

Artifact compile(const Source& source, const CompileOptions& options, Diagnostics& diag) {
    (void)levels_of(options); // a wrong option is told before any work
    (void)attached(options);
    return reproducible(source, options, [&](const CompileOptions& watched) {
        return compile(imported(source, watched, diag), watched, diag);
    });
}

namespace {

ArtifactParts parts_of(const Artifact& artifact) {
    const Artifact::Content& c = artifact.content();
    return {c.shared_object, c.manifest, c.files, c.weights};
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

const std::vector<std::pair<std::string, Precision>>& precisions() {
    static const std::vector<std::pair<std::string, Precision>> all = {{"f32", Precision::F32},
                                                                       {"bf16-weights", Precision::Bf16Weights},
                                                                       {"f16-weights", Precision::F16Weights},
                                                                       {"int8-weights", Precision::Int8Weights}};
    return all;
}

std::string_view name(Precision precision) {
    return std::ranges::find(precisions(), precision, &std::pair<std::string, Precision>::second)->first;
}

std::filesystem::path default_cache_folder() {
    if (const char* folder = std::getenv("CUVIL_CACHE_DIR")) return folder;
    const auto below = [](const char* variable, const char* rest) {
        const char* folder = std::getenv(variable);
        return folder && *folder == '/' ? std::filesystem::path(folder) / rest : std::filesystem::path();
    };
    const std::filesystem::path cache = below("XDG_CACHE_HOME", "cuvil");
    return cache.empty() ? below("HOME", ".cache/cuvil") : cache;
}

void finish_cancelled() { wait_for_left_threads(); }

std::string_view version() { return CUVIL_VERSION; }

} // namespace cuvil
