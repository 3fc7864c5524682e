#pragma once
// Sine, cosine, tangent and their inverses, and the hyperbolic ones. docs/math.md has the largest errors.
#include "kernels/exponential.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// ---- What is left of an angle

// The nearest multiple of pi / 2 is `quadrant` * pi / 2, up to multiples of 2 pi; `rest` is what is left of x.
template <class W> struct Angle {
    W rest;
    signed_of<W> quadrant;
};

// 2 / pi in binary: 64 zeros, then the bits behind the point. Enough for every f64.
inline constexpr u64 two_over_pi[] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

// Any finite x of at least 2^-10, by exact integers: of x = m 2^e only the bits of 2 / pi matter that are neither so
// high that with m they make whole turns, nor so low that they are beyond what an f64 near a multiple of pi / 2 can
// show.
[[gnu::noinline]] inline Angle<f64> far_angle(f64 x) {
    const u64 word = bits_as<u64>(x);
    const u64 m = (word & ((u64(1) << 52) - 1)) | u64(1) << 52;
    const i64 exponent = static_cast<i64>(word >> 52 & 0x7ff);
    if (exponent == 0x7ff) {
        return {nan_of<f64>, 0};
    }
    // The first bit that counts has the weight 2, after the multiplication by m 2^e with e = exponent - 1075.
    const i64 first = 64 + exponent - 1075 - 2;
    const u64* words = two_over_pi + first / 64;
    const i64 shift = first % 64;
    u64 window[3];
    UNROLL for (int i = 0; i < 3; i++) {
        window[i] = shift == 0 ? words[i] : words[i] << shift | words[i + 1] >> (64 - shift);
    }
    using u128 = unsigned __int128;
    const u128 low = u128(m) * window[2];
    const u128 middle = u128(m) * window[1] + u64(low >> 64);
    const u64 high = m * window[0] + u64(middle >> 64);
    // The quadrant in two bits, then the fraction; half a quadrant and more belongs to the next one.
    i64 quadrant = static_cast<i64>(high >> 62);
    u128 fraction = u128(high << 2 | u64(middle) >> 62) << 64 | (u64(middle) << 2 | u64(low) >> 62);
    f64 sign = 1;
    if (fraction >> 127 != 0) {
        quadrant += 1;
        fraction = -fraction;
        sign = -1;
    }
    // In two parts, since the first of 26 bits times the first of pi / 2 is exact.
    const f64 upper = f64(u64(fraction >> 102)) * 0x1p-26;
    const f64 lower = f64(u64(fraction >> 64) & ((u64(1) << 38) - 1)) * 0x1p-64 + f64(u64(fraction)) * 0x1p-128;
    const f64 rest = sign * (upper * 0x1.921fb54p+0 + (upper * 0x1.10b4611a62633p-30 + lower * 0x1.921fb54442d18p+0));
    return x < 0 ? Angle<f64>{-rest, -quadrant} : Angle<f64>{rest, quadrant};
}

// x in f64. Beyond 10^6, which is rare, lane by lane.
template <class W> INLINE Angle<W> angle_of(W x) {
    W shifted = fma(x, W(0.636619772367581343), W(0x1.8p52));
    W n = shifted - W(0x1.8p52);
    // pi / 2 in three parts; the products of the first two with an integer below 2^20 are exact even without fma.
    W rest = fma(n, W(-0x1.921fb544p+0), x);
    rest = fma(n, W(-0x1.0b4611a6p-34), rest);
    rest = fma(n, W(-0x1.3198a2e037073p-69), rest);
    Angle<W> angle = {rest, bits_as<signed_of<W>>(shifted)};
    auto is_near = abs(x) <= W(1e6);
    if constexpr (is_vector<W>) {
        if (!__builtin_reduce_and(is_near)) {
            for (i64 i = 0; i < lane_count; i++) {
                if (!is_near[i]) {
                    const Angle<f64> far = far_angle(x[i]);
                    angle.rest[i] = far.rest;
                    angle.quadrant[i] = far.quadrant;
                }
            }
        }
    } else if (!is_near) {
        angle = far_angle(x);
    }
    return angle;
}

