#include "results.hpp"

#define CUVIL_FILLS_NUMPY_API
#include "numpy_api.hpp"

#include <utility>

namespace cuvil::python {
namespace {

constexpr uint8_t bfloat = 4;

// Memory of the loader's, kept for the arrays over it.
struct Memory {
    PyObject_HEAD cuvil_value value;
};

void release_memory(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    cuvil_value_release(&reinterpret_cast<Memory*>(self)->value);
    type->tp_free(self);
    Py_DECREF(type);
}

PyTypeObject* memory_type() {
    static PyTypeObject* type = [] {
        PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(release_memory)}, {0, nullptr}};
        PyType_Spec spec = {"cuvil._runtime.Memory", sizeof(Memory), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
        return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    }();
    return type;
}

// `owner` keeps the tensor's memory alive.
nb::object array_of(const cuvil_tensor& t, nb::handle owner) {
    // Through the C API: half a microsecond less than by way of a DLPack capsule, which is what a small model takes.
    nb::object array =
        nb::steal(PyArray_New(&PyArray_Type, t.ndim, reinterpret_cast<const npy_intp*>(t.shape), numpy_type(t.dtype),
                              nullptr, static_cast<char*>(t.data) + t.byte_offset, 0, NPY_ARRAY_CARRAY, nullptr));
    if (!array.is_valid()) throw nb::python_error();
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), owner.inc_ref().ptr()) != 0)
        throw nb::python_error();
    return t.dtype.code == bfloat ? nb::module_::import_("cuvil._feeds").attr("as_bfloat16")(array) : array;
}

nb::object strings_of(const cuvil_strings& s) {
    int64_t count = 1;
    nb::list shape, texts;
    for (int32_t i = 0; i < s.ndim; i++) {
        count *= s.shape[i];
        shape.append(s.shape[i]);
    }
    for (int64_t i = 0; i < count; i++)
        texts.append(nb::steal(
            PyUnicode_DecodeUTF8(s.bytes + s.offsets[i], s.offsets[i + 1] - s.offsets[i], "surrogateescape")));
    return nb::module_::import_("cuvil._feeds").attr("string_array")(texts, nb::tuple(shape));
}

nb::object view_of(const cuvil_value& value, nb::handle owner) {
    switch (value.tag) {
    case CUVIL_TENSOR: return array_of(value.as.tensor, owner);
    case CUVIL_STRINGS: return strings_of(value.as.strings);
    case CUVIL_LIST: {
        nb::list items;
        for (int64_t i = 0; i < value.as.list.count; i++) items.append(view_of(value.as.list.items[i], owner));
        return items;
    }
    default: return nb::none();
    }
}

} // namespace

void import_numpy() {
    if (PyArray_ImportNumPyAPI() != 0 || !memory_type()) throw nb::python_error();
}

int numpy_type(cuvil_dtype t) {
    switch (t.code) {
    case 0: return t.bits == 64 ? NPY_INT64 : t.bits == 32 ? NPY_INT32 : t.bits == 16 ? NPY_INT16 : NPY_INT8;
    case 1: return t.bits == 64 ? NPY_UINT64 : t.bits == 32 ? NPY_UINT32 : t.bits == 16 ? NPY_UINT16 : NPY_UINT8;
    case 2: return t.bits == 64 ? NPY_FLOAT64 : t.bits == 32 ? NPY_FLOAT32 : NPY_FLOAT16;
    // NumPy knows bfloat16 only through another package: its bits go over, cuvil._feeds gives them their name.
    case bfloat: return NPY_UINT16;
    case 5: return t.bits == 64 ? NPY_COMPLEX64 : NPY_COMPLEX128;
    default: return NPY_BOOL;
    }
}

nb::object small_array(const Spec& spec, cuvil_value& value) {
    constexpr int64_t most_bytes = 4096;
    if (!spec.has_fixed_shape || spec.dtype.code == bfloat) return {};
    int64_t bytes = spec.dtype.bits / 8;
    for (const int64_t size : spec.shape)
        if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > most_bytes) return {};
    const int ndim = static_cast<int>(spec.shape.size());
    nb::object array = nb::steal(
        PyArray_New(&PyArray_Type, ndim, spec.shape.data(), numpy_type(spec.dtype), nullptr, nullptr, 0, 0, nullptr));
    if (!array.is_valid()) throw nb::python_error();
    auto* numpy = reinterpret_cast<PyArrayObject*>(array.ptr());
    value.tag = CUVIL_TENSOR;
    value.as.tensor = {PyArray_DATA(numpy), 1, 0, ndim, spec.dtype, PyArray_DIMS(numpy), nullptr, 0};
    return array;
}

nb::object take_result(cuvil_value& value) {
    auto* memory = PyObject_New(Memory, memory_type());
    if (!memory) throw nb::python_error();
    memory->value = std::exchange(value, {});
    const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(memory));
    return view_of(memory->value, owner);
}

nb::object new_results(const Ports& outputs) {
    if (outputs.size() != 1 || outputs[0].name.equal(outputs.alias())) return nb::dict();
    static PyObject* type = nb::object(nb::module_::import_("cuvil._feeds").attr("Results")).release().ptr();
    return nb::handle(type)();
}

void set_item(nb::handle dict, nb::handle key, nb::handle value) {
    if (PyDict_SetItem(dict.ptr(), key.ptr(), value.ptr()) != 0) throw nb::python_error();
}

} // namespace cuvil::python
