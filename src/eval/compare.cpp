#include "eval/compare.hpp"

#include "support/diagnostics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace cuvil::evaluation {
namespace {

constexpr uint64_t farthest = std::numeric_limits<uint64_t>::max();
constexpr double infinity = std::numeric_limits<double>::infinity();

// Floats as integers in their order; 0 and -0 are 0.
template <class F, class I> I rank_of(F value) {
    I bits = std::bit_cast<I>(value);
    return static_cast<I>(bits < 0 ? std::numeric_limits<I>::min() - bits : bits);
}

template <class F, class I> uint64_t distance(F a, F b) {
    bool is_nan_a = a != a, is_nan_b = b != b;
    if (is_nan_a || is_nan_b) return is_nan_a && is_nan_b ? 0 : farthest;
    I x = rank_of<F, I>(a), y = rank_of<F, I>(b);
    return x < y ? static_cast<uint64_t>(y) - static_cast<uint64_t>(x)
                 : static_cast<uint64_t>(x) - static_cast<uint64_t>(y);
}

template <class T> T load(const std::byte* data, int64_t i) {
    T value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return value;
}

double bf16_at(const std::byte* data, int64_t i) {
    return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(data, i)) << 16);
}

// Element i of a tensor of floats.
double real_at(const Tensor& x, int64_t i) {
    switch (x.dtype) {
    case DType::F64: return load<double>(x.data, i);
    case DType::F32: return load<float>(x.data, i);
    case DType::F16: return static_cast<double>(load<_Float16>(x.data, i));
    default: return bf16_at(x.data, i);
    }
}

// Representable numbers of the 16-bit types are counted as such: a float's lower bits are no part of them.
uint64_t ulp_at(const Tensor& a, const Tensor& b, int64_t i) {
    switch (a.dtype) {
    case DType::F64: return ulp_distance(load<double>(a.data, i), load<double>(b.data, i));
    case DType::F32: return ulp_distance(load<float>(a.data, i), load<float>(b.data, i));
    case DType::F16: return distance<_Float16, int16_t>(load<_Float16>(a.data, i), load<_Float16>(b.data, i));
    default:
        const uint64_t floats =
            distance<float, int32_t>(static_cast<float>(bf16_at(a.data, i)), static_cast<float>(bf16_at(b.data, i)));
        return floats == farthest ? floats : floats >> 16;
    }
}

std::string integer_text(const Tensor& x, int64_t i) {
    switch (x.dtype) {
    case DType::I64: return std::to_string(load<int64_t>(x.data, i));
    case DType::I32: return std::to_string(load<int32_t>(x.data, i));
    case DType::I16: return std::to_string(load<int16_t>(x.data, i));
    case DType::I8: return std::to_string(load<int8_t>(x.data, i));
    case DType::U64: return std::to_string(load<uint64_t>(x.data, i));
    case DType::U32: return std::to_string(load<uint32_t>(x.data, i));
    case DType::U16: return std::to_string(load<uint16_t>(x.data, i));
    case DType::U8: return std::to_string(load<uint8_t>(x.data, i));
    case DType::Bool: return x.data[i] == std::byte{0} ? "false" : "true";
    default: return "?";
    }
}

std::string element_text(const Tensor& x, int64_t i) {
    if (x.dtype == DType::String) return quoted(x.strings->at(static_cast<size_t>(i)));
    if (x.dtype == DType::F32) return fmt::format("{}", load<float>(x.data, i));
    return is_floating(x.dtype) ? fmt::format("{}", real_at(x, i)) : integer_text(x, i);
}

// Of integers and bools: in floating point, as it only says how far.
double magnitude_of_difference(const Tensor& a, const Tensor& b, int64_t i) {
    if (a.dtype == DType::U64) {
        auto x = load<uint64_t>(a.data, i), y = load<uint64_t>(b.data, i);
        return static_cast<double>(x < y ? y - x : x - y);
    }
    auto value = [i](const Tensor& t) {
        return t.dtype == DType::Bool ? (t.data[i] == std::byte{0} ? 0.0 : 1.0) : std::stod(integer_text(t, i));
    };
    return std::abs(value(a) - value(b));
}

// One pair of elements.
struct Pair {
    bool is_equal, passes;
    double absolute = 0, relative = 0;
    uint64_t ulp = 0;
    double badness = 0; // how far beyond what is allowed
};

