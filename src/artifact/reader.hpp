// Opens `.cuvil` files for tools: `cuvil inspect`, `cuvil run`.
#pragma once

#include "cuvil/diagnostic.hpp"
#include "runtime/artifact_file.hpp"

#include <filesystem>
#include <memory>

namespace cuvil {

// Null, with one error diagnostic, when the file is not an undamaged artifact; throws Refused when it cannot be read.
std::unique_ptr<ArtifactFile> read_artifact(const std::filesystem::path& path, Diagnostics& diagnostics);

// Hashes the weights, which read_artifact does not. False, with one error diagnostic, when they are damaged.
bool check_weights(const ArtifactFile& file, Diagnostics& diagnostics);

} // namespace cuvil
