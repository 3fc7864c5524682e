#include "results.hpp"

#include <nanobind/ndarray.h>

namespace cuvil::python {
namespace {

constexpr uint8_t bfloat = 4;

// `owner` keeps the tensor's memory alive.
nb::object array_of(const cuvil_tensor& t, nb::handle owner) {
    size_t shape[64];
    for (int32_t i = 0; i < t.ndim; i++) shape[i] = static_cast<size_t>(t.shape[i]);
    // NumPy knows bfloat16 only through another package: its bits go over, cuvil._feeds gives them their name.
    const bool is_bfloat = t.dtype.code == bfloat;
    const nb::dlpack::dtype dtype{is_bfloat ? uint8_t{1} : t.dtype.code, t.dtype.bits, t.dtype.lanes};
    const nb::ndarray<nb::numpy> array(static_cast<char*>(t.data) + t.byte_offset, static_cast<size_t>(t.ndim), shape,
                                       owner, nullptr, dtype);
    nb::object result = nb::cast(array, nb::rv_policy::reference);
    return is_bfloat ? nb::module_::import_("cuvil._feeds").attr("as_bfloat16")(result) : result;
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