// ---- Sine, cosine, tangent

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

// Both of what is left of x, and whether x lies an odd number, and 2 or 3, quadrants on.
template <class V> struct SineAndCosine {
    V sine, cosine;
    unsigned_of<V> odd, opposite;
};

template <class V> INLINE SineAndCosine<V> sine_and_cosine(V x, int quarter_turns) {
    using T = element_of<V>;
    using C = TrigConstants<T>;
    using U = unsigned_of<V>;
    using Word = element_of<U>;
    auto angle = angle_of(convert<f64>(x));
    V r = convert<T>(angle.rest);
    V z = r * r;
    U quadrant = convert<Word>(angle.quadrant) + U(Word(quarter_turns));
    return {fma(r * z, polynomial(z, C::sine), r), fma(z, polynomial(z, C::cosine), V(T(1))), quadrant & U(Word(1)),
            quadrant & U(Word(2))};
}

// The sine of x + quarter_turns * pi / 2.
template <class V> INLINE V sine_shifted(V x, int quarter_turns) {
    using U = unsigned_of<V>;
    auto both = sine_and_cosine(x, quarter_turns);
    V result = select(both.odd != U(0), both.cosine, both.sine);
    return select(both.opposite != U(0), -result, result);
}

template <class V> INLINE V sin(V x) {
    V result = sine_shifted(x, 0);
    return select(x == V(element_of<V>(0)), x, result);
}

template <class V> INLINE V cos(V x) { return sine_shifted(x, 1); }

template <class V> INLINE V tan(V x) {
    using U = unsigned_of<V>;
    auto both = sine_and_cosine(x, 0);
    auto odd = both.odd != U(0);
    V result = select(odd, -both.cosine, both.sine) / select(odd, both.sine, both.cosine);
    return select(x == V(element_of<V>(0)), x, result);
}

// ---- Their inverses

// pi / 2 and pi / 4 as sums of two numbers, and (f(t) - t) / t^3 as a polynomial in t^2: of atan for |t| <= tan(pi /
// 8), of asin for |t| <= 1 / 2. The polynomials are our own least-error fits.
template <class T> struct InverseTrigConstants;
template <> struct InverseTrigConstants<f32> {
    static constexpr f32 half_pi = 0x1.921fb6p+0f, half_pi_low = -0x1.777a5cp-25f;
    static constexpr f32 atan[] = {-0.33332947f, 0.19977617f, -0.13876632f, 0.080502205f};
    static constexpr f32 asin[] = {0.16666752f, 0.07495307f, 0.045469612f, 0.024181793f, 0.04216441f};
};
template <> struct InverseTrigConstants<f64> {
    static constexpr f64 half_pi = 0x1.921fb54442d18p+0, half_pi_low = 0x1.1a62633145c07p-54;
    static constexpr f64 atan[] = {-0.3333333333333319,  0.19999999999952814,  -0.1428571428012087,
                                   0.11111110779778942,  -0.09090897654554726, 0.07692058421547633,
                                   -0.06663084074127808, 0.058477465017111895, -0.05038671037682044,
                                   0.03804867596877376,  -0.0178900189498539};
    static constexpr f64 asin[] = {
        0.1666666666666676,   0.07499999999970633,   0.04464285717477905,  0.030381942699392196, 0.02237221523398524,
        0.017351607419291232, 0.013980877566790702,  0.011398430370725623, 0.010783036829747622, 0.003695586394541952,
        0.021734506828701664, -0.021038364748167986, 0.03265382075404744};
};

// Beyond tan(pi / 8) by the angle's difference from pi / 4, beyond tan(3 pi / 8) by that from pi / 2.
template <class V> INLINE V atan(V x) {
    using T = element_of<V>;
    using C = InverseTrigConstants<T>;
    V a = abs(x), one = V(T(1)), zero = V(T(0));
    auto middle = a > V(T(0.41421356237309505)), high = a > V(T(2.4142135623730950));
    V t = select(high, -one, select(middle, a - one, a)) / select(high, a, select(middle, a + one, one));
    V base = select(high, V(C::half_pi), select(middle, V(C::half_pi / 2), zero));
    V base_low = select(high, V(C::half_pi_low), select(middle, V(C::half_pi_low / 2), zero));
    V z = t * t;
    return copy_sign(base + (t + fma(t * z, polynomial(z, C::atan), base_low)), x);
}

