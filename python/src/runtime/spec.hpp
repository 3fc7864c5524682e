// Inputs and outputs of a module as its manifest declares them.
#pragma once

#include "cuvil/cuvil.h"

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace cuvil::python {

namespace nb = nanobind;

struct Spec {
    nb::object name; // interned
    int32_t tag = CUVIL_TENSOR;
    std::string dtype_name; // "f32"; of a list: of its items
    cuvil_dtype dtype{};
    bool optional = false;
    // The shape of a tensor whose sizes are all fixed.
    bool has_fixed_shape = false;
    std::vector<int64_t> shape{};
};

// From the manifest's "inputs" or "outputs".
std::vector<Spec> read_specs(const char* manifest, const char* key);

// "'x', 'y'", for messages.
std::string list_of(const std::vector<Spec>& specs);
// Throws KeyError: "no input 'z'; the inputs are 'x', 'y'".
[[noreturn]] void no_such(const char* what, nb::handle name, const std::vector<Spec>& specs);

} // namespace cuvil::python
