// cuvil._runtime.Module.
#pragma once

#include <nanobind/nanobind.h>

namespace cuvil::python {

void bind_module(nanobind::module_& m);

} // namespace cuvil::python
