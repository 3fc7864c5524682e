#include "codegen/cxx_module.hpp"

#include "codegen/lld.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>

#include <elf.h>

namespace cuvil {

static std::string stem(const std::string& name) { return std::filesystem::path(name).stem(); }

// The names that an ELF object, as Clang writes it, defines for other objects.
static std::vector<std::string> defined_names(const std::string& object) {
    const auto at = [&]<class T>(uint64_t offset, T value) {
        std::memcpy(&value, object.data() + offset, sizeof(T));
        return value;
    };
    const auto header = at(0, Elf64_Ehdr());
    const auto section = [&](size_t i) { return at(header.e_shoff + i * sizeof(Elf64_Shdr), Elf64_Shdr()); };
    std::vector<std::string> names;
    for (size_t i = 0; i < header.e_shnum; ++i) {
        const Elf64_Shdr table = section(i);
        if (table.sh_type != SHT_SYMTAB) continue;
        const char* const strings = object.data() + section(table.sh_link).sh_offset;
        for (uint64_t offset = 0; offset < table.sh_size; offset += sizeof(Elf64_Sym)) {
            const auto symbol = at(table.sh_offset + offset, Elf64_Sym());
            if (ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && symbol.st_shndx != SHN_UNDEF)
                names.push_back(strings + symbol.st_name);
        }
    }
    return names;
}

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

    LevelCheck check;
    size_t next = 0;
    for (const CXXSource& source : sources)
        for (const std::string& level : source.levels) check.add(level, objects[next++]);

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
