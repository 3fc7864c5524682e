// Files that the program writes for its user.
#pragma once

#include <filesystem>
#include <string_view>

namespace cuvil::cli {

// What writing would say, before the work is done. Throws UsageError where the file is the model itself, Refused
// where it is a directory or a device.
void expect_output(const std::filesystem::path& path, const std::filesystem::path& model);

// The whole file or nothing; throws Refused.
void write_output(const std::filesystem::path& path, std::string_view bytes);

} // namespace cuvil::cli
