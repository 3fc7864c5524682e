// The manifest: what a module says about itself, JSON format 1. runtime/manifest.hpp reads it.
#pragma once

#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace cuvil {

struct ManifestFacts {
    std::string version; // of Cuvil
    std::string target;
    std::vector<std::string> levels;
    std::string precision; // of the weights: "f32", "bf16-weights", ...
};

std::string manifest_of(const Program& program, const Plan& plan, const ManifestFacts& facts);

} // namespace cuvil
