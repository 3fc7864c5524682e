#include "codegen/cxx_module.hpp"

#include "codegen/lld.hpp"

#include <filesystem>
#include <system_error>

namespace cuvil {

static std::string stem(const std::string& name) { return std::filesystem::path(name).stem(); }

static const char* extension(Output output) {
    switch (output) {
    case Output::Llvm: return ".ll";
    case Output::Assembly: return ".s";
    case Output::Object: break;
    }
    return ".o";
}

std::string CXXModule::source_text() const {
    std::string text;
    for (const CXXSource& source : sources) {
        if (!text.empty()) text += '\n';
        text += "// ==== " + source.name + " (";
        for (const std::string& level : source.levels) text += (&level == &source.levels[0] ? "" : ", ") + level;
        text += ")\n" + source.text;
    }
    return text;
}

std::vector<std::pair<std::string, std::string>> CXXModule::emit(Output output,
                                                                 const CXXCompileOptions& options) const {
    std::vector<SourceJob> jobs;
    for (const CXXSource& source : sources)
        for (const std::string& level : source.levels)
            jobs.push_back({stem(source.name) + "." + level + ".cpp", source.text, level, output});

    std::function<void(size_t)> progress;
    if (options.progress) progress = [&](size_t done) { options.progress(done, jobs.size()); };
    std::vector<JobResult> results = compile_all(jobs, kernel_sources(), options.threads, progress, options.stop);
    if (options.stop.stop_requested()) throw Cancelled();

    std::string errors;
    std::vector<std::pair<std::string, std::string>> emitted;
    for (size_t i = 0; i < jobs.size(); ++i) {
        if (!results[i].ok) errors += jobs[i].name + " does not compile\n" + results[i].diagnostics;
        emitted.emplace_back(stem(jobs[i].name) + extension(output), std::move(results[i].bytes));
    }
    if (!errors.empty()) throw InternalError("emitted C++: " + errors);
    return emitted;
}

std::string CXXModule::compile(const CXXCompileOptions& options, Diagnostics& diag) const {
    std::vector<std::string> objects;
    for (auto& [name, bytes] : emit(Output::Object, options)) objects.push_back(std::move(bytes));

    const std::string exported[] = {"cuvil_program_1"};
    std::string errors;
    std::string linked;
    try {
        linked = link_shared(objects, exported, errors);
    } catch (const std::system_error& error) {
        diag.error("temporary-file", std::string("cannot write a temporary file: ") + error.what())
            .suggest("set TMPDIR to a folder that can be written");
        diag.stop_if_errors();
    }
    if (linked.empty()) throw InternalError("the emitted code does not link\n" + errors);
    return linked;
}

} // namespace cuvil
