// The inputs or the outputs of a module, and dicts of Python values under their names.
#pragma once

#include "spec.hpp"

#include <vector>

namespace cuvil::python {

class Ports {
public:
    // what: "input" or "output". The only port of a module answers to that name, too.
    Ports(const char* manifest, const char* what);

    size_t size() const { return specs_.size(); }
    const Spec& operator[](size_t i) const { return specs_[i]; }
    const std::vector<Spec>& specs() const { return specs_; }
    const nb::object& alias() const { return alias_; }
    // Whether `name` means port i.
    bool is_name_of(size_t i, nb::handle name) const;

    // The value of port i in a dict; null if it has none. Throws what comparing names raises.
    PyObject* find(nb::handle dict, size_t i) const;
    // Throws KeyError where a dict has more entries than were found in it.
    void expect_all_found(nb::handle dict, Py_ssize_t found) const;

    // Throws KeyError for input i, which was not given.
    [[noreturn]] void missing(size_t i) const;

private:
    const char* what_;
    std::vector<Spec> specs_;
    nb::object alias_;
};

// The mapping as a dict.
nb::object as_dict(nb::handle mapping);

} // namespace cuvil::python
