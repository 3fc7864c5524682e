#include "runtime/values.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cuvil::rt {
namespace {

constexpr int32_t cpu_device = 1;
constexpr int32_t most_axes = 64;

const char* kind_text(int32_t tag) {
    switch (tag) {
    case CUVIL_NONE: return "missing";
    case CUVIL_TENSOR: return "a tensor";
    case CUVIL_STRINGS: return "a string tensor";
    case CUVIL_LIST: return "a list";
    default: return "of no known kind";
    }
}

// "input 'x'", made only for errors.
struct Subject {
    const char* role;
    const ValueSpec& spec;
    operator std::string() const { return std::string(role) + " '" + spec.name + "'"; }
};

std::string sizes_text(const int64_t* shape, int32_t ndim) {
    std::string out = "[";
    for (int32_t i = 0; i < ndim; i++) out += (i > 0 ? "," : "") + std::to_string(shape[i]);
    return out + "]";
}

[[noreturn]] void fail(int32_t status, const Subject& subject, const std::string& predicate) {
    throw CallError{status, std::string(subject) + " " + predicate};
}

[[noreturn]] void fail_shape(const Subject& subject, const int64_t* shape, int32_t ndim, const std::string& why) {
    fail(CUVIL_ERROR_SHAPE, subject,
         "has shape " + sizes_text(shape, ndim) + ", expected " + shape_text(subject.spec) + why);
}

uint64_t item_bytes(const cuvil_tensor& tensor) { return tensor.dtype.bits / 8u; }

// The product of the sizes; fails where sizes are negative or their bytes need more than 63 bits.
int64_t checked_count(const Subject& subject, const int64_t* shape, int32_t ndim, uint64_t bytes_each) {
    bool empty = false;
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] < 0) fail_shape(subject, shape, ndim, "");
        empty |= shape[i] == 0;
    }
    if (empty) return 0;
    int64_t bytes = static_cast<int64_t>(bytes_each);
    for (int32_t i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes))
            fail(CUVIL_ERROR_SHAPE, subject, "has shape " + sizes_text(shape, ndim) + ", more than memory can hold");
    return bytes / static_cast<int64_t>(bytes_each);
}

bool is_row_major(const cuvil_tensor& tensor) {
    if (!tensor.strides) return true;
    int64_t expected = 1;
    for (int32_t i = tensor.ndim - 1; i >= 0; i--) {
        if (tensor.shape[i] == 0) return true;
        if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
        expected *= tensor.shape[i];
    }
    return true;
}

