#pragma once
// layer_norm and rms_norm over rows of n contiguous values of x[rows][n], for f32 and f64. `scale` and `bias` have n
// values, or are nullptr. Sums have the order of reduce.hpp; x and y may be the same.
#include "kernels/reduce.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// y = (x - center) * factor * scale + bias.
template <class T>
INLINE void normalize_row(i64 n, T center, T factor, const T* x, const T* scale, const T* bias, T* y) {
    using V = vec<T>;
    for_lanes(n, [&](i64 i, i64 lanes) {
        V v = (load_lanes(x + i, lanes) - V(center)) * V(factor);
        if (scale != nullptr) {
            v = v * load_lanes(scale + i, lanes);
        }
        if (bias != nullptr) {
            v = v + load_lanes(bias + i, lanes);
        }
        store_lanes(y + i, v, lanes);
    });
}

// The mean of a row is taken first, then that of the squared distances from it, so large means cost no digits.
template <class T>
INLINE void layer_norm(i64 n, T epsilon, Range rows, const T* x, const T* scale, const T* bias, T* y) {
    using V = vec<T>;
    for (i64 row = rows.begin; row < rows.end; row++) {
        const T* from = x + row * n;
        const T mean = reduce_row<Sum>(n, from, [](auto v) { return v; }) / T(n);
        const T variance = reduce_row<SumSquare>(n, from, [=](auto v) { return v - V(mean); }) / T(n);
        normalize_row(n, mean, T(1) / sqrt(variance + epsilon), from, scale, bias, y + row * n);
    }
}

template <class T> INLINE void rms_norm(i64 n, T epsilon, Range rows, const T* x, const T* scale, T* y) {
    for (i64 row = rows.begin; row < rows.end; row++) {
        const T* from = x + row * n;
        const T square = reduce_row<SumSquare>(n, from, [](auto v) { return v; }) / T(n);
        normalize_row<T>(n, T(0), T(1) / sqrt(square + epsilon), from, scale, nullptr, y + row * n);
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
