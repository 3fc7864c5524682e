// What a module's manifest says about calling it.
#pragma once

#include "cuvil/cuvil.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::rt {

struct Axis {
    static constexpr int32_t fixed = -1;
    static constexpr int32_t known_after_run = -2;

    int32_t dim = fixed; // index into the dims table, or one of the above
    int64_t size = 0;    // of a fixed axis
    std::string text;    // "64", "N", "2*N+1"
};

struct ValueSpec {
    std::string name;
    int32_t tag = CUVIL_TENSOR; // CUVIL_TENSOR, CUVIL_STRINGS or CUVIL_LIST
    std::string dtype_name;     // "f32"
    cuvil_dtype dtype{};        // of tensors and of lists of tensors; bits 0: none
    bool any_rank = false;      // lists, and tensors whose rank is known only at run time
    std::vector<Axis> shape;
    bool optional = false;
};

struct CheckText {
    std::string message; // "index {0} is out of range for axis 0 of size {1}"
    std::string node;
};

struct Manifest {
    std::vector<std::string> dims;
    std::vector<ValueSpec> inputs;
    std::vector<ValueSpec> outputs;
    std::vector<CheckText> checks;
    uint64_t weights_bytes = 0;
};

struct ManifestError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Throws ManifestError, whose text is the rest of a sentence about the manifest: "has no \"inputs\"".
Manifest read_manifest(std::string_view json);

// "[N,64]"
std::string shape_text(const ValueSpec& spec);

// The sentence of a failure: the check's message with {0} to {5} replaced by its values, and the node's name.
std::string failure_text(const Manifest& manifest, const cuvil_failure& failure);

// "f32" for {2, 32, 1}; "dtype code 9 with 3 bits" for what Cuvil has no name for.
std::string dtype_text(cuvil_dtype dtype);

} // namespace cuvil::rt
