#include "results.hpp"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

namespace cuvil::python {
namespace {

constexpr uint8_t bfloat = 4;

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
    if (PyArray_ImportNumPyAPI() != 0) throw nb::python_error();
}

nb::object take_result(cuvil_value& value) {
    auto owned = std::make_unique<cuvil_value>(value);
    value = {};
    const nb::capsule owner(owned.get(), [](void* memory) noexcept {
        std::unique_ptr<cuvil_value> last(static_cast<cuvil_value*>(memory));
        cuvil_value_release(last.get());
    });
    return view_of(*owned.release(), owner);
}

} // namespace cuvil::python
