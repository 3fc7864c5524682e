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
};

// From the manifest's "inputs" or "outputs".
std::vector<Spec> read_specs(const char* manifest, const char* key);

} // namespace cuvil::python
