#pragma once
// Elementwise expressions over tensors that are broadcast to one shape. The expression is a generic lambda over vectors
// of 16 lanes; it is given each operand's lanes and returns those of the result (lanes_of<Y>), which alone are stored.
// Lanes beyond the end of a row hold zeros or other harmless values, so an expression must not trap for any input.
#include "kernels/layout.hpp"
#include "kernels/math.hpp"
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// A tensor seen in the shape of the result: element (i0, i1, ...) is data[i0 * strides[0] + i1 * strides[1] + ...].
// A broadcast dimension has stride 0. The quick strides of the last dimension are 0 and 1.
template <int R, class T> struct Operand {
    const T* data;
    i64 strides[R];
};

// An operand reduced to one row.
template <class T> struct OperandRow {
    const T* data;
    i64 stride;
};

inline constexpr i64 flat_unit = 16;

// What a `Range rows` counts, for a result of this shape: the rows, which are all but the last dimension; or, if there
// is one dimension only, pieces of 16 elements. Dimensions that all operands walk without a gap should be merged
// beforehand: a row is never cut.
template <int R> constexpr i64 map_rows(const i64 (&shape)[R]) {
    if constexpr (R == 1) {
        return ceil_div(shape[0], flat_unit);
    } else {
        i64 rows = 1;
        for (int d = 0; d < R - 1; d++) {
            rows *= shape[d];
        }
        return rows;
    }
}

// The index of a row, dimension by dimension, which can be stepped to the next row.
template <int R> struct RowIndex {
    i64 at[R];

    INLINE RowIndex(const i64 (&shape)[R], i64 row) {
        at[R - 1] = 0;
        UNROLL for (int d = R - 2; d >= 0; d--) {
            at[d] = row % shape[d];
            row /= shape[d];
        }
    }

    INLINE void advance(const i64 (&shape)[R]) {
        UNROLL for (int d = R - 2; d >= 0; d--) {
            if (++at[d] < shape[d]) {
                return;
            }
            at[d] = 0;
        }
    }

    INLINE i64 offset(const i64 (&strides)[R]) const {
        i64 sum = 0;
        UNROLL for (int d = 0; d < R - 1; d++) { sum += at[d] * strides[d]; }
        return sum;
    }
};

template <class Y, class F, class... X> INLINE void map_row(i64 n, Y* y, F& f, OperandRow<X>... x) {
    for_lanes(n, [&](i64 i, i64 lanes) {
        lanes_of<Y> result;
        [[clang::always_inline]] result = f(load_strided(x.data + i * x.stride, x.stride, lanes)...);
        store_lanes(y + i, result, lanes);
    });
}

// y = f(x...) for the given rows of a result that is row-major without gaps.
template <int R, class Y, class F, class... X>
INLINE void map(const i64 (&shape)[R], Range rows, Y* y, F f, Operand<R, X>... x) {
    if (rows.begin >= rows.end) {
        return;
    }
    if constexpr (R == 1) {
        const i64 begin = rows.begin * flat_unit;
        const i64 end = smaller(shape[0], rows.end * flat_unit);
        map_row(end - begin, y + begin, f, OperandRow<X>{x.data + begin * x.strides[0], x.strides[0]}...);
    } else {
        const i64 n = shape[R - 1];
        RowIndex<R> index(shape, rows.begin);
        for (i64 row = rows.begin; row < rows.end; row++) {
            map_row(n, y + row * n, f, OperandRow<X>{x.data + index.offset(x.strides), x.strides[R - 1]}...);
            index.advance(shape);
        }
    }
}

// ---- Blocked tensors

// An operand in the layout of the result.
struct Same {
    const f32* data;
};

// One value per channel, filled up to a multiple of 16.
struct PerChannel {
    const f32* data;
};

// One value per channel of each image: a blocked tensor without halo, of one pixel and as many blocks.
struct PerPlane {
    const f32* data;
    i64 blocks;
};

// The 16 lanes of a pixel; `offset` is that in the result.
INLINE vec<f32> pixel_of(const Same& x, i64 offset, i64, i64, i64, i64) { return load(x.data + offset); }
INLINE vec<f32> pixel_of(const PerChannel& x, i64, i64, i64 block, i64, i64) {
    return load(x.data + block * lane_count);
}
INLINE vec<f32> pixel_of(const PerPlane& x, i64, i64 n, i64 block, i64, i64) {
    return load(x.data + (n * x.blocks + block) * lane_count);
}

// The number of planes of a blocked tensor of n images: what a `Range planes` counts.
constexpr i64 blocked_planes(i64 n, const Blocked& l) { return n * l.blocks(); }

// y = f(x...) for the given planes of a blocked result, whose border and missing channels become zeros. Each x is Same,
// PerChannel or PerPlane.
template <class F, class... X>
INLINE void map_blocked(const Blocked& l, [[maybe_unused]] i64 images, Range planes, f32* y, F f, X... x) {
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const i64 n = plane / l.blocks();
        const i64 block = plane % l.blocks();
        const i64 channels = l.channels_in(block);
        for (i64 row = 0; row < l.h; row++) {
            i64 offset = l.offset(n, block, row, 0);
            for (i64 column = 0; column < l.w; column++, offset += lane_count) {
                vec<f32> v;
                [[clang::always_inline]] v = f(pixel_of(x, offset, n, block, row, column)...);
                store(y + offset, with_real_channels(channels, v));
            }
        }
        write_halo(l, {0, l.h}, y + plane * l.plane());
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
