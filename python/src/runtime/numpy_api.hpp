// NumPy's C interface, one table for the extension; results.cpp fills it.
#pragma once

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL cuvil_numpy_api
#ifndef CUVIL_FILLS_NUMPY_API
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

namespace cuvil::python {

// Once, before any array is looked at or made.
void import_numpy();

} // namespace cuvil::python
