#include "ir/literal.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

namespace cuvil {
namespace {

// The length of the UTF-8 sequence at the start of `text`; 0 when there is none.
size_t utf8_length(std::string_view text) {
    auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    auto continues = [&](size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
        return i < text.size() && byte(i) >= low && byte(i) <= high;
    };
    unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
    // The second byte's range leaves out overlong forms, surrogates and what lies above U+10FFFF.
    if (first >= 0xe0 && first <= 0xef) {
        unsigned low = first == 0xe0 ? 0xa0 : 0x80, high = first == 0xed ? 0x9f : 0xbf;
        return continues(1, low, high) && continues(2) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        unsigned low = first == 0xf0 ? 0x90 : 0x80, high = first == 0xf4 ? 0x8f : 0xbf;
        return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
    }
    return 0;
}

template <class T> std::string shortest(T value) {
    std::array<char, 32> buffer;
    auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return std::string(buffer.data(), end);
}

template <class T> std::optional<T> read_number(std::string_view text, int base = 10) {
    T value{};
    std::from_chars_result done{};
    if constexpr (std::is_floating_point_v<T>)
        done = std::from_chars(text.data(), text.data() + text.size(), value);
    else
        done = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (done.ec != std::errc() || done.ptr != text.data() + text.size()) return std::nullopt;
    return value;
}

// "0x" and exactly the digits of `bytes` bytes.
std::optional<uint64_t> read_bits(std::string_view literal, size_t bytes) {
    if (!literal.starts_with("0x") || literal.size() != 2 + 2 * bytes) return std::nullopt;
    return read_number<uint64_t>(literal.substr(2), 16);
}

template <class T> T load(const char* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

template <class T> void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

float from_bf16(uint16_t bits) {
    uint32_t wide = static_cast<uint32_t>(bits) << 16;
    return load<float>(reinterpret_cast<const char*>(&wide));
}

// To the nearest, ties to even; `value` is finite.
uint16_t to_bf16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    return static_cast<uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
}

std::string hex_bits(uint64_t bits, size_t bytes) { return fmt::format("0x{:0{}x}", bits, 2 * bytes); }

std::string element_literal(DType dtype, const char* p) {
    switch (dtype) {
    case DType::F64: {
        auto v = load<double>(p);
        return std::isfinite(v) ? shortest(v) : hex_bits(load<uint64_t>(p), 8);
    }
    case DType::F32: {
        auto v = load<float>(p);
        return std::isfinite(v) ? shortest(v) : hex_bits(load<uint32_t>(p), 4);
    }
    case DType::F16: {
        auto v = static_cast<float>(load<_Float16>(p));
        return std::isfinite(v) ? shortest(v) : hex_bits(load<uint16_t>(p), 2);
    }
    case DType::BF16: {
        float v = from_bf16(load<uint16_t>(p));
        return std::isfinite(v) ? shortest(v) : hex_bits(load<uint16_t>(p), 2);
    }
    case DType::I64: return shortest(load<int64_t>(p));
    case DType::I32: return shortest(load<int32_t>(p));
    case DType::I16: return shortest(load<int16_t>(p));
    case DType::I8: return shortest(static_cast<int>(load<int8_t>(p)));
    case DType::U64: return shortest(load<uint64_t>(p));
    case DType::U32: return shortest(load<uint32_t>(p));
    case DType::U16: return shortest(load<uint16_t>(p));
    case DType::U8: return shortest(static_cast<unsigned>(load<uint8_t>(p)));
    case DType::Bool: return *p ? "true" : "false";
    case DType::String:
    case DType::C64:
    case DType::C128: break;
    }
    return {};
}

// The dtype of one literal, and how many make an element.
DType literal_dtype(DType dtype) {
    if (dtype == DType::C64) return DType::F32;
    return dtype == DType::C128 ? DType::F64 : dtype;
}
int64_t literals_of_element(DType dtype) { return literal_dtype(dtype) == dtype ? 1 : 2; }

DType element_dtype(const Type& type) { return type.kind() == Type::Kind::String ? DType::String : type.dtype(); }

template <class T> bool append_integer(std::string_view literal, std::string& bytes) {
    auto value = read_number<T>(literal);
    if (value) append(bytes, *value);
    return value.has_value();
}

// A float in `T`'s precision; nothing when it is no number or too large.
template <class T> std::optional<T> read_finite(std::string_view literal) {
    if (literal.find_first_not_of("+-.0123456789eE") != std::string_view::npos || literal.starts_with('+'))
        return std::nullopt;
    if (auto value = read_number<T>(literal)) return value;
    // from_chars also refuses what is too small; that is a zero or a denormal.
    std::string copy(literal);
    char* end = nullptr;
    double value = std::strtod(copy.c_str(), &end);
    if (copy.empty() || end != copy.c_str() + copy.size() || std::fabs(value) > 1) return std::nullopt;
    return static_cast<T>(value);
}

// inf, -inf or nan as the bits of a format with `exponent` and `mantissa` bits.
std::optional<uint64_t> special_bits(std::string_view literal, int exponent, int mantissa) {
    uint64_t infinity = ((uint64_t{1} << exponent) - 1) << mantissa;
    if (literal == "inf") return infinity;
    if (literal == "-inf") return infinity | uint64_t{1} << (exponent + mantissa);
    if (literal == "nan") return infinity | uint64_t{1} << (mantissa - 1);
    return std::nullopt;
}

} // namespace

std::string string_literal(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        auto c = static_cast<unsigned char>(text[0]);
        size_t length = utf8_length(text);
        if (c == '"' || c == '\\')
            (out += '\\') += text[0];
        else if (c < 0x20 || c == 0x7f || length == 0)
            out += fmt::format("\\x{:02x}", c);
        else
            out += text.substr(0, length);
        text.remove_prefix(length ? length : 1);
    }
    return out + '"';
}

