#pragma once
// Convolution with a window of 3 x 3 by fewer multiplications: F(M x M, 3 x 3) for M = 4 and 2, after Winograd,
// "Arithmetic Complexity of Computations" (1980), and Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (2016).
//
// A tile of M x M outputs needs (M + 2)^2 inputs. Both they and the weights are evaluated at M + 2 points in each
// direction; there the convolution is a product, for each of the (M + 2)^2 pairs of points a matrix product over the
// channels, which takes the micro-kernel of gemm.hpp; and from the products the outputs are interpolated:
//
//     x  --to_points-->  V[point][channel]  --product with weights-->  S[point][channel]  --from_points-->  y
//
// For M = 4 these are 36 multiplications where the sum over the window has 144, for M = 2 16 where it has 36. The
// points of M = 4 are 0, +-sqrt(1/2), +-sqrt(2) and infinity: with the usual 0, +-1, +-2 and infinity the error is
// twice as large. The points of M = 2 are 0, +-1 and infinity.
//
// A window that moves by 2 is one of 2 taps over every other input and one of a single tap over those between
// (polyphase). The first one takes M + 1 points, the same without 0; the second one the M inputs as they are, which
// counts here as M more points that have one weight in common. For M = 4 these are 81 multiplications instead of 144,
// for M = 2 25 instead of 36.
//
// A larger window that moves by 2 over an image of few channels is one of 3 x 3 or 4 x 4 taps over the channels of 2 x
// 2 pixels (see Phased in layout.hpp). F(4 x 4, 4 x 4) has the points +-0.4, +-0.85, +-1.75 and infinity, which of
// those tried had the smallest error.
#include "kernels/gemm.hpp"
#include "kernels/layout.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// What a tile computes in one direction, and alike in the other: outputs of a window of `taps` that moves by `stride`.
struct WinogradScheme {
    int outputs, stride, taps = 3;

    // Of the products; the last ones have one weight in common where the stride is 2.
    constexpr int points() const { return stride == 1 ? weights() : outputs + 1 + outputs; }
    constexpr int weights() const { return outputs + taps - 1; }
    constexpr Range points_of(i64 weight) const {
        return {weight, weight + 1 < weights() ? weight + 1 : i64(points())};
    }
    constexpr int inputs(int of_outputs) const { return (of_outputs - 1) * stride + taps; }
    constexpr bool has_small_tiles() const { return taps == 3; }
    // The points that these do without.
    constexpr bool is_left_out(i64 point) const {
        return stride == 1 ? point == outputs : point == outputs - 1 || point == points() - 1;
    }
    constexpr int products() const { return points() * points(); }
};

// ---- The transforms in one direction, of any part of the lanes

inline constexpr f64 sqrt_half = 0.70710678118654752440, sqrt_two = 1.41421356237309504880;
inline constexpr f64 points_of_4_taps[3] = {0.4, 0.85, 1.75};

// The values at the points, of the inputs of M outputs.
template <class V> INLINE void to_points(const V (&d)[6], V (&v)[6]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two));
    v[0] = fma(V(-2.5f), d[2], d[0]) + d[4];
    v[5] = fma(V(-2.5f), d[3], d[1]) + d[5];
    const V even_a = fma(V(-2.0f), d[2], d[4]), odd_a = fma(V(-2.0f), d[1], d[3]);
    v[1] = fma(a, odd_a, even_a);
    v[2] = fma(-a, odd_a, even_a);
    const V even_b = fma(V(-0.5f), d[2], d[4]), odd_b = fma(V(-0.5f), d[1], d[3]);
    v[3] = fma(b, odd_b, even_b);
    v[4] = fma(-b, odd_b, even_b);
}
template <class V> INLINE void to_points(const V (&d)[4], V (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
}
template <class V> INLINE void to_points(const V (&d)[9], V (&v)[9]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two));
    const V even_a = fma(V(-2.0f), d[2], d[6]), odd_a = fma(V(-2.0f), d[0], d[4]);
    v[0] = fma(a, odd_a, even_a);
    v[1] = fma(-a, odd_a, even_a);
    const V even_b = fma(V(-0.5f), d[2], d[6]), odd_b = fma(V(-0.5f), d[0], d[4]);
    v[2] = fma(b, odd_b, even_b);
    v[3] = fma(-b, odd_b, even_b);
    v[4] = fma(V(-2.5f), d[4], d[0]) + d[8];
    UNROLL for (int i = 0; i < 4; i++) { v[5 + i] = d[2 * i + 1]; }
}
template <class V> INLINE void to_points(const V (&d)[5], V (&v)[5]) {
    v[0] = d[2] + d[0];
    v[1] = d[2] - d[0];
    v[2] = d[4] - d[0];
    v[3] = d[1];
    v[4] = d[3];
}

