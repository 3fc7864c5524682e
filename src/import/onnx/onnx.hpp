// ONNX models -> IR.
#pragma once

#include "cuvil/compile.hpp"
#include "ir/program.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

// The model in `bytes`, which `storage` keeps alive and the program's weights refer to; `file` names it in messages,
// `folder` is where its external data is. Reports what is wrong in `diag` and throws Refused.
Program import_onnx(std::string_view bytes, const std::shared_ptr<const void>& storage, const std::string& file,
                    const std::optional<std::filesystem::path>& folder, const CompileOptions& options,
                    const OpTable& ops, Diagnostics& diag);

namespace onnx {
struct ModelProto;
// Format, versions and producer, as the program's metadata.
std::map<std::string, std::string> metadata_of(const ModelProto& model);
} // namespace onnx

// The operators that can be imported, by name and version.
std::vector<ImportedOp> onnx_rows();

} // namespace cuvil
