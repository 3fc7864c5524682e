#include "extension.hpp"

#include "cuvil/compile.hpp"
#include "errors.hpp"
#include "results.hpp"

NB_MODULE(_cuvil, m) {
    m.doc() = "Cuvil's compiler and loader; use the package cuvil.";
    cuvil::python::import_numpy();
    cuvil::python::translate_exceptions();
    cuvil::python::bind_module(m);
    cuvil::python::bind_ir(m);
    cuvil::python::bind_compile(m);
    cuvil::python::bind_cxx_backend(m);
    m.attr("__version__") = std::string(cuvil::version()).c_str();
}
