#include "text_of_value.hpp"

#include "runtime/dtype_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>

namespace cuvil::cli {
namespace {

constexpr int64_t ends_shown = 3;

template <class T> T load(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

std::string number_text(const char* at, cuvil_dtype t) {
    switch (t.code) {
    case 0:
        if (t.bits == 64) return fmt::format("{}", load<int64_t>(at));
        if (t.bits == 32) return fmt::format("{}", load<int32_t>(at));
        if (t.bits == 16) return fmt::format("{}", load<int16_t>(at));
        return fmt::format("{}", static_cast<int>(load<int8_t>(at)));
    case 1:
        if (t.bits == 64) return fmt::format("{}", load<uint64_t>(at));
        if (t.bits == 32) return fmt::format("{}", load<uint32_t>(at));
        if (t.bits == 16) return fmt::format("{}", load<uint16_t>(at));
        return fmt::format("{}", static_cast<unsigned>(load<uint8_t>(at)));
    case 2:
        if (t.bits == 64) return fmt::format("{}", load<double>(at));
        if (t.bits == 32) return fmt::format("{}", load<float>(at));
        return fmt::format("{}", static_cast<float>(load<_Float16>(at)));
    case 4: {
        const uint32_t bits = static_cast<uint32_t>(load<uint16_t>(at)) << 16;
        return fmt::format("{}", load<float>(reinterpret_cast<const char*>(&bits)));
    }
    case 5: {
        const cuvil_dtype part{2, static_cast<uint8_t>(t.bits / 2), 1};
        return number_text(at, part) + "+" + number_text(at + t.bits / 16, part) + "j";
    }
    case 6: return *at ? "true" : "false";
    default: return "?";
    }
}

std::string element_text(const cuvil_value& value, int64_t i) {
    if (value.tag == CUVIL_TENSOR) {
        const cuvil_tensor& t = value.as.tensor;
        return number_text(static_cast<const char*>(t.data) + t.byte_offset + i * t.dtype.bits / 8, t.dtype);
    }
    const cuvil_strings& s = value.as.strings;
    const nlohmann::json text(
        std::string(s.bytes + s.offsets[i], static_cast<size_t>(s.offsets[i + 1] - s.offsets[i])));
    return text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct Shape {
    const int64_t* sizes;
    int32_t ndim;
};

Shape shape_of(const cuvil_value& value) {
    if (value.tag == CUVIL_TENSOR) return {value.as.tensor.shape, value.as.tensor.ndim};
    return {value.as.strings.shape, value.as.strings.ndim};
}

void append(std::string& out, const cuvil_value& value, Shape shape, int32_t axis, int64_t first, int64_t limit) {
    if (axis == shape.ndim) {
        out += element_text(value, first);
        return;
    }
    int64_t step = 1;
    for (int32_t i = axis + 1; i < shape.ndim; i++) step *= shape.sizes[i];
    const int64_t size = shape.sizes[axis];
    const bool is_last = axis + 1 == shape.ndim;
    out += '[';
    for (int64_t i = 0; i < size; i++) {
        if (i > 0) out += is_last ? ", " : ",\n" + std::string(static_cast<size_t>(axis) + 1, ' ');
        if (limit > 0 && size > limit && i == ends_shown) {
            out += is_last ? "..., " : "...,\n" + std::string(static_cast<size_t>(axis) + 1, ' ');
            i = size - ends_shown;
        }
        append(out, value, shape, axis + 1, first + i * step, limit);
    }
    out += ']';
}

} // namespace

std::string_view dtype_text(cuvil_dtype dtype) {
    for (const rt::NamedDtype& known : rt::dtypes)
        if (known.dtype.code == dtype.code && known.dtype.bits == dtype.bits) return known.name;
    return "of an unknown type";
}

std::string type_text(const cuvil_value& value) {
    if (value.tag == CUVIL_NONE) return "none";
    if (value.tag == CUVIL_LIST) return fmt::format("list of {}", value.as.list.count);
    std::string out(value.tag == CUVIL_TENSOR ? dtype_text(value.as.tensor.dtype) : "str");
    const Shape shape = shape_of(value);
    out += '[';
    for (int32_t i = 0; i < shape.ndim; i++) out += fmt::format("{}{}", i ? "," : "", shape.sizes[i]);
    return out + ']';
}

std::string difference_text(double difference) {
    return std::isinf(difference) ? "inf" : fmt::format("{:.3g}", difference);
}

std::string elements_text(const cuvil_value& value, int64_t limit) {
    std::string out;
    if (value.tag == CUVIL_LIST) {
        for (int64_t i = 0; i < value.as.list.count; i++) {
            if (i) out += '\n';
            out += elements_text(value.as.list.items[i], limit);
        }
        return out;
    }
    if (value.tag == CUVIL_NONE) return "none";
    append(out, value, shape_of(value), 0, 0, limit);
    return out;
}

} // namespace cuvil::cli
