// CXXModule: one program as emitted C++, and the way from there to native code.
#pragma once

#include "codegen/clang.hpp"
#include "codegen/objcopy.hpp"
#include "cuvil/diagnostic.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace cuvil {

// One file of emitted C++. It may include "cuvil/cuvil.h" and "kernels/*.hpp", and is compiled once for each level it
// names, with CUVIL_ISA set to it. All it defines with external linkage stands in a namespace named CUVIL_ISA: a name
// that two levels define is a bug that compile() finds.
struct CXXSource {
    std::string name; // "main.cpp"
    std::string text;
    std::vector<std::string> levels; // "v2", "v3", "v4"; code common to all levels names "v2" alone
};

struct CXXCompileOptions {
    int effort = 1;       // as in SourceJob
    unsigned threads = 0; // 0: as many as the machine runs at once; never decides what comes out
    std::function<void(size_t done, size_t total)> progress = {};
    std::stop_token stop = {};
    std::filesystem::path cache = {}; // a folder for ObjectCache; empty: every source is compiled
};

class CXXModule {
public:
    std::vector<CXXSource> sources;

    // All sources one after the other, each under a line with its name and levels.
    std::string source_text() const;

    // The linked shared object: needs no other library and exports `cuvil_program_1` alone, which a source defines as
    // `extern "C" [[gnu::visibility("default")]] const cuvil_program cuvil_program_1`. Refuses where no temporary file
    // can be written. Throws InternalError, with the tool's words, when Clang or LLD does, and Cancelled.
    std::string compile(const CXXCompileOptions& options, Diagnostics& diag) const;

    // One relocatable object that shows these names to others. Refuses and throws as compile does.
    std::string compile_relocatable(const CXXCompileOptions& options, const VisibleNames& names,
                                    Diagnostics& diag) const;

    // (name, text or bytes) of each source on each of its levels: {"main.v3.s", ...}. Throws as compile does.
    std::vector<std::pair<std::string, std::string>> emit(Output output, const CXXCompileOptions& options) const;

private:
    std::vector<std::string> objects(const CXXCompileOptions& options) const;
};

} // namespace cuvil
