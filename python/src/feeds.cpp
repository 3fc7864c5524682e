#include "feeds.hpp"

#include "errors.hpp"

#include <nanobind/stl/pair.h>

namespace cuvil::python {
namespace {

// True where the struct-style format of a buffer is `dtype` in the machine's byte order.
bool fits(const char* format, Py_ssize_t item_size, const cuvil_dtype& dtype) {
    if (item_size * 8 != dtype.bits) return false;
    if (!format) return dtype.code == 1 && dtype.bits == 8;
    if (*format == '<' || *format == '=' || *format == '@') format++;
    switch (dtype.code) {
    case 0: // sizes differ between systems ('l', 'q'), and the size has been compared
        return strchr("bhilqn", *format) && format[1] == '\0';
    case 1: return strchr("BHILQN", *format) && format[1] == '\0';
    case 2: return strchr("efd", *format) && format[1] == '\0';
    case 4: return *format == 'H' && format[1] == '\0'; // the bits of bfloat16, see take()
    case 5: return format[0] == 'Z' && strchr("fd", format[1]) && format[2] == '\0';
    case 6: return *format == '?' && format[1] == '\0';
    default: return false;
    }
}

nb::object converted(const char* function, PyObject* value, const Spec& spec) {
    return nb::module_::import_("cuvil._feeds").attr(function)(nb::borrow(value), spec.name, spec.dtype_name.c_str());
}

} // namespace

Feed::~Feed() {
    if (holds_buffer_) PyBuffer_Release(&buffer_);
}

bool Feed::take_buffer(PyObject* value, const cuvil_dtype& dtype, cuvil_value& out) {
    if (!PyObject_CheckBuffer(value)) return false;
    if (PyObject_GetBuffer(value, &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return false;
    }
    const auto refuse = [&] {
        PyBuffer_Release(&buffer_);
        return false;
    };
    const int ndim = buffer_.ndim;
    if (!fits(buffer_.format, buffer_.itemsize, dtype) || ndim > most_axes) return refuse();
    for (int i = 0; i < ndim; i++) {
        // A field of a record may lie at steps that are no multiple of its size; cuvil counts in elements.
        if (buffer_.strides[i] % buffer_.itemsize != 0) return refuse();
        shape_[static_cast<size_t>(i)] = buffer_.shape[i];
        strides_[static_cast<size_t>(i)] = buffer_.strides[i] / buffer_.itemsize;
    }
    holds_buffer_ = true;
    out.tag = CUVIL_TENSOR;
    out.as.tensor = {buffer_.buf, 1, 0, ndim, dtype, shape_.data(), strides_.data(), 0};
    return true;
}

void Feed::take(PyObject* value, const Spec& spec, cuvil_value& out) {
    if (spec.tag == CUVIL_STRINGS) return take_strings(value, spec, out);
    if (spec.tag == CUVIL_LIST) return take_list(value, spec, out);
    // No object tells "bfloat16" by its buffer; as_array looks at the dtype and gives the bits.
    if (spec.dtype.code != 4 && take_buffer(value, spec.dtype, out)) return;
    const nb::object array = converted("as_array", value, spec);
    if (!take_buffer(array.ptr(), spec.dtype, out))
        raise(PyExc_TypeError, "input %R cannot be read as %s", spec.name.ptr(), spec.dtype_name.c_str());
}

void Feed::take_strings(PyObject* value, const Spec& spec, cuvil_value& out) {
    const auto [texts, shape] = nb::cast<std::pair<nb::list, nb::tuple>>(converted("as_strings", value, spec));
    strings_ = std::make_unique<Strings>();
    strings_->offsets.push_back(0);
    for (const nb::handle text : texts) {
        char* bytes = nullptr;
        Py_ssize_t size = 0;
        if (PyBytes_AsStringAndSize(text.ptr(), &bytes, &size) != 0) throw nb::python_error();
        strings_->bytes.append(bytes, static_cast<size_t>(size));
        strings_->offsets.push_back(static_cast<int64_t>(strings_->bytes.size()));
    }
    const size_t ndim = shape.size();
    for (size_t i = 0; i < ndim; i++) shape_[i] = nb::cast<int64_t>(shape[i]);
    out.tag = CUVIL_STRINGS;
    out.as.strings = {strings_->offsets.data(), strings_->bytes.data(), static_cast<int32_t>(ndim), shape_.data()};
}

void Feed::take_list(PyObject* value, const Spec& spec, cuvil_value& out) {
    if (!PyList_Check(value) && !PyTuple_Check(value))
        raise(PyExc_TypeError, "input %R is a list; got %s", spec.name.ptr(), Py_TYPE(value)->tp_name);
    const nb::object sequence = nb::steal(PySequence_Fast(value, "a list"));
    const size_t count = static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence.ptr()));
    items_ = std::make_unique<Items>(std::make_unique<Feed[]>(count), std::vector<cuvil_value>(count));
    Spec item = spec;
    item.tag = spec.dtype.bits ? CUVIL_TENSOR : CUVIL_STRINGS;
    for (size_t i = 0; i < count; i++)
        items_->feeds[i].take(PySequence_Fast_GET_ITEM(sequence.ptr(), static_cast<Py_ssize_t>(i)), item,
                              items_->values[i]);
    out.tag = CUVIL_LIST;
    out.as.list = {static_cast<int64_t>(count), items_->values.data()};
}

} // namespace cuvil::python
