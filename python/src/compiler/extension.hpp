// The parts of cuvil._compiler.
#pragma once

#include <nanobind/nanobind.h>

namespace cuvil::python {

void bind_compile(nanobind::module_& m);
void bind_ir(nanobind::module_& m);
void bind_cxx_backend(nanobind::module_& m);

} // namespace cuvil::python