char* first_byte(const cuvil_tensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

bool is_aligned(const cuvil_tensor& tensor) {
    const uint64_t unit = std::min<uint64_t>(item_bytes(tensor), 8);
    return unit == 0 || reinterpret_cast<uintptr_t>(first_byte(tensor)) % unit == 0;
}

// Copies axis `axis` and those behind it to `to`, row-major; returns the end of what was written.
char* pack(const cuvil_tensor& tensor, int32_t axis, const char* from, char* to) {
    const int64_t item = static_cast<int64_t>(item_bytes(tensor));
    if (axis == tensor.ndim) {
        memcpy(to, from, item);
        return to + item;
    }
    const int64_t count = tensor.shape[axis];
    const int64_t step = tensor.strides[axis] * item;
    if (axis + 1 < tensor.ndim) {
        for (int64_t i = 0; i < count; i++, from += step) to = pack(tensor, axis + 1, from, to);
        return to;
    }
    if (step == item) {
        memcpy(to, from, count * item);
        return to + count * item;
    }
    auto copy_items = [&](auto size) {
        for (int64_t i = 0; i < count; i++) memcpy(to + i * size, from + i * step, size);
    };
    switch (item) { // constant sizes become plain moves
    case 1: copy_items(std::integral_constant<int64_t, 1>()); break;
    case 2: copy_items(std::integral_constant<int64_t, 2>()); break;
    case 4: copy_items(std::integral_constant<int64_t, 4>()); break;
    case 8: copy_items(std::integral_constant<int64_t, 8>()); break;
    default: copy_items(item);
    }
    return to + count * item;
}

// The same elements, row-major, in `arena`.
char* packed_copy(const cuvil_tensor& tensor, int64_t count, ArenaAllocator& arena) {
    char* copy = arena.array<char>(count * item_bytes(tensor));
    if (count == 0) return copy;
    if (is_row_major(tensor))
        memcpy(copy, first_byte(tensor), count * item_bytes(tensor));
    else
        pack(tensor, 0, first_byte(tensor), copy);
    return copy;
}

void check_tensor(const Subject& subject, const cuvil_tensor& tensor, cuvil_dtype dtype) {
    if (tensor.device_type != cpu_device)
        fail(CUVIL_ERROR_TYPE, subject,
             "is not in the CPU's memory: DLPack device type " + std::to_string(tensor.device_type));
    if (dtype.bits != 0 &&
        (tensor.dtype.code != dtype.code || tensor.dtype.bits != dtype.bits || tensor.dtype.lanes != dtype.lanes))
        fail(CUVIL_ERROR_TYPE, subject, "is " + dtype_text(tensor.dtype) + ", expected " + dtype_text(dtype));
    if (tensor.dtype.bits == 0 || tensor.dtype.bits % 8 != 0)
        fail(CUVIL_ERROR_TYPE, subject, "is " + dtype_text(tensor.dtype) + ", which has no whole bytes");
    if (tensor.ndim < 0 || tensor.ndim > most_axes)
        fail(CUVIL_ERROR_SHAPE, subject, "has " + std::to_string(tensor.ndim) + " axes");
}

// " with N = 4 from input 'a'": where the size that another one contradicts comes from.
std::string first_use(const Manifest& manifest, const cuvil_value* taken, int32_t dim) {
    for (size_t i = 0; i < manifest.inputs.size(); i++) {
        const ValueSpec& spec = manifest.inputs[i];
        const int64_t* shape = taken[i].tag == CUVIL_TENSOR    ? taken[i].as.tensor.shape
                               : taken[i].tag == CUVIL_STRINGS ? taken[i].as.strings.shape
                                                               : nullptr;
        for (size_t axis = 0; shape && axis < spec.shape.size(); axis++)
            if (spec.shape[axis].dim == dim)
                return " with " + spec.shape[axis].text + " = " + std::to_string(shape[axis]) + " from input '" +
                       spec.name + "'";
    }
    return "";
}

// Rank and sizes; `dims` holds the sizes seen so far, -1 for none.
void check_shape(const Manifest& manifest, const ValueSpec& spec, const cuvil_value* taken, const int64_t* shape,
                 int32_t ndim, int64_t* dims) {
    const Subject subject{"input", spec};
    if (spec.any_rank) return;
    if (ndim != static_cast<int32_t>(spec.shape.size())) fail_shape(subject, shape, ndim, "");
    for (int32_t i = 0; i < ndim; i++) {
        const Axis& axis = spec.shape[i];
        if (axis.dim == Axis::fixed && shape[i] != axis.size) fail_shape(subject, shape, ndim, "");
        if (axis.dim < 0) continue;
        int64_t& seen = dims[axis.dim];
        if (seen == -1) seen = shape[i];
        if (seen != shape[i]) fail_shape(subject, shape, ndim, first_use(manifest, taken, axis.dim));
    }
}

void take_tensor(const Subject& subject, ArenaAllocator& arena, cuvil_tensor& tensor) {
    const int64_t count = checked_count(subject, tensor.shape, tensor.ndim, item_bytes(tensor));
    if (count > 0 && !tensor.data) fail(CUVIL_ERROR_TYPE, subject, "has no data");
    tensor.data = is_row_major(tensor) && is_aligned(tensor) ? first_byte(tensor) : packed_copy(tensor, count, arena);
    tensor.byte_offset = 0;
    tensor.strides = nullptr;
}

void take_strings(const Subject& subject, const cuvil_strings& strings) {
    const int64_t count = checked_count(subject, strings.shape, strings.ndim, 1);
    if (!strings.offsets) fail(CUVIL_ERROR_TYPE, subject, "has no offsets");
    for (int64_t i = 0; i <= count; i++)
        if (strings.offsets[i] < (i == 0 ? 0 : strings.offsets[i - 1]))
            fail(CUVIL_ERROR_TYPE, subject, "has offsets that fall at element " + std::to_string(i));
}

void take_list(const Subject& subject, ArenaAllocator& arena, cuvil_list& list) {
    if (list.count < 0 || (list.count > 0 && !list.items)) fail(CUVIL_ERROR_TYPE, subject, "is a list without items");
    auto* items = arena.array<cuvil_value>(list.count);
    for (int64_t i = 0; i < list.count; i++) {
        items[i] = list.items[i];
        if (items[i].tag == CUVIL_TENSOR) {
            check_tensor(subject, items[i].as.tensor, subject.spec.dtype);
            take_tensor(subject, arena, items[i].as.tensor);
        } else if (items[i].tag == CUVIL_STRINGS) {
            take_strings(subject, items[i].as.strings);
        } else if (items[i].tag == CUVIL_LIST) {
            take_list(subject, arena, items[i].as.list);
        }
    }
    list.items = items;
}

// False where a size is known only after the run.
bool known_shape(const ValueSpec& spec, const int64_t* dims, int64_t* shape) {
    if (spec.any_rank) return false;
    for (size_t i = 0; i < spec.shape.size(); i++) {
        const Axis& axis = spec.shape[i];
        shape[i] = axis.dim >= 0 ? dims[axis.dim] : axis.size;
        if (axis.dim == Axis::known_after_run || shape[i] < 0) return false;
    }
    return true;
}

cuvil_value new_tensor(const Subject& subject, const int64_t* shape, int32_t ndim) {
    const uint64_t item = subject.spec.dtype.bits / 8u;
    const uint64_t data_bytes = checked_count(subject, shape, ndim, item) * item;
    const uint64_t shape_at = (data_bytes + 63) / 64 * 64;
    auto* block = static_cast<char*>(allocate_block(shape_at + ndim * sizeof(int64_t)));
    if (!block) fail(CUVIL_ERROR_MEMORY, subject, "needs " + std::to_string(data_bytes) + " bytes: out of memory");
    std::copy_n(shape, ndim, reinterpret_cast<int64_t*>(block + shape_at));
    cuvil_value value{};
    value.tag = CUVIL_TENSOR;
    value.owner = block;
    value.as.tensor = {block,   cpu_device, 0, ndim, subject.spec.dtype, reinterpret_cast<int64_t*>(block + shape_at),
                       nullptr, 0};
    return value;
}

} // namespace

