// Functions of Python that are bound by hand.
#pragma once

#include <exception>
#include <nanobind/nanobind.h>
#include <new>

namespace cuvil::python {

namespace nb = nanobind;

// The object that `body` gives, with a reference for the caller; null, with Python's exception set, where it throws.
template <class Body> PyObject* guarded(Body body) noexcept {
    try {
        return body().release().ptr();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

} // namespace cuvil::python
