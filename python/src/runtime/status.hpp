// Failures of the loader as Python exceptions.
#pragma once

#include "raise.hpp"

#include <cstdint>

namespace cuvil::python {

// Throws the exception for a CUVIL_ERROR_* with the loader's sentence; returns if `status` is CUVIL_OK.
void check(int32_t status);

} // namespace cuvil::python
