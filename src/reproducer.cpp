#include "src/reproducer.hpp"

#include "eval/evaluate.hpp"
#include "import/importer.hpp"
#include "ir/printer.hpp"
#include "ops/op_table.hpp"
#include "optimize/pass.hpp"
#include "support/file.hpp"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <system_error>
#include <typeinfo>
#include <variant>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace cuvil {

StageWatch::StageWatch(const CompileOptions& options) : options_(options) {
    options_.progress = [this, tell = options.progress](const Progress& progress) {
        stage_ = progress.stage;
        if (tell) tell(progress);
    };
}

namespace {

// The state in which a step finds the program: the name of the pass before it, or nothing for what follows all passes.
std::optional<std::string> state_before(std::string_view step) {
    if (step == "optimize") return "FrontendParse";
    std::string before = "FrontendParse";
    for (const PassDef& pass : all_passes()) {
        if (pass.name == step) return before;
        before = pass.name;
    }
    return std::nullopt;
}

// Passes change a program in place, so it is made anew. Empty where that fails as well.
std::string program_before(std::string_view step, const Source& source, CompileOptions options) {
    if (step == "import") return "";
    options.progress = {};
    options.dump = {};
    options.pass_done = {};
    options.trace_inference = {};
    options.stop_after = state_before(step).value_or("");
    try {
        Diagnostics diag;
        Program program = import_model(source, options, builtin_op_table(), diag);
        run_passes(program, options, evaluate, diag);
        return print(program);
    } catch (const std::exception&) {
        return "";
    }
}

// The words of the exception that is being handled, if only a bug of ours throws it.
std::optional<std::string> words_of_bug() {
    try {
        throw;
    } catch (const std::logic_error& error) { // InternalError is one
        return error.what();
    } catch (const std::bad_optional_access& error) {
        return error.what();
    } catch (const std::bad_variant_access& error) {
        return error.what();
    } catch (const std::bad_cast& error) {
        return error.what();
    } catch (...) {
        return std::nullopt;
    }
}

std::string commented(const std::string& text) {
    std::string out = "# ";
    for (const char c : text) out += c == '\n' ? std::string("\n# ") : std::string(1, c);
    return out + "\n";
}

// A new file in the folder, open for writing; -1 where there can be none.
int new_file(const std::filesystem::path& folder, std::filesystem::path& path) {
    std::string name = folder / "cuvil-bug-XXXXXX.cuir";
    const int fd = mkostemps(name.data(), 5, O_CLOEXEC);
    path = name;
    return fd;
}

} // namespace

std::string arguments_of(const CompileOptions& options) {
    std::string text = "--target " + options.target;
    std::string levels;
    for (const std::string& level : options.levels) levels += (levels.empty() ? " --isa " : ",") + level;
    text += levels + " --opt-level " + options.opt_level;
    if (options.optimize_for == OptimizeFor::Size) text += " --optimize-for size";
    if (options.precision != Precision::F32) text += fmt::format(" --precision {}", name(options.precision));
    for (const std::string& pass : options.disabled_passes) text += " --disable-pass " + pass;
    return text;
}

void StageWatch::rethrow(const Source& source) const {
    std::string step = stage_;
    try {
        throw;
    } catch (const CompilerBug& bug) {
        if (!bug.program().empty()) throw;
        step = bug.step();
    } catch (...) {
        if (!words_of_bug()) throw;
    }
    throw CompilerBug(words_of_bug().value_or(""), step, program_before(step, source, options_),
                      arguments_of(options_));
}

std::filesystem::path write_reproducer(const CompilerBug& bug, const std::string& command) {
    if (bug.program().empty()) return {};
    std::filesystem::path path;
    std::error_code ignored;
    int fd = new_file(std::filesystem::current_path(ignored), path);
    if (fd < 0) fd = new_file(std::filesystem::temp_directory_path(ignored), path);
    if (fd < 0) return {};
    std::string text = commented(
        fmt::format("An internal error of cuvil {}, LLVM {}, in {}.", version(), CUVIL_LLVM_VERSION, bug.step()));
    text += commented("Command: " + command);
    text += commented("Error: " + std::string(bug.what()));
    text += commented(fmt::format("This is the program before that step, without the data of its weights. Again:\n"
                                  "  cuvil compile {} --fill-weights {}",
                                  path.filename().string(), bug.arguments()));
    try {
        write_all(fd, text + "\n" + bug.program());
    } catch (const std::system_error&) {
        unlink(path.c_str());
        path.clear();
    }
    close(fd);
    return path;
}

} // namespace cuvil
