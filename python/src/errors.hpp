// Errors of the compiler and the loader as Python exceptions.
#pragma once

#include <cstdint>
#include <nanobind/nanobind.h>

namespace cuvil::python {

namespace nb = nanobind;

// From here on Refused, InternalError, Cancelled and std::system_error arrive in Python as cuvil.Unsupported,
// cuvil.InternalError, KeyboardInterrupt and the OSError of their number.
void translate_exceptions();

// Throws the exception for a CUVIL_ERROR_* with the loader's sentence; returns if `status` is CUVIL_OK.
void check(int32_t status);

[[noreturn]] void raise(PyObject* type, const char* format, ...);

} // namespace cuvil::python