void take_inputs(const Manifest& manifest, const cuvil_value* in, ArenaAllocator& arena, int64_t* dims,
                 cuvil_value* taken) {
    std::fill_n(dims, manifest.dims.size(), -1);
    for (size_t i = 0; i < manifest.inputs.size(); i++) {
        const ValueSpec& spec = manifest.inputs[i];
        const Subject subject{"input", spec};
        cuvil_value& value = taken[i] = in[i];
        if (value.tag == CUVIL_NONE && spec.optional) continue;
        if (value.tag == CUVIL_NONE) fail(CUVIL_ERROR_NAME, subject, "is missing");
        if (value.tag != spec.tag)
            fail(CUVIL_ERROR_TYPE, subject,
                 std::string("is ") + kind_text(value.tag) + ", expected " + kind_text(spec.tag));
        if (value.tag == CUVIL_TENSOR) {
            check_tensor(subject, value.as.tensor, spec.dtype);
            check_shape(manifest, spec, taken, value.as.tensor.shape, value.as.tensor.ndim, dims);
            take_tensor(subject, arena, value.as.tensor);
        } else if (value.tag == CUVIL_STRINGS) {
            check_shape(manifest, spec, taken, value.as.strings.shape, value.as.strings.ndim, dims);
            take_strings(subject, value.as.strings);
        } else {
            take_list(subject, arena, value.as.list);
        }
    }
}

