// Attributes and constants between Python and the IR.
#pragma once

#include "ir/attribute.hpp"
#include "ir/op_def.hpp"

#include <nanobind/nanobind.h>

#include <string>

namespace cuvil::python {

namespace nb = nanobind;

// "f32[N,4]" -> Type; throws ValueError.
Type type_from(const std::string& text);
// An int or the text of a size: 4, "N", "2*N + 1"; throws TypeError or ValueError.
Dim dim_from(nb::handle value);
// A name ("f32") or what NumPy takes for a dtype ("float32", np.float32); throws TypeError.
DType dtype_from(nb::handle value);

// The Python value as an attribute of the declared kind; throws TypeError or ValueError, in the words of `def`.
Attribute attribute_from(nb::handle value, const AttributeDef& def);
// int, float, bool, str, list of them; sizes as int or str; dtypes as "f32"; constants as bytes.
nb::object attribute_to(const Attribute& attribute);

// Type and row-major bytes of an array, anything that np.asarray takes.
struct Constant {
    Type type;
    std::string bytes;
};
Constant constant_from(nb::handle array);

} // namespace cuvil::python
