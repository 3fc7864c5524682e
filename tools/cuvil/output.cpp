#include "output.hpp"

#include "console.hpp"
#include "support/file.hpp"

#include <fmt/format.h>

#include <system_error>

namespace cuvil::cli {

namespace fs = std::filesystem;

void expect_output(const fs::path& path, const fs::path& model) {
    std::error_code ignored;
    if (fs::equivalent(path, model, ignored))
        throw UsageError(fmt::format("{} is the model itself: name another file", path.string()));
    const fs::file_status status = fs::status(path, ignored);
    if (fs::exists(status) && !fs::is_regular_file(status))
        throw InputError(fmt::format("cannot write {}: not a regular file", path.string()));
}

void write_output(const fs::path& path, std::string_view bytes) {
    try {
        write_atomically(path, [&](int fd) { write_all(fd, bytes); });
    } catch (const std::system_error& error) {
        throw InputError(fmt::format("cannot write {}: {}", path.string(), error.code().message()));
    }
}

} // namespace cuvil::cli
