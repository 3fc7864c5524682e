// Python exceptions from C++.
#pragma once

#include <cstdarg>
#include <nanobind/nanobind.h>

namespace cuvil::python {

namespace nb = nanobind;

// Throws an exception of Python; the format is PyErr_Format's.
[[noreturn]] inline void raise(PyObject* type, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyErr_FormatV(type, format, arguments);
    va_end(arguments);
    throw nb::python_error();
}

} // namespace cuvil::python
