#pragma once
// The functions that expressions over elements are made of. Each takes a scalar or a vector of 16 lanes (of f32, f64 or
// integers where that makes sense), and gives every lane the bits that the scalar would have: no branch, no libm, only
// arithmetic that IEEE 754 and our own choice of polynomials fix. A comparison gives bool, or vec<u8> with 0 and 1.
//
// Largest errors found on levels with fma, in ulp, by tests/unit/kernels_math_test.cpp (without fma up to 2.4):
//            exp    log    tanh   sigmoid  erf    sin    cos    pow
//     f32    0.99   0.81   1.61   1.43     1.44   1.43   1.40   0.501
//     f64    0.97   0.84   1.77   1.42     1.44   1.44   1.49   1.37
// sin and cos: for |x| <= 10^6; beyond, they lose accuracy. inf, NaN, signed zeros and denormals come out as from libm.
#include "kernels/vector.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

template <class T> struct FloatFormat;
template <> struct FloatFormat<f32> {
    static constexpr i32 mantissa_bits = 23;
    static constexpr i32 bias = 127;
    static constexpr f32 smallest_normal = 0x1p-126f;
    static constexpr u32 sign_bit = 0x80000000u;
};
template <> struct FloatFormat<f64> {
    static constexpr i64 mantissa_bits = 52;
    static constexpr i64 bias = 1023;
    static constexpr f64 smallest_normal = 0x1p-1022;
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
template <class V> INLINE auto isinf(V v) {
    using T = element_of<V>;
    return truth((v == V(infinity_of<T>)) | (v == V(-infinity_of<T>)));
}

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

// Integers: what is left of `div`, with the sign of a; 0 where b is 0.
template <class V> INLINE V rem(V a, V b) {
    using T = element_of<V>;
    V rest = a % safe_divisor(a, b);
    return select(b == V(T(0)), V(T(0)), rest);
}

// Integers: a - b * floor(a / b), with the sign of b; 0 where b is 0.
template <class V> INLINE V mod(V a, V b) {
    using T = element_of<V>;
    V rest = rem(a, b);
    if constexpr (is_signed<T>) {
        auto other_sign = (rest != V(T(0))) & ((rest ^ b) < V(T(0)));
        rest = select(other_sign, add(rest, b), rest);
    }
    return rest;
}

// Rounded down; a / 0 is 0.
template <class V> INLINE V floor_div(V a, V b) {
    using T = element_of<V>;
    if constexpr (is_float<T>) {
        return __builtin_elementwise_floor(a / b);
    } else {
        V quotient = div(a, b);
        if constexpr (is_signed<T>) {
            auto inexact_and_negative = (rem(a, b) != V(T(0))) & ((a ^ b) < V(T(0)));
            quotient = select(inexact_and_negative, sub(quotient, V(T(1))), quotient);
        }
        return quotient;
    }
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

// ---- Polynomials

// c[0] + c[1] x + c[2] x^2 + ...
template <class V, int N> INLINE V polynomial(V x, const element_of<V> (&c)[N]) {
    V sum = V(c[N - 1]);
    UNROLL for (int i = N - 2; i >= 0; i--) { sum = fma(sum, x, V(c[i])); }
    return sum;
}

// 2^n, for n in the range of normal numbers; anything else for other n.
template <class V, class N> INLINE V power_of_two(N n) {
    using Format = FloatFormat<element_of<V>>;
    using U = unsigned_of<V>;
    using Word = element_of<U>;
    return bits_as<V>((bits_as<U>(n) + U(Word(Format::bias))) << U(Word(Format::mantissa_bits)));
}

template <class T> struct ExpConstants;
template <> struct ExpConstants<f32> {
    static constexpr f32 lowest = -104.0f, highest = 89.0f;
    static constexpr f32 ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    static constexpr f32 integer_shift = 0x1.8p23f;
    // (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, fitted for the least relative error of e^r.
    static constexpr f32 tail[] = {0.49999994f, 0.16666521f, 0.041668389f, 0.0083687073f, 0.0013814543f};
};
template <> struct ExpConstants<f64> {
    static constexpr f64 lowest = -746.0, highest = 710.0;
    static constexpr f64 ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
    static constexpr f64 integer_shift = 0x1.8p52;
    // The Taylor series: 1 / 2!, 1 / 3!, ...
    static constexpr f64 tail[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                   1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                   1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
};

// e^x = 2^n (1 + rest), where |rest| < 0.42.
template <class V> struct ExpParts {
    signed_of<V> n;
    V rest;
};

// x in [lowest, highest], or NaN, for which the rest is NaN.
template <class V> INLINE ExpParts<V> exp_parts(V x) {
    using T = element_of<V>;
    using C = ExpConstants<T>;
    using U = unsigned_of<V>;
    // Adding 1.5 * 2^mantissa leaves the nearest integer in the low bits of the sum.
    V shifted = fma(x, V(T(1.44269504088896340736)), V(C::integer_shift));
    V n = shifted - V(C::integer_shift);
    V r = fma(n, V(-C::ln2_high), x);
    r = fma(n, V(-C::ln2_low), r);
    V rest = fma(r * r, polynomial(r, C::tail), r);
    return {bits_as<signed_of<V>>(bits_as<U>(shifted) - bits_as<U>(V(C::integer_shift))), rest};
}

template <class V> INLINE V exp(V x) {
    using T = element_of<V>;
    using C = ExpConstants<T>;
    x = select(x < V(C::lowest), V(C::lowest), x);
    x = select(x > V(C::highest), V(C::highest), x);
    auto parts = exp_parts(x);
    // Two factors: either is normal, and the second rounds a denormal result once.
    auto half = parts.n >> decltype(parts.n)(1);
    V scaled = (V(T(1)) + parts.rest) * power_of_two<V>(half);
    return scaled * power_of_two<V>(parts.n - half);
}

template <class T> struct LogConstants;
template <> struct LogConstants<f32> {
    static constexpr u32 sqrt_half = 0x3f3504f3u;
    static constexpr f32 ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    static constexpr f32 tail[] = {2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9};
};
template <> struct LogConstants<f64> {
    static constexpr u64 sqrt_half = 0x3fe6a09e667f3bcdull;
    static constexpr f64 ln2_high = 0x1.62e42fefa0000p-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
    static constexpr f64 tail[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                   2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
};

// x = 2^exponent (1 + fraction), with 1 + fraction in [sqrt(1/2), sqrt(2)).
template <class V> struct LogParts {
    V exponent, fraction;
};

// x positive and finite; anything for others.
template <class V> INLINE LogParts<V> log_parts(V x) {
    using T = element_of<V>;
    using Format = FloatFormat<T>;
    using U = unsigned_of<V>;
    using I = signed_of<V>;
    using Word = element_of<U>;
    constexpr Word lift = Word(Format::mantissa_bits);
    auto denormal = x < V(Format::smallest_normal);
    x = select(denormal, x * power_of_two<V>(I(element_of<I>(lift))), x);
    U word = bits_as<U>(x) - U(LogConstants<T>::sqrt_half);
    V exponent = convert<T>(bits_as<I>(word) >> I(element_of<I>(lift)));
    exponent = select(denormal, exponent - V(T(lift)), exponent);
    V m = bits_as<V>((word & U((Word(1) << lift) - 1)) + U(LogConstants<T>::sqrt_half));
    return {exponent, m - V(T(1))};
}

// log(0) is -inf; of a negative number it is NaN.
template <class V> INLINE V log(V x) {
    using T = element_of<V>;
    using C = LogConstants<T>;
    auto [exponent, f] = log_parts(x);
    // With s = f / (2 + f): log(1 + f) = 2 atanh(s) = f - s (f - s^2 (2/3 + 2/5 s^2 + ...)).
    V s = f / (V(T(2)) + f);
    V z = s * s;
    V correction = s * (f - z * polynomial(z, C::tail)) - exponent * V(C::ln2_low);
    V result = fma(exponent, V(C::ln2_high), f - correction);
    result = select(x == V(infinity_of<T>), x, result);
    result = select(x == V(T(0)), V(-infinity_of<T>), result);
    result = select(x < V(T(0)), V(nan_of<T>), result);
    return select(nan_mask(x), x, result);
}

// log(1 + x), accurate for small x too: what 1 + x loses to rounding is made good by x / ((1 + x) - 1).
template <class V> INLINE V log1p(V x) {
    using T = element_of<V>;
    V sum = V(T(1)) + x;
    V result = log(sum) * (x / (sum - V(T(1))));
    result = select(x < V(T(-1)), V(nan_of<T>), result);
    auto as_it_is = (sum == V(T(1))) | (sum == V(infinity_of<T>)) | nan_mask(x);
    return select(as_it_is, x, result);
}

// n / (a + b), where a >= |b|, with the rounding error of the sum taken back.
template <class V> INLINE V divide_by_sum(V n, V a, V b) {
    V sum = a + b;
    V lost = b - (sum - a);
    V inverse = V(element_of<V>(1)) / sum;
    V quotient = n * inverse;
    V rest = fma(-quotient, lost, fma(-quotient, sum, n));
    return fma(rest, inverse, quotient);
}

// With e = exp(2 |x|) - 1, accurate for small x too: tanh(|x|) = e / (e + 2) = 1 - 2 / (e + 2).
template <class V> INLINE V tanh(V x) {
    using T = element_of<V>;
    V twice = abs(x) * V(T(2));
    twice = select(twice > V(T(40)), V(T(40)), twice);
    auto parts = exp_parts(twice);
    V scale = power_of_two<V>(parts.n);
    V e = fma(parts.rest, scale, scale - V(T(1)));
    auto large = e > V(T(2));
    V larger_one = select(large, e, V(T(2)));
    V smaller_one = select(large, V(T(2)), e);
    V quotient = divide_by_sum(smaller_one, larger_one, smaller_one);
    return copy_sign(select(large, V(T(1)) - quotient, quotient), x);
}

// 1 / (1 + exp(-x)). The exponential never overflows, so the left tail is right down to denormals.
template <class V> INLINE V sigmoid(V x) {
    using T = element_of<V>;
    V e = exp(-abs(x));
    return divide_by_sum(select(x < V(T(0)), e, V(T(1))), V(T(1)), e);
}

template <class T> struct ErfConstants;
template <> struct ErfConstants<f32> {
    static constexpr f32 highest = 4.0f;
    static constexpr f32 small[] = {0.12837916591226271f,     -0.376126271353822288f,  0.112836001694614896f,
                                    -0.0268544442980687595f,  0.00518953477396703025f, -0.00080208362311283944f,
                                    0.0000788910269230288254f};
    static constexpr f32 large[] = {0.231792607163029333f,  0.166049599730934346f, 0.446855598978454293f,
                                    -0.327160079114110795f, 0.668687220964656161f, -0.186126599984025534f};
};
template <> struct ErfConstants<f64> {
    static constexpr f64 highest = 6.0;
    static constexpr f64 small[] = {0.12837916709551257,     -0.376126389031835464,     0.112837916709452461,
                                    -0.0268661706432751689,  0.0052239776074155175,     -0.00085483259893435589,
                                    0.000120552953106691456, -0.0000149247444871494682, 1.64475156416749085e-6,
                                    -1.62091612575584201e-7, 1.37229165158800543e-8,    -7.80108343517141473e-10};
    static constexpr f64 large[] = {0.225680629613091672, 0.225549298132328311,  0.20917252510496393,
                                    0.159815042119771624, 0.182336833839515921,  -0.161566732208798703,
                                    0.660822746918580498, -1.38274840369141186,  2.18000381486001784,
                                    -2.65827611902409492, 2.28384888607110709,   -1.3171644891939736,
                                    0.487812042531461148, -0.105432611902950924, 0.0101465318095933604};
};

// Below 1: x + x P(x^2). Above: 1 - exp(-x^2) t Q(t) with t = 1 / (1 + 0.4 |x|). P and Q are our own least-error fits.
template <class V> INLINE V erf(V x) {
    using T = element_of<V>;
    using C = ErfConstants<T>;
    V a = abs(x);
    V a_capped = select(a > V(C::highest), V(C::highest), a);
    V near = fma(a_capped, polynomial(a_capped * a_capped, C::small), a_capped);
    V t = V(T(1)) / fma(a_capped, V(T(0.4)), V(T(1)));
    V far = V(T(1)) - exp(-(a_capped * a_capped)) * (t * polynomial(t, C::large));
    return copy_sign(select(a_capped < V(T(1)), near, far), x);
}

// ---- Sine and cosine

template <class T> struct TrigConstants;
template <> struct TrigConstants<f32> {
    static constexpr f32 sine[] = {-0.16666666f, 0.0083333310f, -0.00019840874f, 2.7525562e-6f};
    static constexpr f32 cosine[] = {-0.5f, 0.041666668f, -0.0013888889f, 0.000024801587f, -2.7557319e-7f};
};
template <> struct TrigConstants<f64> {
    static constexpr f64 sine[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                                   -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    static constexpr f64 cosine[] = {-1.0 / 2,       1.0 / 24,        -1.0 / 720,         1.0 / 40320,
                                     -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
};

// The sine of x + quarter_turns * pi / 2. What is left of x after the nearest multiple of pi / 2 is found in f64.
template <class V> INLINE V sine_shifted(V x, int quarter_turns) {
    using T = element_of<V>;
    using C = TrigConstants<T>;
    using U = unsigned_of<V>;
    using Word = element_of<U>;
    auto wide = convert<f64>(x);
    using W = decltype(wide);
    W shifted = fma(wide, W(0.636619772367581343), W(0x1.8p52));
    W n = shifted - W(0x1.8p52);
    // pi / 2 in three parts; the products of the first two with an integer below 2^20 are exact even without fma.
    wide = fma(n, W(-0x1.921fb544p+0), wide);
    wide = fma(n, W(-0x1.0b4611a6p-34), wide);
    wide = fma(n, W(-0x1.3198a2e037073p-69), wide);
    // Holds for all x that are in range; keeps the result of others between -1 and 1.
    wide = select(wide > W(0.8), W(0.8), wide);
    wide = select(wide < W(-0.8), W(-0.8), wide);
    V r = convert<T>(wide);
    V z = r * r;
    V sine = fma(r * z, polynomial(z, C::sine), r);
    V cosine = fma(z, polynomial(z, C::cosine), V(T(1)));
    U quadrant = convert<Word>(bits_as<unsigned_of<W>>(shifted)) + U(Word(quarter_turns));
    V result = select((quadrant & U(Word(1))) != U(Word(0)), cosine, sine);
    return select((quadrant & U(Word(2))) != U(Word(0)), -result, result);
}

template <class V> INLINE V sin(V x) {
    V result = sine_shifted(x, 0);
    return select(x == V(element_of<V>(0)), x, result);
}

template <class V> INLINE V cos(V x) { return sine_shifted(x, 1); }

// ---- Power

// The unevaluated sum of two f64, the second below the last bit of the first.
template <class V> struct Pair {
    V high, low;
};

template <class V> INLINE Pair<V> exact_product(V a, V b) {
    V high = a * b;
    if constexpr (has_fma) {
        return {high, fma(a, b, -high)};
    } else {
        // Veltkamp's and Dekker's splitting into halves whose products are exact.
        V a_scaled = a * V(134217729.0), b_scaled = b * V(134217729.0);
        V a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
        V a_low = a - a_high, b_low = b - b_high;
        return {high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
    }
}

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
    V factor = exp(high);
    V result = select(usual & (factor < V(infinity_of<f64>)), fma(factor, low, factor), factor);
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
