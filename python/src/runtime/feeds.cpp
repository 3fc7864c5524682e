#include "feeds.hpp"

#include "numpy_api.hpp"
#include "raise.hpp"
#include "results.hpp"

#include <nanobind/stl/pair.h>

namespace cuvil::python {
namespace {

constexpr uint8_t bfloat = 4;

// True where the struct-style format of a buffer is `dtype` in the machine's byte order.
bool fits(const char* format, Py_ssize_t item_size, const cuvil_dtype& dtype) {
    if (item_size * 8 != dtype.bits) return false;
    if (!format) return dtype.code == 1 && dtype.bits == 8;
    if (*format == '<' || *format == '=' || *format == '@') format++;
    if (*format == '\0') return false;
    switch (dtype.code) {
    case 0: // sizes differ between systems ('l', 'q'), and the size has been compared
        return strchr("bhilqn", *format) && format[1] == '\0';
    case 1: return strchr("BHILQN", *format) && format[1] == '\0';
    case 2: return strchr("efd", *format) && format[1] == '\0';
    case 5: return format[0] == 'Z' && strchr("fd", format[1]) && format[2] == '\0';
    case 6: return *format == '?' && format[1] == '\0';
    default: return false;
    }
}

// What `function` of cuvil._feeds makes of the value of a port.
nb::object converted(const char* function, PyObject* value, const Spec& spec) {
    return nb::module_::import_("cuvil._feeds").attr(function)(nb::borrow(value), spec.name, spec.dtype_name.c_str());
}

// DLPack's DLManagedTensor, of which only the tensor is looked at: the capsule that holds it gives the memory back.
struct ManagedTensor {
    cuvil_tensor tensor;
    void* context;
    void (*release)(ManagedTensor*);
};

// The capsule that an object exports, or nothing where it exports none.
nb::object dlpack_capsule(nb::handle value) {
    const nb::object method = nb::steal(PyObject_GetAttrString(value.ptr(), "__dlpack__"));
    const nb::object capsule = method.is_valid() ? nb::steal(PyObject_CallNoArgs(method.ptr())) : nb::object();
    if (!capsule.is_valid()) PyErr_Clear();
    return capsule;
}

} // namespace

Feed::~Feed() {
    if (holds_buffer_) PyBuffer_Release(&buffer_);
}

bool Feed::take_array(PyObject* value, const cuvil_dtype& dtype, bool is_written, cuvil_value& out) {
    auto* array = reinterpret_cast<PyArrayObject*>(value);
    const int type = numpy_type(dtype);
    if (PyArray_TYPE(array) != type && !PyArray_EquivTypenums(PyArray_TYPE(array), type)) return false;
    if (!PyArray_ISNOTSWAPPED(array)) return false;
    if (is_written && !PyArray_ISWRITEABLE(array)) return false;
    const int ndim = PyArray_NDIM(array);
    const int64_t* strides = nullptr;
    if (!PyArray_IS_C_CONTIGUOUS(array)) {
        const npy_intp item = PyArray_ITEMSIZE(array);
        for (int i = 0; i < ndim; i++) {
            // A field of a record may lie at steps that are no multiple of its size; cuvil counts in elements.
            if (PyArray_STRIDE(array, i) % item != 0) return false;
            strides_[static_cast<size_t>(i)] = PyArray_STRIDE(array, i) / item;
        }
        strides = strides_.data();
    }
    owner_ = nb::borrow(value); // with the reference NumPy refuses to resize it
    out.tag = CUVIL_TENSOR;
    out.as.tensor = {PyArray_DATA(array), 1, 0, ndim, dtype, PyArray_DIMS(array), const_cast<int64_t*>(strides), 0};
    return true;
}

bool Feed::take_buffer(PyObject* value, const cuvil_dtype& dtype, bool is_written, cuvil_value& out) {
    const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(value, &buffer_, flags) != 0) {
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
        if (buffer_.strides[i] % buffer_.itemsize != 0) return refuse();
        shape_[static_cast<size_t>(i)] = buffer_.shape[i];
        strides_[static_cast<size_t>(i)] = buffer_.strides[i] / buffer_.itemsize;
    }
    holds_buffer_ = true;
    out.tag = CUVIL_TENSOR;
    out.as.tensor = {buffer_.buf, 1, 0, ndim, dtype, shape_.data(), strides_.data(), 0};
    return true;
}

bool Feed::take_dlpack(PyObject* value, const cuvil_dtype& dtype, cuvil_value& out) {
    nb::object capsule = dlpack_capsule(value);
    // PyTorch exports nothing that needs gradients.
    if (!capsule.is_valid() && PyObject_HasAttrString(value, "detach"))
        capsule = dlpack_capsule(nb::handle(value).attr("detach")());
    if (!capsule.is_valid() || !PyCapsule_IsValid(capsule.ptr(), "dltensor")) return false;
    const auto* managed = static_cast<const ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    const cuvil_tensor& tensor = managed->tensor;
    const bool is_fit = tensor.device_type == 1 && tensor.dtype.code == dtype.code && tensor.dtype.bits == dtype.bits &&
                        tensor.dtype.lanes == 1 && tensor.ndim <= most_axes;
    if (!is_fit) return false;
    owner_ = std::move(capsule);
    out.tag = CUVIL_TENSOR;
    out.as.tensor = tensor;
    return true;
}

bool Feed::take_view(PyObject* value, const cuvil_dtype& dtype, bool is_written, cuvil_value& out) {
    // An array of 16 bits does not tell what they mean: bfloat16 goes by way of its dtype's name.
    if (PyArray_Check(value)) return dtype.code != bfloat && take_array(value, dtype, is_written, out);
    if (PyObject_CheckBuffer(value)) return take_buffer(value, dtype, is_written, out);
    return take_dlpack(value, dtype, out);
}

void Feed::take(PyObject* value, const Spec& spec, cuvil_value& out) {
    if (spec.tag == CUVIL_STRINGS) return take_strings(value, spec, out);
    if (spec.tag == CUVIL_LIST) return take_list(value, spec, out);
    if (take_view(value, spec.dtype, false, out)) return;
    const nb::object array = converted("as_array", value, spec);
    if (!take_array(array.ptr(), spec.dtype, false, out))
        raise(PyExc_TypeError, "input %R cannot be read as %s", spec.name.ptr(), spec.dtype_name.c_str());
}

void Feed::take_in_place(PyObject* value, const Spec& spec, cuvil_value& out) {
    if (spec.tag != CUVIL_TENSOR) raise(PyExc_TypeError, "input %R is no tensor: it cannot be bound", spec.name.ptr());
    if (!take_view(value, spec.dtype, false, out))
        raise(PyExc_TypeError, "input %R cannot be bound: it must be an array of %s, whose memory each run reads",
              spec.name.ptr(), spec.dtype_name.c_str());
}

void Feed::take_target(PyObject* value, const Spec& spec, cuvil_value& out) {
    if (spec.tag != CUVIL_TENSOR)
        raise(PyExc_TypeError, "output %R is no tensor: leave it to the module", spec.name.ptr());
    if (take_view(value, spec.dtype, true, out)) return;
    const nb::object array = converted("as_target", value, spec);
    if (!take_array(array.ptr(), spec.dtype, true, out))
        raise(PyExc_TypeError, "output %R cannot be written as %s", spec.name.ptr(), spec.dtype_name.c_str());
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
