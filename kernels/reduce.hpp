#pragma once
// Reduction of one dimension: x[outer][n][inner] to y[outer][inner]. Where inner is 1 the n values are contiguous; they
// fall into blocks, in a block into four chains of 16 lanes, value i into lane i % 16 of chain i / 16 % 4, and chains,
// blocks and lanes are combined in one fixed order. Otherwise an output is a chain over blocks of chains in rising
// order, and 16 neighbouring outputs are computed side by side. Blocks keep the rounding error of long sums small.
// Either way the bits do not depend on how the outputs are cut into ranges.
#include "kernels/math.hpp"
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// An op says where a result starts, how a value enters it, how two partial results are joined and how it ends.
// `neutral` is the result of no values at all.
struct Sum {
    template <class T> static constexpr T neutral = T(0);
    template <class V> INLINE static V enter(V sum, V x) { return add(sum, x); }
    template <class V> INLINE static V join(V a, V b) { return add(a, b); }
    template <class T> INLINE static T finish(T sum, i64) { return sum; }
};

// Integers: rounded toward zero; 0 for no values. Floats: NaN for no values.
struct Mean : Sum {
    template <class V> INLINE static V finish(V sum, i64 n) { return div(sum, V(element_of<V>(n))); }
};

struct Prod {
    template <class T> static constexpr T neutral = T(1);
    template <class V> INLINE static V enter(V product, V x) { return mul(product, x); }
    template <class V> INLINE static V join(V a, V b) { return mul(a, b); }
    template <class V> INLINE static V finish(V product, i64) { return product; }
};

// NaN if one value is NaN.
struct Max {
    template <class T> static constexpr T neutral = lowest_of<T>;
    template <class V> INLINE static V enter(V largest, V x) { return maximum(largest, x); }
    template <class V> INLINE static V join(V a, V b) { return maximum(a, b); }
    template <class V> INLINE static V finish(V largest, i64) { return largest; }
};

struct Min {
    template <class T> static constexpr T neutral = highest_of<T>;
    template <class V> INLINE static V enter(V smallest, V x) { return minimum(smallest, x); }
    template <class V> INLINE static V join(V a, V b) { return minimum(a, b); }
    template <class V> INLINE static V finish(V smallest, i64) { return smallest; }
};

struct SumSquare : Sum {
    template <class V> INLINE static V enter(V sum, V x) { return fma(x, x, sum); }
};

// Values that are combined before they join those of other blocks: of a row, and of a column.
inline constexpr i64 block_size = 2048, block_rows = 64;

// Calls f(o, i, lanes) for pieces of up to 16 outputs (o, i), (o, i + 1), ... that share o and cover the range of the
// outputs counted as o * inner + i.
template <class F> INLINE void for_pieces(i64 inner, Range outputs, F f) {
    i64 at = outputs.begin;
    while (at < outputs.end) {
        const i64 o = at / inner;
        const i64 i = at % inner;
        const i64 lanes = smaller(lane_count, smaller(inner - i, outputs.end - at));
        [[clang::always_inline]] f(o, i, lanes);
        at += lanes;
    }
}

// The n contiguous values at x, combined as explained above. f(x) gives the values that enter.
template <class Op, class T, class F> INLINE auto reduce_row(i64 n, const T* x, F f) {
    using A = element_of<decltype(f(load(x)))>;
    using V = vec<A>;
    constexpr i64 chains = 4, step = chains * lane_count;
    const V neutral = V(Op::template neutral<A>);
    V result = neutral;
    for (i64 begin = 0; begin < n; begin += block_size) {
        const i64 end = smaller(n, begin + block_size);
        V parts[chains] = {neutral, neutral, neutral, neutral};
        i64 i = begin;
        for (; i + step <= end; i += step) {
            UNROLL for (i64 c = 0; c < chains; c++) { parts[c] = Op::enter(parts[c], f(load(x + i + c * lane_count))); }
        }
        UNROLL for (i64 c = 0; c < chains; c++) {
            const i64 lanes = end - i - c * lane_count;
            if (lanes >= lane_count) {
                parts[c] = Op::enter(parts[c], f(load(x + i + c * lane_count)));
            } else if (lanes > 0) {
                const V values = f(load_lanes(x + i + c * lane_count, lanes));
                parts[c] = select_lanes(lanes, Op::enter(parts[c], values), parts[c]);
            }
        }
        result = Op::join(result, Op::join(Op::join(parts[0], parts[1]), Op::join(parts[2], parts[3])));
    }
    return combine_lanes(result, [](auto a, auto b) { return Op::join(a, b); });
}

// Rows of so few values are combined 16 at a time, side by side, in the order of reduce_row.
inline constexpr i64 short_row = 8;

template <class Op, class T> INLINE void reduce_short_rows(i64 n, Range rows, const T* x, T* y) {
    using L = lanes_of<T>;
    const L neutral = L(Op::template neutral<element_of<L>>);
    for (i64 row = rows.begin; row < rows.end; row += lane_count) {
        const i64 lanes = smaller(lane_count, rows.end - row);
        L parts[short_row];
        UNROLL for (i64 i = 0; i < short_row; i++) {
            parts[i] = i < n ? Op::enter(neutral, load_strided(x + row * n + i, n, lanes)) : neutral;
        }
        UNROLL for (i64 width = short_row / 2; width > 0; width /= 2) {
            UNROLL for (i64 i = 0; i < width; i++) { parts[i] = Op::join(parts[i], parts[i + width]); }
        }
        store_lanes(y + row, Op::finish(parts[0], n), lanes);
    }
}

// Computes the outputs in the range, counted as o * inner + i. No values (n = 0) give the neutral element.
template <class Op, class T> INLINE void reduce(i64 outer, i64 n, i64 inner, Range outputs, const T* x, T* y) {
    outputs.end = smaller(outputs.end, outer * inner);
    using L = lanes_of<T>;
    using A = element_of<L>;
    if (inner == 1 && n <= short_row) {
        reduce_short_rows<Op>(n, outputs, x, y);
        return;
    }
    if (inner == 1) {
        for (i64 o = outputs.begin; o < outputs.end; o++) {
            const A result = reduce_row<Op>(n, x + o * n, [](auto v) { return v; });
            y[o] = static_cast<T>(Op::finish(result, n));
        }
        return;
    }
    for_pieces(inner, outputs, [&](i64 o, i64 i, i64 lanes) {
        const T* column = x + o * n * inner + i;
        const L neutral = L(Op::template neutral<A>);
        L result = neutral;
        for (i64 begin = 0; begin < n; begin += block_rows) {
            L part = neutral;
            for (i64 j = begin; j < smaller(n, begin + block_rows); j++) {
                part = Op::enter(part, load_lanes(column + j * inner, lanes));
            }
            result = Op::join(result, part);
        }
        store_lanes(y + o * inner + i, Op::finish(result, n), lanes);
    });
}

// The position along n of the first (or Last) largest (Largest) or smallest value; NaN counts as the most extreme. n
// >= 1.
template <bool Largest, bool Last, class T>
INLINE void arg_extreme(i64 n, i64 inner, Range outputs, const T* x, i64* y) {
    for (i64 at = outputs.begin; at < outputs.end; at++) {
        const T* column = x + at / inner * n * inner + at % inner;
        i64 best = 0;
        for (i64 j = 1; j < n; j++) {
            const T v = column[j * inner];
            const T held = column[best * inner];
            const bool better = (Largest ? v > held : v < held) || (v != v && held == held);
            const bool equal = v == held || (v != v && held != held);
            if (better || (Last && equal)) {
                best = j;
            }
        }
        y[at] = best;
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
