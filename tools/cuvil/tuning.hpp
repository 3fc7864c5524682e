// Tuning files: which of several kernels to take, by what they compute; see CompileOptions::kernels.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace cuvil::cli {

using Kernels = std::map<std::string, std::string>;

// Throws Refused where the file cannot be read, and InputError where it is no tuning file.
Kernels read_tuning(const std::filesystem::path& path);
// The file's text.
std::string tuning_text(const Kernels& kernels);

} // namespace cuvil::cli
