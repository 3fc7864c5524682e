#include "tensors.hpp"

#include "console.hpp"
#include "feeds.hpp"
#include "runtime/dtypes.hpp"

#include <cstring>

namespace cuvil::cli {
namespace {

DType dtype_of(cuvil_dtype dtype) {
    for (int i = 0; i <= static_cast<int>(DType::C128); i++) {
        const auto candidate = static_cast<DType>(i);
        const cuvil_dtype other = rt::dtype_of(name(candidate));
        if (candidate != DType::String && other.code == dtype.code && other.bits == dtype.bits) return candidate;
    }
    throw InputError("the elements of an array have a type that no model knows");
}

// Copies what lies at `from` in strides of elements to `to`, axis by axis.
std::byte* copy_axes(const std::byte* from, const cuvil_tensor& x, int32_t axis, size_t size, std::byte* to) {
    if (axis == x.ndim) {
        std::memcpy(to, from, size);
        return to + size;
    }
    for (int64_t i = 0; i < x.shape[axis]; i++)
        to = copy_axes(from + i * x.strides[axis] * static_cast<int64_t>(size), x, axis + 1, size, to);
    return to;
}

} // namespace

Tensor tensor_of(const cuvil_value& value) {
    if (value.tag == CUVIL_STRINGS) {
        const cuvil_strings& from = value.as.strings;
        Tensor tensor{DType::String, {from.shape, from.shape + from.ndim}, nullptr, nullptr};
        std::vector<std::string> strings;
        for (int64_t i = 0; i < tensor.count(); i++)
            strings.emplace_back(from.bytes + from.offsets[i], from.offsets[i + 1] - from.offsets[i]);
        tensor.strings = std::make_shared<const std::vector<std::string>>(std::move(strings));
        return tensor;
    }
    if (value.tag != CUVIL_TENSOR) throw InputError("lists of tensors cannot be compared");
    const cuvil_tensor& from = value.as.tensor;
    const auto* data = static_cast<const std::byte*>(from.data) + from.byte_offset;
    auto [tensor, to] = evaluation::new_tensor(dtype_of(from.dtype), {from.shape, from.shape + from.ndim});
    const size_t size = size_of(tensor.dtype);
    if (from.strides)
        copy_axes(data, from, 0, size, to);
    else if (const size_t bytes = static_cast<size_t>(tensor.count()) * size; bytes > 0)
        std::memcpy(to, data, bytes);
    return tensor;
}

Tensor tensor_of(const Array& array) {
    const Feed feed(array);
    return tensor_of(feed.value());
}

} // namespace cuvil::cli
