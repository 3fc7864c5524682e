#pragma once
// Comparisons, choice, arithmetic and conversion of a scalar or a vector of 16 lanes: what math.hpp says of all its
// functions holds here. Integers wrap and nothing traps. A comparison gives bool, or vec<u8> with 0 and 1.
#include "kernels/vector.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

template <class T> struct FloatFormat;
template <> struct FloatFormat<f32> {
    static constexpr i32 mantissa_bits = 23;
    static constexpr i32 bias = 127;
    static constexpr f32 smallest_normal = 0x1p-126f;
    static constexpr f32 splitter = 0x1p12f + 1; // leaves the upper half of the mantissa
    static constexpr u32 sign_bit = 0x80000000u;
};
template <> struct FloatFormat<f64> {
    static constexpr i64 mantissa_bits = 52;
    static constexpr i64 bias = 1023;
    static constexpr f64 smallest_normal = 0x1p-1022;
    static constexpr f64 splitter = 0x1p27 + 1;
    static constexpr u64 sign_bit = 0x8000000000000000ull;
};

template <class T> inline constexpr T infinity_of = T(__builtin_inff());
template <class T> inline constexpr T nan_of = T(__builtin_nanf(""));

// The ends of a type: what is less and what is greater than no value. Those of floats are the infinities.
template <class T> inline constexpr T lowest_of = is_signed<T> ? T(u64(1) << (sizeof(T) * 8 - 1)) : T(0);
template <> inline constexpr f32 lowest_of<f32> = -infinity_of<f32>;
template <> inline constexpr f64 lowest_of<f64> = -infinity_of<f64>;
template <> inline constexpr bool lowest_of<bool> = false;
template <class T> inline constexpr T highest_of = T(is_signed<T> ? ~(u64(1) << (sizeof(T) * 8 - 1)) : ~u64(0));
template <> inline constexpr f32 highest_of<f32> = infinity_of<f32>;
template <> inline constexpr f64 highest_of<f64> = infinity_of<f64>;
template <> inline constexpr bool highest_of<bool> = true;

// ---- Comparisons and choice

// The result of a comparison as a value: bool, or 0 and 1 in vec<u8>.
template <class C> INLINE auto truth(C c) {
    if constexpr (is_vector<C>) {
        return bits_as<vec<u8>>(convert<i8>(c)) & u8(1);
    } else {
        return static_cast<bool>(c);
    }
}

// What `select` takes, for lanes as wide as those of V, made from a truth value.
template <class V, class B> INLINE auto mask_of(B b) {
    if constexpr (is_vector<V>) {
        return convert<element_of<signed_of<V>>>(b) != 0;
    } else {
        return b != 0;
    }
}

// Whether a lane is NaN, in the form that `select` takes.
template <class V> INLINE auto nan_mask(V v) { return v != v; }

template <class V> INLINE auto equal(V a, V b) { return truth(a == b); }
template <class V> INLINE auto less(V a, V b) { return truth(a < b); }
template <class V> INLINE auto less_equal(V a, V b) { return truth(a <= b); }
template <class V> INLINE auto greater(V a, V b) { return truth(a > b); }
template <class V> INLINE auto greater_equal(V a, V b) { return truth(a >= b); }
template <class V> INLINE auto isnan(V v) { return truth(v != v); }

// On truth values: bool, or vec<u8> with 0 and 1.
template <class B> INLINE B logical_and(B a, B b) { return a & b; }
template <class B> INLINE B logical_or(B a, B b) { return a | b; }
template <class B> INLINE B logical_xor(B a, B b) { return a ^ b; }
template <class B> INLINE B logical_not(B a) { return a ^ B(1); }

// c ? a : b, where c is a truth value.
template <class B, class V> INLINE V where(B c, V a, V b) { return select(mask_of<V>(c), a, b); }

