#pragma once
// Activations that expressions of simpler functions would lose digits or time in.
#include "kernels/exponential.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

template <class V> INLINE V silu(V x) { return x * sigmoid(x); }

template <class V> INLINE V hard_swish(V x) {
    using T = element_of<V>;
    V gate = fma(x, V(T(1) / T(6)), V(T(0.5)));
    gate = select(gate < V(T(0)), V(T(0)), gate);
    return x * select(gate > V(T(1)), V(T(1)), gate);
}

// x tanh(log(1 + e^x)), where tanh(log(1 + e)) = m / (m + 2) for m = e (e + 2).
template <class V> INLINE V mish(V x) {
    using T = element_of<V>;
    V e = exp(select(x > V(T(40)), V(T(40)), x));
    V m = e * (e + V(T(2)));
    return x * (m / (m + V(T(2))));
}

template <class T> struct NormalConstants;
template <> struct NormalConstants<f32> {
    static constexpr f32 slope = 0.26f;
    static constexpr f32 tail[] = {0.10376367f,  0.10294081f, 0.10355755f,  0.049011003f, 0.16560115f,
                                   -0.15759447f, 0.25723949f, -0.15558800f, 0.031068783f};
};

template <> struct NormalConstants<f64> {
    static constexpr f64 slope = 0.3;
    static constexpr f64 tail[] = {
        0.11968268413179824,  0.11968268323327565,  0.10891127405854617,   0.08736768260225802,  0.057972178748303044,
        0.026406383217885937, 0.001235484423926214, -0.018721221737150136, 0.008176561544058618, -0.08447496304579243,
        0.23190695078708776,  -0.4732343478976027,  0.7940166161932887,    -0.9500461181879681,  0.7562395664757754,
        -0.38301554586516545, 0.11263573506668936,  -0.014741557786463404};
};

// The standard normal distribution function below 0, of -a for a >= 0: exp(-a^2 / 2) t P(t) with t = 1 / (1 + c a),
// where P is our own least-error fit. The rounding error of a^2 is taken back, so the far tail is as accurate as the
// rest.
template <class V> INLINE V normal_tail(V a) {
    using T = element_of<V>;
    auto [square, lost] = exact_product(a, a);
    lost = select(square < V(T(2000)), lost, V(T(0))); // of an infinite square it would be NaN
    V bell = exp_of_negative(square * V(T(-0.5)));
    bell = fma(bell * V(T(-0.5)), lost, bell);
    using C = NormalConstants<T>;
    V t = V(T(1)) / fma(a, V(C::slope), V(T(1)));
    V tail = bell * (t * polynomial(t, C::tail));
    if constexpr (is_same<T, f64>) {
        // For sqrt(2) and less by erf's polynomial: the tail's is not fitted there.
        using E = ErfConstants<f64>;
        V s = a * V(T(0.70710678118654752440));
        V s_near = select(s > V(T(1)), V(T(1)), s);
        V near = fma(s_near, polynomial(s_near * s_near, E::small), s_near);
        tail = select(s < V(T(1)), fma(near, V(T(-0.5)), V(T(0.5))), tail);
    }
    return tail;
}

// x times the normal distribution function of x.
template <class V> INLINE V gelu(V x) {
    using T = element_of<V>;
    V tail = normal_tail(abs(x));
    V share = select(x < V(T(0)), tail, V(T(1)) - tail);
    return x * select(nan_mask(x), x, share);
}

// The approximation x (1 + tanh(u)) / 2 = x sigmoid(2 u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class V> INLINE V gelu_tanh(V x) {
    using T = element_of<V>;
    V inner = fma(x * x, V(T(0.044715)), V(T(1)));
    return x * sigmoid(x * V(T(1.5957691216057308)) * inner);
}

} // namespace CUVIL_ISA
} // namespace cuvil
