// The loader's outputs -> Python values.
#pragma once

#include "ports.hpp"

#include <nanobind/nanobind.h>

#include <memory>

namespace cuvil::python {

namespace nb = nanobind;

// NumPy's number for the type; of bfloat16, which NumPy does not know, that of its bits.
int numpy_type(cuvil_dtype dtype);

// Where the output is known to be small, a new array for it, and the value to hand to the loader; else nothing. NumPy
// keeps small blocks at hand; what the loader allocates is aligned for large ones and takes several times as long.
nb::object small_array(const Spec& spec, cuvil_value& value);

// Takes the value's memory over: a NumPy array over it (strings: a NumPy array of str; a list: a Python list; none:
// None), which gives the memory back when nothing refers to it any more. `value` is CUVIL_NONE afterwards.
nb::object take_result(cuvil_value& value);

// An empty dict for the outputs by name; the only output of a module also answers to "output".
nb::object new_results(const Ports& outputs);
void set_item(nb::handle dict, nb::handle key, nb::handle value);

} // namespace cuvil::python