Pair compare_reals(const Tensor& actual, const Tensor& expected, int64_t i, const Tolerance& tolerance) {
    double a = real_at(actual, i), e = real_at(expected, i);
    if (a == e || (std::isnan(a) && std::isnan(e))) return {.is_equal = true, .passes = true};
    Pair pair{.is_equal = false, .passes = false};
    pair.ulp = ulp_at(actual, expected, i);
    pair.absolute = std::isfinite(a) && std::isfinite(e) ? std::abs(a - e) : infinity;
    pair.relative = e == 0 ? 0 : std::isfinite(pair.absolute) ? pair.absolute / std::abs(e) : infinity;
    double allowed = tolerance.absolute + tolerance.relative * std::abs(e);
    pair.passes =
        (std::isfinite(pair.absolute) && pair.absolute <= allowed) || (tolerance.ulp && pair.ulp <= *tolerance.ulp);
    pair.badness = !std::isfinite(pair.absolute) ? infinity
                   : allowed > 0                 ? pair.absolute / allowed
                                                 : static_cast<double>(pair.ulp);
    return pair;
}

bool same_element(const Tensor& a, const Tensor& b, int64_t i) {
    if (a.dtype == DType::String) return (*a.strings)[static_cast<size_t>(i)] == (*b.strings)[static_cast<size_t>(i)];
    if (a.dtype == DType::Bool) return (a.data[i] == std::byte{0}) == (b.data[i] == std::byte{0});
    size_t bytes = size_of(a.dtype), at = static_cast<size_t>(i) * bytes;
    return std::memcmp(a.data + at, b.data + at, bytes) == 0;
}

Pair compare_exactly(const Tensor& actual, const Tensor& expected, int64_t i) {
    if (same_element(actual, expected, i)) return {.is_equal = true, .passes = true};
    bool is_number = is_integer(actual.dtype) || actual.dtype == DType::Bool;
    double absolute = is_number ? magnitude_of_difference(actual, expected, i) : infinity;
    return {.is_equal = false, .passes = false, .absolute = absolute, .badness = absolute};
}

} // namespace

uint64_t ulp_distance(double a, double b) { return distance<double, int64_t>(a, b); }
uint64_t ulp_distance(float a, float b) { return distance<float, int32_t>(a, b); }

double largest_magnitude(const Tensor& x) {
    double largest = 0;
    if (!is_floating(x.dtype)) return largest;
    for (int64_t i = 0; i < x.count(); i++)
        if (double e = std::abs(real_at(x, i)); std::isfinite(e)) largest = std::max(largest, e);
    return largest;
}

double part_of_largest(double difference, const Tensor& x) {
    const double largest = largest_magnitude(x);
    return largest > 0 ? difference / largest : 0;
}

Tolerance default_tolerance(const Tensor& expected) {
    if (!is_floating(expected.dtype)) return {};
    double largest = largest_magnitude(expected);
    switch (expected.dtype) {
    case DType::F64: return {1e-12 * largest, 1e-9};
    case DType::F32: return {1e-5 * largest, 1e-3};
    case DType::F16: return {2e-3 * largest, 1e-2};
    default: return {2e-2 * largest, 5e-2};
    }
}

Difference compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
    Difference d;
    if (actual.dtype != expected.dtype || actual.shape != expected.shape) {
        d.mismatch = fmt::format("it is {}, expected {}", type_text(actual), type_text(expected));
        return d;
    }
    d.count = actual.count();
    double sum = 0, worst = -1;
    for (int64_t i = 0; i < d.count; i++) {
        Pair pair = is_floating(actual.dtype) ? compare_reals(actual, expected, i, tolerance)
                                              : compare_exactly(actual, expected, i);
        if (pair.is_equal) continue;
        d.unequal++;
        d.outside += !pair.passes;
        d.largest_absolute = std::max(d.largest_absolute, pair.absolute);
        d.largest_relative = std::max(d.largest_relative, pair.relative);
        d.largest_ulp = std::max(d.largest_ulp, pair.ulp);
        sum += pair.absolute;
        if (pair.badness <= worst) continue;
        worst = pair.badness;
        d.at = i;
    }
    if (d.count > 0) d.mean_absolute = sum / static_cast<double>(d.count);
    if (d.at) {
        d.actual = element_text(actual, *d.at);
        d.expected = element_text(expected, *d.at);
    }
    return d;
}

std::string index_text(int64_t offset, const std::vector<int64_t>& shape) {
    std::vector<int64_t> index(shape.size());
    for (size_t i = shape.size(); i-- > 0;) {
        index[i] = offset % shape[i];
        offset /= shape[i];
    }
    return fmt::format("[{}]", fmt::join(index, ","));
}

std::string type_text(const Tensor& tensor) {
    return fmt::format("{}[{}]", name(tensor.dtype), fmt::join(tensor.shape, ","));
}

} // namespace cuvil::evaluation
