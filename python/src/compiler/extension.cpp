#include "extension.hpp"

#include "cuvil/compile.hpp"
#include "errors.hpp"

NB_MODULE(_compiler, m) {
    m.doc() = "Cuvil's compiler; use the package cuvil.";
    Py_AtExit(cuvil::finish_cancelled);
    cuvil::python::translate_exceptions();
    cuvil::python::bind_ir(m);
    cuvil::python::bind_compile(m);
    cuvil::python::bind_cxx_backend(m);
}
