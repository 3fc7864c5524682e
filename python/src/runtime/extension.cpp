#include "module.hpp"
#include "numpy_api.hpp"

NB_MODULE(_runtime, m) {
    m.doc() = "Cuvil's loader; use the package cuvil.";
    cuvil::python::import_numpy();
    cuvil::python::bind_module(m);
    m.attr("__version__") = CUVIL_VERSION;
}
