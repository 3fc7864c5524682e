// What a file holds, as text and as JSON.
#pragma once

#include "cuvil/diagnostic.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace cuvil::cli {

struct Description {
    nlohmann::ordered_json json;
    std::string text;
    Diagnostics diagnostics; // errors: a model that cannot be compiled, a damaged module
};

// True for ELF files and by the suffix .cuvil: a damaged module is a module.
bool holds_module(const std::filesystem::path& path);

// Both throw Refused where nothing can be said about the file.
Description describe_module(const std::filesystem::path& path, bool check_weights);
Description describe_model(const std::filesystem::path& path);

} // namespace cuvil::cli
