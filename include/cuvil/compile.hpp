// Cuvil as a library: a model goes in, a self-contained module comes out.
//
//     cuvil::Diagnostics diag;
//     cuvil::Artifact module = cuvil::compile({.path = "resnet18.onnx"}, {}, diag);
//     cuvil::write(module, "resnet18.cuvil", diag);
#pragma once

#include "cuvil/diagnostic.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cuvil {

// A model file (.onnx, or .cuir IR text), or its bytes, for which `path` then only gives the name.
struct Source {
    std::filesystem::path path;
    std::string_view bytes = {};
};

// Static, Object: what a C program links, with the host inside. Header: the functions that it calls.
enum class Emit { Module, Ir, Cxx, Llvm, Asm, Static, Object, Header };

// What decides where one kernel is quicker and another one needs less: the time of a run, or the bytes of the file and
// of the memory of a run.
enum class OptimizeFor { Latency, Size };

// What the constant matrices of products are kept in; all is computed in f32. The narrower ones save bytes of the file,
// and the time of reading them, which is nearly all that a product of a few rows takes; they round the weights: to 8
// bits of mantissa, to 11, and to 255 steps, of a size of its own for each column of the result. Other weights, as
// those of convolutions, stay f32; a table of rows that is a product's matrix, too, is kept once, as that matrix.
enum class Precision { F32, Bf16Weights, F16Weights, Int8Weights };

// What a compile tells on its way; for progress displays.
struct Progress {
    int step, steps;
    std::string_view stage;     // "import", "optimize", "plan", "codegen", "write"
    size_t done = 0, total = 0; // objects of codegen, which tells many times a second
};

// What a pass did; `changes` counts the edits that it speaks of, such as rules that applied.
struct PassReport {
    std::string_view pass;
    double seconds;
    size_t changes;
};

// "CanonicalizePass       1.25 ms    17 changes"
std::string text_of(const PassReport& report);

struct CompileOptions {
    std::string target = "cpu-x86-64";    // or "native": the best level of this CPU only
    std::vector<std::string> levels = {}; // of the target's, e.g. {"v3"}; empty: all
    std::string opt_level = "O2";         // O0..O3: compile effort, never other bits; O3 lets Clang work longer
    OptimizeFor optimize_for = OptimizeFor::Latency;
    Precision precision = Precision::F32;
    // Kernels by what they compute, as the manifest's steps tell it under "choice" ("conv2d 3x3 64 to 64 channels,
    // 56 x 56"), in place of those that an estimate would choose: `cuvil tune` measures them. They decide bits.
    std::map<std::string, std::string> kernels = {};
    unsigned jobs = 0; // threads that compile; 0: all cores. The file is the same for any number
    std::map<std::string, std::vector<int64_t>> input_shapes = {}; // fixes symbolic sizes by input name
    // All sizes of inputs by name, numbers and symbols, in place of what the model says: {"N", "3", "224", "224"}.
    std::map<std::string, std::vector<std::string>> dynamic_shapes = {};
    std::string library_name = {}; // what the C functions' names begin with; empty: made from the file's name
    std::vector<std::filesystem::path> attachments = {}; // files that go into the module under their names
    std::vector<std::string> print_after = {};           // pass names, or "all"
    std::vector<std::string> disabled_passes = {};
    // Weights that IR text names without their data get numbers made from their names: enough to see what the compiler
    // does, never right results.
    bool fill_weights = false;
    std::string stop_after = {}; // a pass name: the IR after it is the result
    std::function<void(std::string_view pass, std::string_view ir)> dump = {}; // receives what print_after asked for
    std::function<void(const PassReport&)> pass_done = {};                     // called after each pass
    std::function<void(std::string_view line)> trace_inference = {};           // receives each type and what it becomes
    std::function<void(const Progress&)> progress = {};
    // Where objects are kept that the next compilation of the same code finds; empty: nowhere. Never decides the file.
    std::filesystem::path cache_folder = {};
    const std::atomic<bool>* cancel = nullptr; // set to true: compile throws Cancelled soon; see finish_cancelled
};