template <class V> INLINE void to_points(const V (&d)[7], V (&v)[7]) {
    constexpr auto& p = points_of_4_taps;
    UNROLL for (int i = 0; i < 3; i++) {
        // The polynomial without the points +-p[i], times z and 1.
        const f64 a = p[(i + 1) % 3] * p[(i + 1) % 3], b = p[(i + 2) % 3] * p[(i + 2) % 3];
        const V sum = V(f32(-(a + b))), product = V(f32(a * b)), point = V(f32(p[i]));
        const V even = fma(product, d[1], fma(sum, d[3], d[5])), odd = fma(product, d[0], fma(sum, d[2], d[4]));
        v[2 * i] = fma(point, odd, even);
        v[2 * i + 1] = fma(-point, odd, even);
    }
    constexpr f64 a = p[0] * p[0], b = p[1] * p[1], c = p[2] * p[2];
    v[6] =
        fma(V(f32(-a * b * c)), d[0], fma(V(f32(a * b + b * c + c * a)), d[2], fma(V(f32(-(a + b + c))), d[4], d[6])));
}

// Small tiles have M - 1 outputs, need fewer inputs, and leave one point out, that before infinity. They take the same
// weights: those were divided by a number that depends on the points, and where one is left out the outputs are
// multiplied by what is too much.

// The values at the points, of the inputs of M - 1 outputs; what is_left_out() is not written.
template <class V> INLINE void to_points(const V (&d)[5], V (&v)[6]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two)), half = V(0.5f);
    const V first = fma(-b, d[0], d[1]), odd = fma(-b, d[1], d[2]), even = fma(-b, d[2], d[3]);
    v[0] = fma(-half, first, even);
    v[1] = fma(a, odd, even);
    v[2] = fma(-a, odd, even);
    v[3] = fma(-half, d[1], d[3]);
    v[5] = fma(-half, odd, fma(-b, d[3], d[4]));
}
template <class V> INLINE void to_points(const V (&d)[3], V (&v)[4]) {
    v[0] = d[0] - d[1];
    v[1] = d[1];
    v[3] = d[2] - d[1];
}
template <class V> INLINE void to_points(const V (&d)[7], V (&v)[9]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two)), half = V(0.5f);
    const V odd = fma(-b, d[0], d[2]), even = fma(-b, d[2], d[4]);
    v[0] = fma(a, odd, even);
    v[1] = fma(-a, odd, even);
    v[2] = fma(-half, d[0], d[4]);
    v[4] = fma(-half, odd, fma(-b, d[4], d[6]));
    UNROLL for (int i = 0; i < 3; i++) { v[5 + i] = d[2 * i + 1]; }
}
template <class V> INLINE void to_points(const V (&d)[3], V (&v)[5]) {
    v[0] = d[0];
    v[2] = d[2] - d[0];
    v[3] = d[1];
}

