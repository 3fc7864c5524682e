// What narrower weights cost: how far the outputs of a module are from those of the same model in f32.
#pragma once

#include "console.hpp"
#include "cuvil/compile.hpp"
#include "sizes.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace cuvil::cli {

struct PrecisionError {
    std::string output, type;
    std::string mismatch;                // of shapes that depend on data, as a sentence; all else is then 0
    double absolute = 0, of_largest = 0; // the largest difference, and as a part of the largest f32
};

// Compiles the model in f32 and runs both for the same inputs, which are given as for take_feeds, or random. `path`:
// the module that `options` made. Throws UsageError and InputError where there is no run.
std::vector<PrecisionError> precision_errors(const std::string& model, const std::string& path,
                                             const CompileOptions& options, const std::vector<std::string>& inputs,
                                             const Sizes& sizes);
std::string text_of(const std::vector<PrecisionError>& errors);
nlohmann::ordered_json json_of(const std::vector<PrecisionError>& errors);

} // namespace cuvil::cli
