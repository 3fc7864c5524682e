#include "codegen/cxx_module.hpp"

#include "codegen/lld.hpp"
#include "codegen/object_cache.hpp"
#include "support/elf.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <system_error>

namespace cuvil {

static std::string stem(const std::string& name) { return std::filesystem::path(name).stem(); }

// The linker keeps one copy of a template or inline function, whatever level it is of. Throws where two levels define
// the same name: older processors would meet instructions they lack, newer ones run the slow code.
class LevelCheck {
public:
    void add(const std::string& level, const std::string& object) {
        for (const std::string& name : defined_names(object)) {
            const auto known = level_of_.emplace(name, level).first;
            if (known->second != level)
                throw InternalError(
                    fmt::format("emitted C++: {} is defined by the levels {} and {}", name, known->second, level));
        }
    }

private:
    std::map<std::string, std::string> level_of_;
};

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
            jobs.push_back({stem(source.name) + "." + level + ".cpp", source.text, level, output, options.effort});

    const ObjectCache cache(output == Output::Object ? options.cache : std::filesystem::path());
    std::vector<std::pair<std::string, std::string>> emitted;
    std::vector<size_t> missing; // of the cache
    std::vector<SourceJob> missing_jobs;
    for (size_t i = 0; i < jobs.size(); ++i) {
        std::optional<std::string> object = cache.find(jobs[i], kernel_sources());
        if (!object) {
            missing.push_back(i);
            missing_jobs.push_back(jobs[i]);
        }
        emitted.emplace_back(stem(jobs[i].name) + extension(output), std::move(object).value_or(""));
    }

    const auto progress = [&](size_t done) {
        if (options.progress) options.progress(jobs.size() - missing.size() + done, jobs.size());
    };
    progress(0);
    std::vector<JobResult> results =
        compile_all(missing_jobs, kernel_sources(), options.threads, progress, options.stop);
    if (options.stop.stop_requested()) throw Cancelled();

    std::string errors;
    for (size_t i = 0; i < missing.size(); ++i) {
        if (results[i].ok)
            cache.add(missing_jobs[i], kernel_sources(), results[i].bytes);
        else
            errors += missing_jobs[i].name + " does not compile\n" + results[i].diagnostics;
        emitted[missing[i]].second = std::move(results[i].bytes);
    }
    if (!errors.empty()) throw InternalError("emitted C++: " + errors);
    return emitted;
}

std::vector<std::string> CXXModule::objects(const CXXCompileOptions& options) const {
    std::vector<std::string> objects;
    for (auto& [name, bytes] : emit(Output::Object, options)) objects.push_back(std::move(bytes));

    LevelCheck check;
    size_t next = 0;
    for (const CXXSource& source : sources)
        for (const std::string& level : source.levels) check.add(level, objects[next++]);
    return objects;
}

// What link(errors) gives, or a refusal where it has no temporary file.
template <class Link> static std::string linked(Link link, Diagnostics& diag) {
    std::string errors;
    std::string result;
    try {
        result = link(errors);
    } catch (const std::system_error& error) {
        diag.error("temporary-file", std::string("cannot write a temporary file: ") + error.what())
            .suggest("set TMPDIR to a folder that can be written");
        diag.stop_if_errors();
    }
    if (result.empty()) throw InternalError("the emitted code does not link\n" + errors);
    return result;
}

std::string CXXModule::compile(const CXXCompileOptions& options, Diagnostics& diag) const {
    const std::string exported[] = {"cuvil_program_1"};
    const std::vector<std::string> parts = objects(options);
    return linked([&](std::string& errors) { return link_shared(parts, exported, errors); }, diag);
}

std::string CXXModule::compile_relocatable(const CXXCompileOptions& options, const VisibleNames& names,
                                           Diagnostics& diag) const {
    const std::vector<std::string> parts = objects(options);
    return with_names(linked([&](std::string& errors) { return join_objects(parts, errors); }, diag), names);
}

} // namespace cuvil