// M outputs of the products at the points.
template <class V> INLINE void from_points(const V (&m)[6], V (&y)[4]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two));
    const V half_a = V(f32(sqrt_half / 2)), twice_b = V(f32(2 * sqrt_two));
    const V sum_a = m[1] + m[2], difference_a = m[1] - m[2];
    const V sum_b = m[3] + m[4], difference_b = m[3] - m[4];
    y[0] = m[0] + sum_a + sum_b;
    y[1] = fma(b, difference_b, a * difference_a);
    y[2] = fma(V(2.0f), sum_b, V(0.5f) * sum_a);
    y[3] = fma(twice_b, difference_b, half_a * difference_a) + m[5];
}
template <class V> INLINE void from_points(const V (&m)[4], V (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] + m[3];
}
template <class V> INLINE void from_points(const V (&m)[9], V (&y)[4]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two));
    const V half_a = V(f32(sqrt_half / 2)), twice_b = V(f32(2 * sqrt_two));
    const V sum_a = m[0] + m[1], difference_a = m[0] - m[1];
    const V sum_b = m[2] + m[3], difference_b = m[2] - m[3];
    y[0] = m[5] + sum_a + sum_b;
    y[1] = fma(b, difference_b, fma(a, difference_a, m[6]));
    y[2] = fma(V(2.0f), sum_b, fma(V(0.5f), sum_a, m[7]));
    y[3] = fma(twice_b, difference_b, fma(half_a, difference_a, m[8])) + m[4];
}
template <class V> INLINE void from_points(const V (&m)[5], V (&y)[2]) {
    y[0] = m[0] + m[1] + m[3];
    y[1] = m[0] - m[1] + m[2] + m[4];
}
template <class V> INLINE V weighed_sum(f64 a, V x, f64 b, V y, f64 c, V z) {
    return fma(V(f32(c)), z, fma(V(f32(b)), y, V(f32(a)) * x));
}
template <class V> INLINE void from_points(const V (&m)[7], V (&y)[4]) {
    constexpr f64 p = points_of_4_taps[0], q = points_of_4_taps[1], r = points_of_4_taps[2];
    const V sum_p = m[0] + m[1], difference_p = m[0] - m[1];
    const V sum_q = m[2] + m[3], difference_q = m[2] - m[3];
    const V sum_r = m[4] + m[5], difference_r = m[4] - m[5];
    y[0] = sum_p + sum_q + sum_r;
    y[1] = weighed_sum(p, difference_p, q, difference_q, r, difference_r);
    y[2] = weighed_sum(p * p, sum_p, q * q, sum_q, r * r, sum_r);
    y[3] = weighed_sum(p * p * p, difference_p, q * q * q, difference_q, r * r * r, difference_r) + m[6];
}

// M - 1 outputs.
template <class V> INLINE void from_points(const V (&m)[6], V (&y)[3]) {
    constexpr f64 a = sqrt_half, b = sqrt_two;
    const V p = V(f32(a + b)) * m[1], q = V(f32(b - a)) * m[2];
    const V sum = p + q, difference = p - q;
    y[0] = fma(V(f32(2 * b)), m[3], fma(V(f32(b)), m[0], sum));
    y[1] = fma(V(4.0f), m[3], V(f32(a)) * difference);
    y[2] = fma(V(f32(4 * b)), m[3], V(0.5f) * sum) + m[5];
}
template <class V> INLINE void from_points(const V (&m)[4], V (&y)[1]) { y[0] = m[0] + V(2.0f) * m[1] + m[3]; }
template <class V> INLINE void from_points(const V (&m)[9], V (&y)[3]) {
    constexpr f64 a = sqrt_half, b = sqrt_two;
    const V p = V(f32(a + b)) * m[0], q = V(f32(b - a)) * m[1];
    const V sum = p + q, difference = p - q;
    y[0] = fma(V(f32(2 * b)), m[2], m[5] + sum);
    y[1] = fma(V(4.0f), m[2], fma(V(f32(a)), difference, m[6]));
    y[2] = fma(V(f32(4 * b)), m[2], fma(V(0.5f), sum, m[7])) + m[4];
}
template <class V> INLINE void from_points(const V (&m)[5], V (&y)[1]) { y[0] = m[2] + V(2.0f) * m[0] + m[3]; }

