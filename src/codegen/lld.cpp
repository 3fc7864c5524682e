#include "codegen/lld.hpp"

#include "codegen/clang.hpp"
#include "support/file.hpp"

#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace cuvil {

static std::system_error last_error(const std::string& what) {
    return std::system_error(errno, std::generic_category(), what);
}

// A file that lives in memory and that LLD opens by path.
class MemoryFile {
public:
    explicit MemoryFile(std::string_view bytes) : fd_(memfd_create("cuvil", MFD_CLOEXEC)) {
        if (fd_ < 0) throw last_error("memfd_create");
        try {
            write_all(fd_, bytes);
        } catch (...) {
            close(fd_);
            throw;
        }
    }
    MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    ~MemoryFile() {
        if (fd_ >= 0) close(fd_);
    }

    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = std::filesystem::temp_directory_path() / "cuvil-XXXXXX";
        if (!mkdtemp(name.data())) throw last_error(name);
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

static std::string version_script(std::span<const std::string> exported_symbols) {
    std::string script = "{ global:";
    for (const std::string& symbol : exported_symbols) script += " \"" + symbol + "\";";
    return script + " local: *; };";
}

// LLD signs its output with a version that differs between distributions; INSERT keeps its default layout otherwise.
static constexpr std::string_view unsigned_output = "SECTIONS { /DISCARD/ : { *(.comment) } } INSERT AFTER .text;";

// Runs LLD on objects in memory; returns what it wrote, or an empty string with its text in `diagnostics`.
static std::string link(std::span<const std::string> objects, std::vector<std::string> arguments,
                        std::string& diagnostics) {
    const TemporaryFolder folder;
    const std::filesystem::path output = folder.path() / "linked";
    std::vector<MemoryFile> inputs;
    for (const std::string& object : objects) inputs.emplace_back(object);
    arguments.insert(arguments.begin(), {"ld.lld", "-melf_x86_64", "--threads=1", "--color-diagnostics=never"});
    arguments.push_back("--output=" + output.string());
    for (const MemoryFile& input : inputs) arguments.push_back(input.path());
    std::vector<const char*> words;
    words.reserve(arguments.size());
    for (const std::string& argument : arguments) words.push_back(argument.c_str());

    throw_fatal_errors();
    // LLD keeps its state in globals: two links at once crash, and after some failures it can never run again.
    static std::mutex mutex;
    static bool usable = true;
    {
        const std::lock_guard lock(mutex);
        if (!usable) {
            diagnostics += "error: an earlier failure has left the linker unusable in this process\n";
            return {};
        }
        usable = false; // should LLVM give up
        llvm::raw_string_ostream text(diagnostics);
        const lld::Result result = lld::lldMain(words, text, text, {{lld::Gnu, &lld::elf::link}});
        usable = result.canRunAgain;
        if (result.retCode != 0) return {};
    }
    const MappedFile linked(output);
    return std::string(linked.text());
}

std::string link_shared(std::span<const std::string> objects, std::span<const std::string> exported_symbols,
                        std::string& diagnostics) {
    const MemoryFile versions(version_script(exported_symbols));
    const MemoryFile script(unsigned_output);
    return link(objects,
                {
                    "-shared",
                    "-zseparate-code",
                    "--no-undefined",
                    "--gc-sections",
                    "-Bsymbolic",
                    "--hash-style=gnu",
                    "--build-id=fast",
                    "--version-script=" + versions.path(),
                    "--script=" + script.path(),
                },
                diagnostics);
}

std::string join_objects(std::span<const std::string> objects, std::string& diagnostics) {
    return link(objects, {"-r"}, diagnostics);
}

} // namespace cuvil