std::optional<std::string> read_string_literal(std::string_view literal) {
    std::string out;
    for (size_t i = 1; i + 1 < literal.size(); i++) {
        if (literal[i] != '\\') {
            out += literal[i];
            continue;
        }
        i++;
        switch (literal[i]) {
        case '"':
        case '\\': out += literal[i]; break;
        case 'n': out += '\n'; break;
        case 't': out += '\t'; break;
        case 'x': {
            if (i + 3 >= literal.size()) return std::nullopt;
            auto byte = read_number<uint8_t>(literal.substr(i + 1, 2), 16);
            if (!byte) return std::nullopt;
            out += static_cast<char>(*byte);
            i += 2;
            break;
        }
        default: return std::nullopt;
        }
    }
    return out;
}

std::string float_literal(double value) {
    if (!std::isfinite(value)) return element_literal(DType::F64, reinterpret_cast<const char*>(&value));
    std::string wide = shortest(value);
    if (std::fabs(value) > std::numeric_limits<float>::max()) return wide;
    auto narrow = static_cast<float>(value);
    if (static_cast<double>(narrow) != value) return wide;
    std::string text = shortest(narrow) + "f";
    return text.size() < wide.size() ? text : wide;
}

std::optional<double> read_float_literal(std::string_view literal) {
    if (!literal.starts_with("0x") && literal.ends_with('f') && !literal.ends_with("inf")) {
        auto value = read_finite<float>(literal.substr(0, literal.size() - 1));
        return value ? std::optional<double>(*value) : std::nullopt;
    }
    std::string bytes;
    if (!append_element(DType::F64, literal, bytes)) return std::nullopt;
    return load<double>(bytes.data());
}

std::optional<int64_t> read_integer_literal(std::string_view literal) { return read_number<int64_t>(literal); }

std::optional<int64_t> literal_count(const Type& type) {
    switch (type.kind()) {
    case Type::Kind::String: return 1;
    case Type::Kind::Scalar: return literals_of_element(type.dtype());
    case Type::Kind::Tensor: {
        if (!type.has_rank()) return std::nullopt;
        int64_t count = literals_of_element(type.dtype());
        for (const Dim& d : type.shape()) {
            auto size = d.constant();
            if (!size || *size < 0 || __builtin_mul_overflow(count, *size, &count)) return std::nullopt;
        }
        return count;
    }
    default: return std::nullopt;
    }
}