// ---- Weights

// At the points, of the taps g.
template <WinogradScheme W> INLINE void weights_at_points(const f64 (&g)[W.taps], f64 (&u)[W.weights()]) {
    constexpr f64 a = sqrt_half, b = sqrt_two;
    if constexpr (W.taps == 4) {
        constexpr auto& p = points_of_4_taps;
        for (int i = 0; i < 3; i++) {
            const f64 x = p[i], y = p[(i + 1) % 3], z = p[(i + 2) % 3];
            const f64 divisor = 2 * x * (x * x - y * y) * (x * x - z * z);
            const f64 even = g[0] + g[2] * x * x, odd = g[1] * x + g[3] * x * x * x;
            u[2 * i] = (even + odd) / divisor;
            u[2 * i + 1] = (even - odd) / -divisor;
        }
        u[6] = g[3];
    } else if constexpr (W.stride == 2 && W.outputs == 2) {
        u[0] = (g[0] + g[2]) / 2;
        u[1] = (g[2] - g[0]) / 2;
        u[2] = g[2];
        u[3] = g[1];
    } else if constexpr (W.stride == 2) {
        u[0] = (g[0] + a * g[2]) / (-3 * a);
        u[1] = (g[0] - a * g[2]) / (3 * a);
        u[2] = (g[0] + b * g[2]) / (3 * b);
        u[3] = (g[0] - b * g[2]) / (-3 * b);
        u[4] = g[2];
        u[5] = g[1];
    } else if constexpr (W.outputs == 4) {
        const f64 half = g[0] + g[2] * 0.5, two = g[0] + g[2] * 2;
        u[0] = g[0];
        u[1] = (half + a * g[1]) / -1.5;
        u[2] = (half - a * g[1]) / -1.5;
        u[3] = (two + b * g[1]) / 6;
        u[4] = (two - b * g[1]) / 6;
        u[5] = g[2];
    } else {
        u[0] = g[0];
        u[1] = (g[0] + g[1] + g[2]) / 2;
        u[2] = (g[0] - g[1] + g[2]) / 2;
        u[3] = g[2];
    }
}

// Elements of the packed weights.
template <WinogradScheme W> constexpr i64 packed_winograd_size(i64 k, i64 c) {
    return W.weights() * W.weights() * packed_size(ceil_div(c, lane_count) * lane_count, k);
}

// Packs weights [k][c][taps][taps] as [panel of 16 output channels][weight][input channel][16]: at the points, computed
// in f64. Missing channels on either side are zeros.
template <WinogradScheme W> INLINE void pack_winograd(i64 k, i64 c, const f32* weights, f32* packed) {
    constexpr int count = W.weights();
    const i64 channels = ceil_div(c, lane_count) * lane_count;
    const i64 point_step = channels * lane_count;
    fill_zero(packed, packed_winograd_size<W>(k, c));
    for (i64 out = 0; out < k; out++) {
        for (i64 in = 0; in < c; in++) {
            const f32* window = weights + (out * c + in) * W.taps * W.taps;
            f64 rows[count][W.taps]; // at the points in the direction of y
            for (int x = 0; x < W.taps; x++) {
                f64 column[W.taps];
                for (int y = 0; y < W.taps; y++) {
                    column[y] = window[y * W.taps + x];
                }
                f64 at_points[count];
                weights_at_points<W>(column, at_points);
                for (int i = 0; i < count; i++) {
                    rows[i][x] = at_points[i];
                }
            }
            f32* to = packed + (out / lane_count * count * count * channels + in) * lane_count + out % lane_count;
            for (int i = 0; i < count; i++) {
                f64 at_points[count];
                weights_at_points<W>(rows[i], at_points);
                for (int j = 0; j < count; j++) {
                    to[(i * count + j) * point_step] = static_cast<f32>(at_points[j]);
                }
            }
        }
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