void check_bound_dims(const Manifest& manifest, const cuvil_value* taken, const int64_t* dims) {
    for (size_t i = 0; i < manifest.inputs.size(); i++) {
        const ValueSpec& spec = manifest.inputs[i];
        if (taken[i].tag != CUVIL_TENSOR && taken[i].tag != CUVIL_STRINGS) continue;
        const int64_t* shape = taken[i].tag == CUVIL_TENSOR ? taken[i].as.tensor.shape : taken[i].as.strings.shape;
        for (size_t axis = 0; axis < spec.shape.size(); axis++) {
            const int32_t dim = spec.shape[axis].dim;
            if (dim < 0 || shape[axis] == dims[dim]) continue;
            fail_shape({"input", spec}, shape, static_cast<int32_t>(spec.shape.size()),
                       " with " + manifest.dims[dim] + " = " + std::to_string(dims[dim]));
        }
    }
}

cuvil_value take_output(const ValueSpec& spec, const cuvil_value& given, const int64_t* dims) {
    const Subject subject{"output", spec};
    const int32_t ndim = static_cast<int32_t>(spec.shape.size());
    int64_t shape[most_axes];
    if (ndim > most_axes) fail(CUVIL_ERROR_SHAPE, subject, "has " + std::to_string(ndim) + " axes");
    const bool is_known = spec.tag == CUVIL_TENSOR && known_shape(spec, dims, shape);
    if (given.tag == CUVIL_NONE) return is_known ? new_tensor(subject, shape, ndim) : cuvil_value{};
    if (!is_known)
        fail(CUVIL_ERROR_TYPE, subject,
             std::string("is ") + kind_text(spec.tag) +
                 " whose size is known only after the run: leave it to the module");
    if (given.tag != CUVIL_TENSOR)
        fail(CUVIL_ERROR_TYPE, subject, std::string("is ") + kind_text(given.tag) + ", expected a tensor");

    cuvil_value value = given;
    cuvil_tensor& tensor = value.as.tensor;
    check_tensor(subject, tensor, spec.dtype);
    if (tensor.ndim != ndim || !std::equal(shape, shape + ndim, tensor.shape))
        fail(CUVIL_ERROR_SHAPE, subject,
             "has shape " + sizes_text(tensor.shape, tensor.ndim) + ", expected " + sizes_text(shape, ndim));
    if (checked_count(subject, shape, ndim, item_bytes(tensor)) > 0 && !tensor.data)
        fail(CUVIL_ERROR_TYPE, subject, "has no data");
    if (!is_row_major(tensor)) fail(CUVIL_ERROR_SHAPE, subject, "must be row-major without gaps");
    if (!is_aligned(tensor)) fail(CUVIL_ERROR_SHAPE, subject, "must start at a multiple of its element's size");
    tensor.data = first_byte(tensor);
    tensor.byte_offset = 0;
    tensor.strides = nullptr;
    return value;
}

void separate_inputs(const Manifest& manifest, const cuvil_value* out, ArenaAllocator& arena, cuvil_value* taken) {
    auto bytes = [](const cuvil_tensor& tensor) {
        int64_t count = static_cast<int64_t>(item_bytes(tensor));
        for (int32_t i = 0; i < tensor.ndim; i++) count *= tensor.shape[i];
        return count;
    };
    for (size_t o = 0; o < manifest.outputs.size(); o++) {
        if (out[o].tag != CUVIL_TENSOR || out[o].owner) continue;
        const auto* out_begin = static_cast<const char*>(out[o].as.tensor.data);
        const char* out_end = out_begin + bytes(out[o].as.tensor);
        for (size_t i = 0; i < manifest.inputs.size(); i++) {
            if (taken[i].tag != CUVIL_TENSOR) continue;
            cuvil_tensor& tensor = taken[i].as.tensor;
            const int64_t size = bytes(tensor);
            const auto* begin = static_cast<const char*>(tensor.data);
            if (begin >= out_end || out_begin >= begin + size) continue;
            tensor.data = packed_copy(tensor, size / static_cast<int64_t>(item_bytes(tensor)), arena);
        }
    }
}

void release_value(cuvil_value& value) {
    if (value.tag == CUVIL_LIST)
        for (int64_t i = 0; i < value.as.list.count; i++) release_value(value.as.list.items[i]);
    free(value.owner);
    value = {};
}

} // namespace cuvil::rt