// NaN if either is NaN.
template <class V> INLINE V maximum(V a, V b) {
    V larger_one = select(a > b, a, b);
    return select(a != a, a, larger_one);
}
template <class V> INLINE V minimum(V a, V b) {
    V smaller_one = select(a < b, a, b);
    return select(a != a, a, smaller_one);
}

// ---- Arithmetic. Integers wrap and nothing traps.

template <class V> INLINE V add(V a, V b) {
    if constexpr (is_vector<V> || is_float<V>) {
        return a + b;
    } else {
        return static_cast<V>(static_cast<u64>(a) + static_cast<u64>(b));
    }
}
template <class V> INLINE V sub(V a, V b) {
    if constexpr (is_vector<V> || is_float<V>) {
        return a - b;
    } else {
        return static_cast<V>(static_cast<u64>(a) - static_cast<u64>(b));
    }
}
template <class V> INLINE V mul(V a, V b) {
    if constexpr (is_vector<V> || is_float<V>) {
        return a * b;
    } else {
        return static_cast<V>(static_cast<u64>(a) * static_cast<u64>(b));
    }
}
template <class V> INLINE V neg(V a) {
    if constexpr (is_vector<V> || is_float<V>) {
        return -a;
    } else {
        return static_cast<V>(-static_cast<u64>(a));
    }
}

// A divisor that cannot trap: 1 where b is 0 and where the quotient would overflow.
template <class V> INLINE V safe_divisor(V a, V b) {
    using T = element_of<V>;
    V safe = select(b == V(T(0)), V(T(1)), b);
    if constexpr (is_signed<T>) {
        safe = select((a == V(lowest_of<T>)) & (b == V(T(-1))), V(T(1)), safe);
    }
    return safe;
}

// Floats: IEEE. Integers: rounded toward zero; a / 0 is 0, and lowest / -1 is lowest (it wraps).
template <class V> INLINE V div(V a, V b) {
    using T = element_of<V>;
    if constexpr (is_float<T>) {
        return a / b;
    } else {
        V quotient = a / safe_divisor(a, b);
        return select(b == V(T(0)), V(T(0)), quotient);
    }
}

// ---- Bits of integers

template <class V> INLINE V bitwise_and(V a, V b) { return a & b; }
template <class V> INLINE V bitwise_or(V a, V b) { return a | b; }
template <class V> INLINE V bitwise_xor(V a, V b) { return a ^ b; }
template <class V> INLINE V bitwise_not(V a) { return ~a; }

// A shift by less than 0 or by all bits and more leaves nothing but what is shifted in: zeros, or copies of the sign.
template <class V> INLINE V shift_left(V a, V b) {
    using T = element_of<V>;
    using U = unsigned_of<V>;
    constexpr element_of<U> bits = sizeof(T) * 8;
    U by = bits_as<U>(b);
    U shifted = static_cast<U>(bits_as<U>(a) << (by & U(bits - 1)));
    return bits_as<V>(select(by < U(bits), shifted, U(0)));
}
template <class V> INLINE V shift_right(V a, V b) {
    using T = element_of<V>;
    using U = unsigned_of<V>;
    constexpr element_of<U> bits = sizeof(T) * 8;
    U by = bits_as<U>(b);
    V shifted = static_cast<V>(a >> bits_as<V>(static_cast<U>(by & U(bits - 1))));
    V nothing = is_signed<T> ? static_cast<V>(a >> V(T(bits - 1))) : V(T(0));
    return select(by < U(bits), shifted, nothing);
}

// NaN stays NaN.
template <class V> INLINE V relu(V v) {
    using T = element_of<V>;
    return select(v < V(T(0)), V(T(0)), v);
}

// The lowest signed integer stays itself.
template <class V> INLINE V abs(V v) {
    using T = element_of<V>;
    if constexpr (is_float<T>) {
        return __builtin_elementwise_abs(v);
    } else if constexpr (is_signed<T>) {
        return select(v < V(T(0)), neg(v), v);
    } else {
        return v;
    }
}

