#include "status.hpp"

#include "cuvil/cuvil.h"

#include <cstring>

namespace cuvil::python {
namespace {

PyObject* type_of(int32_t status) {
    switch (status) {
    case CUVIL_ERROR_NAME: return PyExc_KeyError;
    case CUVIL_ERROR_TYPE: return PyExc_TypeError;
    case CUVIL_ERROR_SHAPE: return PyExc_ValueError;
    case CUVIL_ERROR_MEMORY: return PyExc_MemoryError;
    default: return PyExc_RuntimeError;
    }
}

} // namespace

void check(int32_t status) {
    if (status == CUVIL_OK) return;
    const char* message = cuvil_error_message();
    const nb::object text =
        nb::steal(PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(strlen(message)), "replace"));
    if (status == CUVIL_ERROR_FILE) {
        const nb::object error = nb::module_::import_("cuvil.errors").attr("bad_module")(text);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    } else {
        PyErr_SetObject(type_of(status), text.ptr());
    }
    throw nb::python_error();
}

} // namespace cuvil::python
