// NumPy's .npz files: a zip archive with a .npy file for each array, as it is or deflated.
#pragma once

#include "npy.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cuvil::cli {

// The names of the arrays. Throws NpyError, and std::system_error where the file cannot be read; so does read_npz.
std::vector<std::string> npz_names(const std::filesystem::path& path);
Array read_npz(const std::filesystem::path& path, const std::string& name);
// The same from memory; `place` is for messages.
std::vector<std::string> parse_npz_names(std::string_view file, const std::string& place);
Array parse_npz(std::string_view file, const std::string& place, const std::string& name);

// Writes arrays by name, not deflated; whole or not at all. Throws NpyError for what no .npz file holds: a list, more
// than 4 GB; std::system_error.
void write_npz(const std::filesystem::path& path, const std::vector<std::pair<std::string, cuvil_value>>& arrays);

} // namespace cuvil::cli
