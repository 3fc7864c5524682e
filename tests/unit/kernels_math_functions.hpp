#pragma once
// The functions of math.hpp of one operand, their exact values and how far off they may be: for the test that holds
// them to it and for the program that measures them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

template <class T> constexpr const char* type_name = std::is_same_v<T, float> ? " f32" : " f64";

// The distance of y from the exact value in units of the last place of the float that is nearest to it; 0 if both are
// NaN or the same infinity, huge if only one is.
template <class T> double ulps(T y, long double exact) {
    const T nearest = static_cast<T>(exact);
    if (std::isnan(nearest) || std::isnan(y)) {
        return std::isnan(nearest) && std::isnan(y) ? 0 : 1e30;
    }
    if (y == nearest && std::signbit(y) == std::signbit(nearest) && (std::isinf(y) || y == 0)) {
        return 0;
    }
    if (std::isinf(nearest)) {
        // The value just below infinity is one step away.
        return std::isinf(y) ? 1e30 : 1 + static_cast<double>(std::numeric_limits<T>::max() - std::abs(y));
    }
    int exponent;
    std::frexp(nearest, &exponent);
    exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
    const long double unit = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
    return static_cast<double>(std::abs(static_cast<long double>(y) - exact) / unit);
}

// Of products with a factor that underflows, as silu and its like are, the tail has fewer digits.
inline bool above_the_tail(double x) { return !(x < -80); }

inline long double sigmoid(long double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

inline long double gelu_tanh(long double x) {
    return x * sigmoid(2 * std::sqrt(2 / std::numbers::pi_v<long double>) * (x + 0.044715L * x * x * x));
}

inline long double mish(long double x) {
    const long double e = std::exp(std::min(x, 60.0L)), m = e * (e + 2);
    return x * (m / (m + 2));
}

// The functions of one operand with the largest errors allowed, in ulp.
struct Function {
    const char* name;
    long double (*exact)(long double);
    double limit_f32, limit_f64;
    bool (*in_domain)(double) = nullptr;
};

inline const Function functions[] = {
    {"exp", [](long double v) { return std::exp(v); }, 1.0, 1.0},
    {"expm1", [](long double v) { return std::expm1(v); }, 1.6, 2.0},
    {"log", [](long double v) { return std::log(v); }, 1.0, 1.0},
    {"log1p", [](long double v) { return std::log1p(v); }, 1.6, 1.6},
    {"tanh", [](long double v) { return std::tanh(v); }, 1.8, 1.9},
    {"sigmoid", sigmoid, 1.6, 1.6},
    {"erf", [](long double v) { return std::erf(v); }, 1.6, 1.6},
    {"sin", [](long double v) { return std::sin(v); }, 1.6, 2.0},
    {"cos", [](long double v) { return std::cos(v); }, 1.6, 2.0},
    {"tan", [](long double v) { return std::tan(v); }, 3.2, 3.2},
    {"asin", [](long double v) { return std::asin(v); }, 1.8, 1.8},
    {"acos", [](long double v) { return std::acos(v); }, 1.3, 1.3},
    {"atan", [](long double v) { return std::atan(v); }, 2.1, 2.1},
    {"sinh", [](long double v) { return std::sinh(v); }, 2.5, 2.6},
    {"cosh", [](long double v) { return std::cosh(v); }, 1.6, 1.6},
    {"asinh", [](long double v) { return std::asinh(v); }, 2.2, 2.2},
    {"acosh", [](long double v) { return std::acosh(v); }, 2.8, 2.8},
    {"atanh", [](long double v) { return std::atanh(v); }, 2.5, 2.4},
    {"gelu", [](long double v) { return v * std::erfc(-v / std::sqrt(2.0L)) / 2; }, 9, 9,
     [](double x) { return !(x < -12); }},
    {"gelu_tanh", gelu_tanh, 40, 40, [](double x) { return !(x < -4); }},
    {"silu", [](long double v) { return v * sigmoid(v); }, 2.5, 2.5, above_the_tail},
    {"mish", mish, 5, 5, above_the_tail},
    {"sqrt", [](long double v) { return std::sqrt(v); }, 0.51, 0.51},
    {"relu", [](long double v) { return v < 0 ? 0 : v; }, 0, 0},
    {"round", [](long double v) { return std::nearbyint(v); }, 0, 0},
    {"floor", [](long double v) { return std::floor(v); }, 0, 0},
    {"sign", [](long double v) { return v > 0   ? 1
                                        : v < 0 ? -1
                                                : v; }, 0, 0},
};
