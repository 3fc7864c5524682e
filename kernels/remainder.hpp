#pragma once
// What is left of a division. Of integers nothing traps; of floats the remainder is exact.
#include "kernels/arithmetic.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// A float without its sign as mantissa * 2^exponent, up to a factor that all of its type share.
template <class T> struct FloatParts {
    u64 mantissa;
    i64 exponent;
};

template <class T> INLINE FloatParts<T> float_parts(T x) {
    constexpr int bits = FloatFormat<T>::mantissa_bits;
    const auto word = bits_as<unsigned_of<T>>(x);
    const u64 exponent = (word >> bits) & ((u64(1) << (sizeof(T) * 8 - 1 - bits)) - 1);
    const u64 fraction = word & ((u64(1) << bits) - 1);
    return exponent == 0 ? FloatParts<T>{fraction, 1} : FloatParts<T>{fraction | u64(1) << bits, i64(exponent)};
}

// C's fmod: long division, as many bits at a time as 64 leave room for.
template <class T> [[gnu::noinline]] T float_rem(T a, T b) {
    constexpr i64 room = 63 - FloatFormat<T>::mantissa_bits;
    if (!(abs(a) < infinity_of<T>) || b == T(0) || b != b) {
        return nan_of<T>;
    }
    const FloatParts<T> dividend = float_parts(a), divisor = float_parts(b);
    if (dividend.exponent < divisor.exponent || abs(b) == infinity_of<T>) {
        return a;
    }
    u64 rest = dividend.mantissa % divisor.mantissa;
    for (i64 left = dividend.exponent - divisor.exponent; left > 0 && rest != 0; left -= room) {
        rest = (rest << (left < room ? left : room)) % divisor.mantissa;
    }
    // In two exact steps, since the factor alone may be smaller than any number.
    const i64 exponent = divisor.exponent - FloatFormat<T>::bias - FloatFormat<T>::mantissa_bits;
    using I = signed_of<T>;
    const T size = T(rest) * power_of_two<T>(I(exponent / 2)) * power_of_two<T>(I(exponent - exponent / 2));
    return copy_sign(size, a);
}

// What is left of `div`, with the sign of a. Integers: 0 where b is 0. Floats: NaN where b is 0 or a infinite.
template <class V> INLINE V rem(V a, V b) {
    using T = element_of<V>;
    if constexpr (!is_float<T>) {
        V rest = a % safe_divisor(a, b);
        return select(b == V(T(0)), V(T(0)), rest);
    } else if constexpr (is_vector<V>) {
        V rest = a;
        for (i64 i = 0; i < lane_count; i++) {
            rest[i] = float_rem<T>(a[i], b[i]);
        }
        return rest;
    } else {
        return float_rem<T>(a, b);
    }
}

// a - b * floor(a / b), with the sign of b. Integers: 0 where b is 0. Floats: as `rem`; an infinite b leaves a, or is
// the result where the signs differ.
template <class V> INLINE V mod(V a, V b) {
    using T = element_of<V>;
    V rest = rem(a, b);
    if constexpr (is_float<T>) {
        auto other_sign = (rest != V(T(0))) & ((rest < V(T(0))) != (b < V(T(0))));
        rest = select(other_sign, rest + b, rest);
        return select(rest == V(T(0)), copy_sign(rest, b), rest);
    } else if constexpr (is_signed<T>) {
        auto other_sign = (rest != V(T(0))) & ((rest ^ b) < V(T(0)));
        return select(other_sign, add(rest, b), rest);
    } else {
        return rest;
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
