#include "output.hpp"

#include "console.hpp"
#include "support/diagnostics.hpp"
#include "support/file.hpp"

#include <fmt/format.h>

#include <system_error>

namespace cuvil::cli {

namespace fs = std::filesystem;

static void refuse(const fs::path& path, std::string_view why) {
    Diagnostics diag;
    diag.error("cannot-write", fmt::format("cannot write {}: {}", cuvil::quoted(path.string()), why));
    throw Refused(diag);
}

void expect_output(const fs::path& path, const fs::path& model) {
    std::error_code ignored;
    if (fs::equivalent(path, model, ignored))
        throw UsageError(fmt::format("{} is the model itself: name another file", path.string()));
    const fs::file_status status = fs::status(path, ignored);
    if (fs::exists(status) && !fs::is_regular_file(status)) refuse(path, "not a regular file");
}

void write_output(const fs::path& path, std::string_view bytes) {
    try {
        write_atomically(path, [&](int fd) { write_all(fd, bytes); });
    } catch (const std::system_error& error) {
        refuse(path, error.code().message());
    }
}

} // namespace cuvil::cli