// An InternalError that came up while compiling, with what shows it again.
class CompilerBug : public InternalError {
public:
    CompilerBug(const std::string& what, std::string step, std::string program = {}, std::string arguments = {})
        : InternalError(what), step_(std::move(step)), program_(std::move(program)), arguments_(std::move(arguments)) {}

    const std::string& step() const { return step_; } // the pass or stage that failed
    // The program before the step as IR text; empty where there was none yet, or it was the caller's.
    const std::string& program() const { return program_; }
    const std::string& arguments() const { return arguments_; } // for `cuvil compile`, as the options say

private:
    std::string step_, program_, arguments_;
};

// Writes the program and how to compile it, as cuvil-bug-XXXXXX.cuir, into the current folder, else into that for
// temporary files. `command` says what was done. Gives an empty path where the bug has no program or no file can be
// written.
std::filesystem::path write_reproducer(const CompilerBug& bug, const std::string& command);

// A finished module, not yet a file.
class Artifact {
public:
    struct Content;
    explicit Artifact(std::unique_ptr<Content> content);
    Artifact(Artifact&&) noexcept;
    Artifact& operator=(Artifact&&) noexcept;
    ~Artifact();
    const Content& content() const { return *content_; }

private:
    std::unique_ptr<Content> content_;
};

// All of these throw Refused when the model cannot be compiled or a file cannot be read or written, with everything
// that is wrong in it (warnings stay in `diag`); Cancelled; CompilerBug for a bug of ours.
Artifact compile(const Source& source, const CompileOptions& options, Diagnostics& diag);
// The .cuvil file, whole or not at all.
void write(const Artifact& artifact, const std::filesystem::path& path, Diagnostics& diag);
std::string bytes(const Artifact& artifact);
// The module's manifest, JSON.
std::string manifest(const Artifact& artifact);

// What C functions' names begin with where nothing else is said, made from a file's name.
std::string library_name(const std::filesystem::path& path);
// Emit::Static: `path`, an archive, and beside it the header, which are both written or none. Emit::Object: `path`
// alone. Returns what it wrote.
std::vector<std::filesystem::path> write_library(const Source& source, Emit what, const std::filesystem::path& path,
                                                 const CompileOptions& options, Diagnostics& diag);

// A compilation that was cancelled leaves threads to end by themselves, in seconds. This waits for them: call it before
// exit(), or do without it by _Exit().
void finish_cancelled();

// One text of what comes before, or a header: file name suffix ("v3.ll") and text.
struct EmittedText {
    std::string suffix;
    std::string text;
};
std::vector<EmittedText> emit(const Source& source, Emit what, const CompileOptions& options, Diagnostics& diag);

// For `cuvil targets` and `cuvil ops`.
struct Target {
    std::string name, description;
    std::vector<std::string> levels;
};
const std::vector<Target>& targets();
struct ImportedOp {
    std::string name; // "Conv"
    int since, until; // versions of the definition's operator set that are covered; until 0: the newest
    // The core ops that it becomes: "matmul, softmax"; empty where it only passes values on.
    std::string builds;
    std::string domain; // empty: the default one
};
std::vector<ImportedOp> imported_ops(std::string_view format); // "onnx"
std::vector<std::string> pass_names();
// "f32", "bf16-weights", ... and what they stand for.
const std::vector<std::pair<std::string, Precision>>& precisions();
std::string_view name(Precision precision);
// Where the program and the Python package keep objects: $CUVIL_CACHE_DIR, which switches the cache off where it is
// empty, else $XDG_CACHE_HOME/cuvil, else ~/.cache/cuvil; empty where none of them is set.
std::filesystem::path default_cache_folder();

std::string_view version(); // "0.1.0"

} // namespace cuvil
