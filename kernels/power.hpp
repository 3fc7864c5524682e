#pragma once
// Powers, found through logarithms of twice the precision.
#include "kernels/exponential.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// a + b where |a| >= |b|, or a is 0.
template <class V> INLINE Pair<V> exact_sum(V a, V b) {
    V high = a + b;
    return {high, b - (high - a)};
}

// The logarithm of x (f64, positive and finite) with an error near 2^-63 of it.
template <class V> INLINE Pair<V> log_pair(V x) {
    auto [exponent, f] = log_parts(x);
    // s = f / (2 + f), as a pair.
    Pair<V> below = exact_sum(V(2.0), f);
    V s_high = f / below.high;
    Pair<V> back = exact_product(s_high, below.high);
    V s_low = ((f - back.high) - back.low - s_high * below.low) / below.high;
    Pair<V> s = exact_sum(s_high, s_low);
    // s^2, and the series s^2 (2/3 + 2/5 s^2 + ...) of which only the first term needs the pair.
    Pair<V> square = exact_product(s.high, s.high);
    square.low = fma(V(2.0) * s.high, s.low, square.low);
    static constexpr f64 tail[] = {2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                                   2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
    Pair<V> third = exact_product(square.high, V(0x1.5555555555555p-1));
    third.low = third.low + square.high * V(0x1.5555555555555p-55) + square.low * V(0x1.5555555555555p-1);
    V rest = square.high * square.high * polynomial(square.high, tail);
    Pair<V> series = exact_sum(third.high, rest);
    series.low = series.low + third.low;
    // log(1 + f) = 2 s + s series.
    Pair<V> product = exact_product(s.high, series.high);
    product.low = product.low + s.high * series.low + s.low * series.high;
    Pair<V> fraction = exact_sum(V(2.0) * s.high, product.high);
    fraction.low = fraction.low + (V(2.0) * s.low + product.low);
    // Add exponent * ln 2; the first part's product is exact.
    V scaled_high = exponent * V(LogConstants<f64>::ln2_high);
    Pair<V> sum = exact_sum(scaled_high, fraction.high);
    V low = sum.low + fma(exponent, V(LogConstants<f64>::ln2_low), fraction.low);
    return exact_sum(sum.high, low);
}

// e^(x + low) for f64, with an error near half an ulp, so that whole powers of whole numbers come out as such.
template <class V> INLINE V exp_pair(V x, V low) {
    using C = ExpConstants<f64>;
    x = select(x < V(C::lowest), V(C::lowest), x);
    x = select(x > V(C::highest), V(C::highest), x);
    V shifted = fma(x, V(1.44269504088896340736), V(C::integer_shift));
    V n = shifted - V(C::integer_shift);
    // r and what rounding takes from it.
    V t = fma(n, V(-C::ln2_high), x);
    Pair<V> product = exact_product(n, V(C::ln2_low));
    V r = t - product.high;
    V lost = ((t - r) - product.high) - product.low;
    Pair<V> sum = exact_sum(V(1.0), r);
    V tail = fma(r * r, polynomial(r, C::tail), sum.low);
    V scaled = sum.high + fma(sum.high + tail, lost + low, tail);
    using U = unsigned_of<V>;
    auto whole = bits_as<signed_of<V>>(bits_as<U>(shifted) - bits_as<U>(V(C::integer_shift)));
    auto half = whole >> decltype(whole)(1);
    return scaled * power_of_two<V>(half) * power_of_two<V>(whole - half);
}

template <class V> INLINE V pow_float(V x, V y) {
    V size = abs(x);
    Pair<V> logarithm = log_pair(size);
    Pair<V> power = exact_product(y, logarithm.high);
    power.low = fma(y, logarithm.low, power.low);
    // Where the logarithm or the power leaves the numbers, only the high parts mean something.
    V limit = V(1000.0);
    V high = y * log(size);
    V low = V(0.0);
    auto usual = (abs(power.high) < limit) & (size > V(0.0)) & (size < V(infinity_of<f64>));
    high = select(usual, power.high, high);
    // Splitting a huge y without fma overflows; the power then is that of a base so near to 1 that its low part is
    // nothing.
    low = select(usual & (power.low == power.low), power.low, low);
    V result = exp_pair(high, low);
    auto whole = trunc(y) == y;
    V half = y * V(0.5);
    auto odd = whole & (trunc(half) != half);
    auto negative = bits_as<signed_of<V>>(x) < signed_of<V>(0);
    result = select(negative & odd, -result, result);
    result = select((x < V(0.0)) & (whole == 0) & (x > V(-infinity_of<f64>)), V(nan_of<f64>), result);
    result = select(nan_mask(x), x, select(nan_mask(y), y, result));
    result = select((x == V(-1.0)) & (abs(y) == V(infinity_of<f64>)), V(1.0), result);
    return select((y == V(0.0)) | (x == V(1.0)), V(1.0), result);
}

// x to the power y, with the special cases of C's pow. Integers wrap; a negative power of an integer is 0 unless the
// base is 1 or -1.
template <class V> INLINE V pow(V x, V y) {
    using T = element_of<V>;
    if constexpr (is_same<T, f64>) {
        return pow_float(x, y);
    } else if constexpr (is_same<T, f32>) {
        return convert<f32>(pow_float(convert<f64>(x), convert<f64>(y)));
    } else {
        V one = V(T(1));
        V result = one;
        V base = x;
        V left = y;
        for (unsigned i = 0; i < sizeof(T) * 8; i++) {
            result = select((left & one) != V(T(0)), mul(result, base), result);
            base = mul(base, base);
            left = left >> one;
        }
        if constexpr (is_signed<T>) {
            V alternating = select((y & one) != V(T(0)), x, one);
            V of_negative = select(x == one, one, select(x == V(T(-1)), alternating, V(T(0))));
            result = select(y < V(T(0)), of_negative, result);
        }
        return result;
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
