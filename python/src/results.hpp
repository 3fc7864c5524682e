// The loader's outputs -> Python values.
#pragma once

#include "cuvil/cuvil.h"

#include <nanobind/nanobind.h>

#include <memory>

namespace cuvil::python {

namespace nb = nanobind;

// Once, before any result is taken.
void import_numpy();

// Takes the value's memory over: a NumPy array over it (strings: a NumPy array of str; a list: a Python list; none:
// None), which gives the memory back when nothing refers to it any more. `value` is CUVIL_NONE afterwards.
nb::object take_result(cuvil_value& value);

} // namespace cuvil::python
