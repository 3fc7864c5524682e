// What a manifest says of steps and memory, as text and as JSON.
#pragma once

#include "cuvil/diagnostic.hpp"
#include "sizes.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace cuvil {
class Program;
}

namespace cuvil::cli {

// The manifest that the module of a model would have, without making its code. `program`: as imported from the model.
// Throws Refused with all of `diag`, as compiling would.
nlohmann::ordered_json planned_manifest(Program program, const std::filesystem::path& model, Diagnostics& diag);

// How often each op of the IR stands in the steps, most frequent first.
std::string ops_text(const nlohmann::ordered_json& manifest);
// A line for each step: number, kernel, ops, the type of what it writes with its layout, and its name in the model.
// With `estimates`, what estimates_json gave, its time and share of the peak, too.
std::string kernels_text(const nlohmann::ordered_json& manifest,
                         const nlohmann::ordered_json& estimates = nlohmann::ordered_json::array());
// For each step number, seconds, the time that the planner expects on one core, and share_of_peak, the part of it in
// which the core multiplies as fast as it can; null where a size is not given. Throws UsageError for a size that is not
// open.
nlohmann::ordered_json estimates_json(const nlohmann::ordered_json& manifest, const Sizes& sizes);

// Bytes of weights, workspace, inputs and outputs, and their sum, "peak"; null where a size is not given. Throws
// UsageError for a size that is not open.
nlohmann::ordered_json memory_json(const nlohmann::ordered_json& manifest, const Sizes& sizes);
std::string memory_text(const nlohmann::ordered_json& memory);

// The steps of the main function as an ONNX model, for viewers such as Netron: operators are the kernels.
std::string graph_onnx(const nlohmann::ordered_json& manifest);

} // namespace cuvil::cli
