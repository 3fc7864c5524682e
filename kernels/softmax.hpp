#pragma once
// softmax, log_softmax and hardmax over the dimension n of x[outer][n][inner], for f32 and f64. The largest value is
// subtracted first. The sum over a row is one chain of 16 lanes, joined at its end.
#include "kernels/reduce.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// One row of n contiguous values. `Log` asks for the logarithm.
template <bool Log, class T> INLINE void softmax_row(i64 n, const T* x, T* y) {
    using V = vec<T>;
    const T largest = reduce_row<Max>(n, x, [](auto v) { return v; });
    V sums = V(T(0));
    const auto raise = [&](i64 i, i64 lanes) {
        const V shifted = load_lanes(x + i, lanes) - V(largest);
        const V power = exp_of_negative(shifted);
        sums = lanes == lane_count ? sums + power : select_lanes(lanes, sums + power, sums);
        store_lanes(y + i, Log ? shifted : power, lanes);
    };
    for_lanes(n, raise);
    const T sum = sum_lanes(sums);
    const V last = V(Log ? log(sum) : T(1) / sum);
    for_lanes(n, [&](i64 i, i64 lanes) {
        const V v = load_lanes(y + i, lanes);
        store_lanes(y + i, Log ? v - last : v * last, lanes);
    });
}

// Up to 16 columns side by side, whose values lie `inner` apart.
template <bool Log, class T> INLINE void softmax_columns(i64 n, i64 inner, i64 lanes, const T* x, T* y) {
    using V = vec<T>;
    V largest = V(-infinity_of<T>);
    for (i64 j = 0; j < n; j++) {
        largest = maximum(largest, load_lanes(x + j * inner, lanes));
    }
    V sum = V(T(0));
    for (i64 j = 0; j < n; j++) {
        const V shifted = load_lanes(x + j * inner, lanes) - largest;
        const V power = exp_of_negative(shifted);
        sum = sum + power;
        store_lanes(y + j * inner, Log ? shifted : power, lanes);
    }
    const V last = Log ? log(sum) : V(T(1)) / sum;
    for (i64 j = 0; j < n; j++) {
        const V v = load_lanes(y + j * inner, lanes);
        store_lanes(y + j * inner, Log ? v - last : v * last, lanes);
    }
}

template <bool Log, class T> INLINE void softmax_range(i64 outer, i64 n, i64 inner, Range columns, const T* x, T* y) {
    columns.end = smaller(columns.end, outer * inner);
    if (inner == 1) {
        for (i64 o = columns.begin; o < columns.end; o++) {
            softmax_row<Log>(n, x + o * n, y + o * n);
        }
        return;
    }
    for_pieces(inner, columns, [&](i64 o, i64 i, i64 lanes) {
        const i64 offset = o * n * inner + i;
        softmax_columns<Log>(n, inner, lanes, x + offset, y + offset);
    });
}

// The columns (o, i) in the range, counted as o * inner + i. x and y may be the same.
template <class T> INLINE void softmax(i64 outer, i64 n, i64 inner, Range columns, const T* x, T* y) {
    softmax_range<false>(outer, n, inner, columns, x, y);
}

template <class T> INLINE void log_softmax(i64 outer, i64 n, i64 inner, Range columns, const T* x, T* y) {
    softmax_range<true>(outer, n, inner, columns, x, y);
}

// 1 at the first largest value along n, 0 elsewhere. NaN counts as the largest.
template <class T> INLINE void hardmax(i64 outer, i64 n, i64 inner, Range columns, const T* x, T* y) {
    columns.end = smaller(columns.end, outer * inner);
    for (i64 at = columns.begin; at < columns.end; at++) {
        const i64 column = at / inner * n * inner + at % inner;
        i64 best = 0;
        for (i64 j = 0; j < n; j++) {
            const T v = x[column + j * inner], held = x[column + best * inner];
            best = v > held || (v != v && held == held) ? j : best;
        }
        for (i64 j = 0; j < n; j++) {
            y[column + j * inner] = T(j == best);
        }
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