// asin(s) = s + tail, for the s that asin(x) and acos(x) are found from: |x| up to 1 / 2, beyond it the sine of half
// the angle between x and 1.
template <class V> struct AsinParts {
    V s, tail;
    decltype(V() > V()) beyond;
};

template <class V> INLINE AsinParts<V> asin_parts(V x) {
    using T = element_of<V>;
    V a = abs(x);
    auto beyond = a > V(T(0.5));
    V z = select(beyond, (V(T(1)) - a) * V(T(0.5)), a * a);
    V s = select(beyond, sqrt(z), a);
    return {s, s * z * polynomial(z, InverseTrigConstants<T>::asin), beyond};
}

// NaN beyond 1.
template <class V> INLINE V asin(V x) {
    using T = element_of<V>;
    using C = InverseTrigConstants<T>;
    auto [s, tail, beyond] = asin_parts(x);
    V two = V(T(2));
    V far = V(C::half_pi) - (two * s + (two * tail - V(C::half_pi_low)));
    return copy_sign(select(beyond, far, s + tail), x);
}

template <class V> INLINE V acos(V x) {
    using T = element_of<V>;
    using C = InverseTrigConstants<T>;
    auto [s, tail, beyond] = asin_parts(x);
    V two = V(T(2)), half = V(C::half_pi), half_low = V(C::half_pi_low);
    V far = two * select(x < V(T(0)), half - (s + (tail - half_low)), s + tail);
    V near = half - (x + (copy_sign(tail, x) - half_low));
    return select(beyond, far, near);
}

// ---- The hyperbolic ones

// e^x / 2, which leaves the numbers later than e^x. x >= 0.
template <class V> INLINE V half_exp(V x) {
    using T = element_of<V>;
    V limit = V(ExpConstants<T>::highest + T(1));
    auto parts = exp_parts(select(x > limit, limit, x));
    auto n = parts.n - decltype(parts.n)(1);
    auto half = n >> decltype(parts.n)(1);
    return (V(T(1)) + parts.rest) * power_of_two<V>(half) * power_of_two<V>(n - half);
}

template <class V> INLINE V sinh(V x) {
    using T = element_of<V>;
    V a = abs(x);
    V e = expm1(select(a > V(T(22)), V(T(22)), a));
    V near = V(T(0.5)) * (e + e / (e + V(T(1))));
    return copy_sign(select(a > V(T(22)), half_exp(a), near), x);
}

template <class V> INLINE V cosh(V x) {
    V e = half_exp(abs(x));
    return e + V(element_of<V>(0.25)) / e;
}

template <class V> INLINE V asinh(V x) {
    using T = element_of<V>;
    V a = abs(x), limit = V(T(0x1p28));
    V b = select(a > limit, limit, a);
    V square = b * b;
    V near = log1p(b + square / (V(T(1)) + sqrt(square + V(T(1)))));
    return copy_sign(select(a > limit, log(a) + V(T(0.69314718055994530942)), near), x);
}

// NaN below 1.
template <class V> INLINE V acosh(V x) {
    using T = element_of<V>;
    V limit = V(T(0x1p28));
    V t = select(x > limit, limit, x) - V(T(1));
    V near = log1p(t + sqrt(t * (t + V(T(2)))));
    V result = select(x > limit, log(x) + V(T(0.69314718055994530942)), near);
    return select(x < V(T(1)), V(nan_of<T>), result);
}

// NaN beyond 1.
template <class V> INLINE V atanh(V x) {
    using T = element_of<V>;
    V a = abs(x);
    V result = V(T(0.5)) * log1p(V(T(2)) * a / (V(T(1)) - a));
    return copy_sign(select(a > V(T(1)), V(nan_of<T>), result), x);
}

} // namespace CUVIL_ISA
} // namespace cuvil
