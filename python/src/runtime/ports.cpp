#include "ports.hpp"

#include "raise.hpp"

#include <string>

namespace cuvil::python {
namespace {

PyObject* get(nb::handle dict, nb::handle key) {
    PyObject* value = PyDict_GetItemWithError(dict.ptr(), key.ptr());
    if (!value && PyErr_Occurred()) throw nb::python_error();
    return value;
}

} // namespace

Ports::Ports(const char* manifest, const char* what)
    : what_(what), specs_(read_specs(manifest, (std::string(what) + "s").c_str())),
      alias_(nb::steal(PyUnicode_InternFromString(what))) {}

bool Ports::is_name_of(size_t i, nb::handle name) const {
    return specs_[i].name.equal(name) || (specs_.size() == 1 && alias_.equal(name));
}

PyObject* Ports::find(nb::handle dict, size_t i) const {
    PyObject* value = get(dict, specs_[i].name);
    return value || specs_.size() != 1 ? value : get(dict, alias_);
}

void Ports::expect_all_found(nb::handle dict, Py_ssize_t found) const {
    if (found == PyDict_GET_SIZE(dict.ptr())) return;
    for (const auto [key, value] : nb::borrow<nb::dict>(dict)) {
        bool is_known = false;
        for (size_t i = 0; i < specs_.size() && !is_known; i++) is_known = is_name_of(i, key);
        if (!is_known) no_such(what_, key, specs_);
    }
    raise(PyExc_KeyError, "%s %R is given twice", what_, specs_[0].name.ptr());
}

void Ports::missing(size_t i) const {
    raise(PyExc_KeyError, "%s %R is missing; the %ss are %s", what_, specs_[i].name.ptr(), what_,
          list_of(specs_).c_str());
}

nb::object as_dict(nb::handle mapping) {
    if (PyDict_Check(mapping.ptr())) return nb::borrow(mapping);
    return nb::borrow(reinterpret_cast<PyObject*>(&PyDict_Type))(mapping);
}

} // namespace cuvil::python
