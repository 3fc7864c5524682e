#pragma once
// Exponentials, logarithms and what is made of them, by polynomials of our own. docs/math.md has the largest errors.
#include "kernels/arithmetic.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// ---- Polynomials

// c[0] + c[1] x + c[2] x^2 + ...
template <class V, int N> INLINE V polynomial(V x, const element_of<V> (&c)[N]) {
    V sum = V(c[N - 1]);
    UNROLL for (int i = N - 2; i >= 0; i--) { sum = fma(sum, x, V(c[i])); }
    return sum;
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

// exp(x) for x <= 0 in fewer steps, to the same bits.
template <class V> INLINE V exp_of_negative(V x) {
    using T = element_of<V>;
    using C = ExpConstants<T>;
    auto parts = exp_parts(select(x < V(C::lowest), V(C::lowest), x));
    using N = decltype(parts.n);
    // 2^n as 2^(n + lift), which is normal, and 2^-lift.
    constexpr element_of<N> lift = FloatFormat<T>::bias / 2;
    constexpr T lower = is_same<T, f32> ? T(0x1p-63) : T(0x1p-511);
    return (V(T(1)) + parts.rest) * power_of_two<V>(parts.n + N(lift)) * V(lower);
}

// exp(x) where that is a normal number and at most 1, with the same bits.
template <class V> INLINE V exp_to_normal(V x) {
    auto parts = exp_parts(x);
    return (V(element_of<V>(1)) + parts.rest) * power_of_two<V>(parts.n);
}

// exp(x) - 1, accurate for small x too.
template <class V> INLINE V expm1(V x) {
    using T = element_of<V>;
    V high = select(x > V(ExpConstants<T>::highest), V(ExpConstants<T>::highest), x);
    auto parts = exp_parts(select(high < V(T(-40)), V(T(-40)), high));
    // 2^n as two factors, since n may be one more than a number's largest exponent.
    auto half = parts.n >> decltype(parts.n)(1);
    V first = power_of_two<V>(half), second = power_of_two<V>(parts.n - half);
    // For n = 0 the rest is all there is; elsewhere 2^n - 1 is exact, or 1 is nothing.
    V scale = first * second;
    V usual = fma(parts.rest, scale, scale - V(T(1)));
    V large = (V(T(1)) + parts.rest) * first * second;
    V result = select(high > V(T(60)), large, usual);
    return select((x == V(T(0))) | nan_mask(x), x, result);
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

// log(1 + x), accurate for small x too: the logarithm of the rounded sum, and what rounding took from the sum.
template <class V> INLINE V log1p(V x) {
    using T = element_of<V>;
    V one = V(T(1)), sum = one + x;
    V lost = select(x > one, one - (sum - x), x - (sum - one));
    V result = log(sum) + lost / sum;
    result = select(x == V(T(-1)), V(-infinity_of<T>), result);
    result = select(x < V(T(-1)), V(nan_of<T>), result);
    auto as_it_is = (x == V(T(0))) | (sum == V(infinity_of<T>)) | nan_mask(x);
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
    V e = exp_of_negative(-abs(x));
    V result = divide_by_sum(select(x < V(T(0)), e, V(T(1))), V(T(1)), e);
    return select(nan_mask(x), x, result);
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
    V far = V(T(1)) - exp_of_negative(-(a_capped * a_capped)) * (t * polynomial(t, C::large));
    return copy_sign(select(a_capped < V(T(1)), near, far), x);
}

} // namespace CUVIL_ISA
} // namespace cuvil