std::string elements_literal(std::string_view bytes, const Type& type) {
    const std::string raw = "bytes ";
    auto expected = literal_count(type);
    if (!expected) return raw + string_literal(bytes);
    std::string out;
    int64_t count = 0;
    auto add = [&](const std::string& element) {
        if (count++) out += ", ";
        out += element;
    };
    DType dtype = literal_dtype(element_dtype(type));
    if (dtype == DType::String) {
        for (std::string_view rest = bytes; !rest.empty();) {
            const char* start = rest.data();
            if (rest.size() < 8 || load<uint64_t>(start) > rest.size() - 8) return raw + string_literal(bytes);
            auto length = static_cast<size_t>(load<uint64_t>(start));
            add(string_literal(rest.substr(8, length)));
            rest.remove_prefix(8 + length);
        }
    } else {
        size_t size = size_of(dtype);
        if (bytes.size() % size != 0 || static_cast<int64_t>(bytes.size() / size) != *expected)
            return raw + string_literal(bytes);
        if (dtype == DType::Bool && bytes.find_first_not_of(std::string_view("\0\1", 2)) != std::string_view::npos)
            return raw + string_literal(bytes);
        for (size_t i = 0; i < bytes.size(); i += size) add(element_literal(dtype, bytes.data() + i));
    }
    if (count != *expected) return raw + string_literal(bytes);
    bool alone = count == 1 && (!type.is_tensor() || type.rank() == 0);
    return alone ? out : "[" + out + "]";
}

bool append_element(DType dtype, std::string_view literal, std::string& bytes) {
    auto append_float = [&](int exponent, int mantissa, auto finite) {
        size_t size = static_cast<size_t>(1 + exponent + mantissa) / 8;
        auto bits = read_bits(literal, size);
        if (!bits) bits = special_bits(literal, exponent, mantissa);
        if (bits) {
            bytes.append(reinterpret_cast<const char*>(&*bits), size); // little-endian, as all hosts are
            return true;
        }
        return finite();
    };
    auto finite = [&]<class T>(T) {
        auto value = read_finite<T>(literal);
        if (value) append(bytes, *value);
        return value.has_value();
    };
    switch (dtype) {
    case DType::F64:
    case DType::C128: return append_float(11, 52, [&] { return finite(double{}); });
    case DType::F32:
    case DType::C64: return append_float(8, 23, [&] { return finite(float{}); });
    case DType::F16:
        return append_float(5, 10, [&] {
            auto value = read_finite<float>(literal);
            if (!value || std::fabs(*value) >= 65520) return false;
            append(bytes, static_cast<_Float16>(*value));
            return true;
        });
    case DType::BF16:
        return append_float(8, 7, [&] {
            auto value = read_finite<float>(literal);
            if (!value || !std::isfinite(from_bf16(to_bf16(*value)))) return false;
            append(bytes, to_bf16(*value));
            return true;
        });
    case DType::I64: return append_integer<int64_t>(literal, bytes);
    case DType::I32: return append_integer<int32_t>(literal, bytes);
    case DType::I16: return append_integer<int16_t>(literal, bytes);
    case DType::I8: return append_integer<int8_t>(literal, bytes);
    case DType::U64: return append_integer<uint64_t>(literal, bytes);
    case DType::U32: return append_integer<uint32_t>(literal, bytes);
    case DType::U16: return append_integer<uint16_t>(literal, bytes);
    case DType::U8: return append_integer<uint8_t>(literal, bytes);
    case DType::Bool:
        if (literal != "true" && literal != "false") return false;
        bytes += literal == "true" ? '\1' : '\0';
        return true;
    case DType::String: {
        if (literal.size() < 2 || literal[0] != '"') return false;
        auto text = read_string_literal(literal);
        if (!text) return false;
        append(bytes, static_cast<uint64_t>(text->size()));
        bytes += *text;
        return true;
    }
    }
    return false;
}

} // namespace cuvil