// -1, 0 or 1; a zero keeps its sign, NaN stays NaN.
template <class V> INLINE V sign(V v) {
    using T = element_of<V>;
    V s = select(v > V(T(0)), V(T(1)), v);
    if constexpr (is_signed<T>) {
        s = select(v < V(T(0)), V(T(-1)), s);
    }
    return s;
}

template <class V> INLINE V sqrt(V v) { return __builtin_elementwise_sqrt(v); }

template <class V> INLINE V reciprocal(V v) {
    using T = element_of<V>;
    return V(T(1)) / v;
}

// Integers are already whole.
template <class V> INLINE V floor(V v) {
    if constexpr (is_float<element_of<V>>) {
        return __builtin_elementwise_floor(v);
    } else {
        return v;
    }
}
template <class V> INLINE V ceil(V v) {
    if constexpr (is_float<element_of<V>>) {
        return __builtin_elementwise_ceil(v);
    } else {
        return v;
    }
}
template <class V> INLINE V trunc(V v) {
    if constexpr (is_float<element_of<V>>) {
        return __builtin_elementwise_trunc(v);
    } else {
        return v;
    }
}
// Half to even.
template <class V> INLINE V round(V v) {
    if constexpr (is_float<element_of<V>>) {
        return __builtin_elementwise_roundeven(v);
    } else {
        return v;
    }
}

// The size of a with the sign of b.
template <class V> INLINE V copy_sign(V a, V b) { return __builtin_elementwise_copysign(a, b); }

// The unevaluated sum of two numbers, the second below the last bit of the first.
template <class V> struct Pair {
    V high, low;
};

template <class V> INLINE Pair<V> exact_product(V a, V b) {
    V high = a * b;
    if constexpr (has_fma) {
        return {high, fma(a, b, -high)};
    } else {
        // Veltkamp's and Dekker's splitting into halves whose products are exact.
        V factor = V(FloatFormat<element_of<V>>::splitter);
        V a_scaled = a * factor, b_scaled = b * factor;
        V a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
        V a_low = a - a_high, b_low = b - b_high;
        return {high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
    }
}

// 2^n, for n in the range of normal numbers; anything else for other n.
template <class V, class N> INLINE V power_of_two(N n) {
    using Format = FloatFormat<element_of<V>>;
    using U = unsigned_of<V>;
    using Word = element_of<U>;
    return bits_as<V>((bits_as<U>(n) + U(Word(Format::bias))) << U(Word(Format::mantissa_bits)));
}

// ---- Conversion

// To another element type, defined for every value: integers wrap; float to integer drops the fraction, saturates, and
// makes 0 of NaN; to bool is != 0 (so NaN is true); from bool gives 0 and 1.
// `From` is the element type of v; it has to be named only for lanes of bool, which are vec<u8> like those of u8 but
// need no other treatment.
template <class To, class V> INLINE auto cast(V v) {
    using From = element_of<V>;
    if constexpr (is_same<To, bool>) {
        return truth(v != V(From(0)));
    } else if constexpr (is_float<From> && !is_float<To>) {
        // 2^digits, the first float above the range of To; the lowest value of To is a float itself.
        constexpr int digits = sizeof(To) * 8 - is_signed<To>;
        constexpr From above = From(u64(1) << (digits - 1)) * From(2);
        constexpr From below = From(lowest_of<To>);
        auto in_range = (v >= V(below)) & (v < V(above));
        using R = typename Shape<V>::template over<To>;
        R result = convert<To>(select(in_range, v, V(From(0))));
        if constexpr (is_vector<V>) {
            using Lane = element_of<signed_of<R>>;
            result = select(convert<Lane>(v >= V(above)), R(highest_of<To>), result);
            return select(convert<Lane>(v < V(below)), R(lowest_of<To>), result);
        } else {
            result = select(v >= above, highest_of<To>, result);
            return select(v < below, lowest_of<To>, result);
        }
    } else {
        return convert<To>(v);
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
