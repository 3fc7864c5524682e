#pragma once
// What moves elements without computing: strided copies (transpose, slice, concat, pad, expand), changes between plain,
// blocked and padded images, gather, and nonzero.
#include "kernels/layout.hpp"
#include "kernels/map.hpp"
#include "kernels/parallel.hpp"
#include "kernels/weights.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// n elements from x to y, each with its stride.
template <class T> INLINE void copy_row(i64 n, T* y, i64 y_stride, const T* x, i64 x_stride) {
    if (y_stride == 1 && x_stride == 1) {
        i64 i = 0;
        for (; i + lane_count <= n; i += lane_count) {
            store(y + i, load(x + i));
        }
        for (; i < n; i++) {
            y[i] = x[i];
        }
        return;
    }
    for (i64 i = 0; i < n; i++) {
        y[i * y_stride] = x[i * x_stride];
    }
}

// Rows of a copy that are taken together where x is contiguous across rows, so that its cache lines are used whole.
inline constexpr i64 copy_tile = 16;

// y[i * y_strides] = x[i * x_strides] for the given rows of the index space; strides are in elements, may be 0 for x
// and negative. Rows are counted as map_rows counts them.
template <int R, class T>
INLINE void copy_strided(const i64 (&shape)[R], Range rows, T* y, const i64 (&y_strides)[R], const T* x,
                         const i64 (&x_strides)[R]) {
    if (rows.begin >= rows.end) {
        return;
    }
    if constexpr (R == 1) {
        const i64 begin = rows.begin * flat_unit;
        const i64 end = smaller(shape[0], rows.end * flat_unit);
        copy_row(end - begin, y + begin * y_strides[0], y_strides[0], x + begin * x_strides[0], x_strides[0]);
    } else {
        const i64 n = shape[R - 1];
        const bool transposed = x_strides[R - 1] != 1 && x_strides[R - 2] == 1;
        RowIndex<R> index(shape, rows.begin);
        i64 row = rows.begin;
        while (row < rows.end) {
            T* y_row = y + index.offset(y_strides);
            const T* x_row = x + index.offset(x_strides);
            const i64 together =
                transposed ? smaller(copy_tile, smaller(shape[R - 2] - index.at[R - 2], rows.end - row)) : 1;
            if (together > 1) {
                for (i64 i = 0; i < n; i += copy_tile) {
                    const i64 length = smaller(copy_tile, n - i);
                    for (i64 r = 0; r < together; r++) {
                        copy_row(length, y_row + r * y_strides[R - 2] + i * y_strides[R - 1], y_strides[R - 1],
                                 x_row + r + i * x_strides[R - 1], x_strides[R - 1]);
                    }
                }
            } else {
                copy_row(n, y_row, y_strides[R - 1], x_row, x_strides[R - 1]);
            }
            row += together;
            index.at[R - 2] += together - 1;
            index.advance(shape);
        }
    }
}

// y[i * y_strides] = value for the given rows.
template <int R, class T>
INLINE void fill_strided(const i64 (&shape)[R], Range rows, T* y, const i64 (&y_strides)[R], T value) {
    const i64 x_strides[R] = {};
    copy_strided<R, T>(shape, rows, y, y_strides, &value, x_strides);
}

// ---- Layouts of images. n is the number of images; ranges count planes: n * blocks() of a blocked tensor, n *
// channels of a padded one.

// x plain [n][C][h][w] to y blocked, with its border and missing channels.
INLINE void relayout_to_blocked([[maybe_unused]] i64 n, const Blocked& l, Range planes, const f32* x, f32* y) {
    const i64 size = l.h * l.w;
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const i64 image = plane / l.blocks();
        const i64 block = plane % l.blocks();
        const i64 channels = l.channels_in(block);
        const f32* from = x + (image * l.channels + block * lane_count) * size;
        for (i64 row = 0; row < l.h; row++) {
            f32* to = y + l.offset(image, block, row, 0);
            for (i64 column = 0; column < l.w; column++, to += lane_count) {
                store(to, load_strided(from + row * l.w + column, size, channels));
            }
        }
        write_halo(l, {0, l.h}, y + plane * l.plane());
    }
}

// x plain [n][c][h][w] to y phased, with its border; c at most 4, so that y has one block. l = phased(c, h, w, ...).
INLINE void relayout_to_phased([[maybe_unused]] i64 n, i64 h, i64 w, const Blocked& l, Range planes, const f32* x,
                               f32* y) {
    for (i64 image = planes.begin; image < planes.end; image++) {
        const f32* from = x + image * l.channels / 4 * h * w;
        for (i64 row = 0; row < l.h; row++) {
            f32* to = y + l.offset(image, 0, row, 0);
            fill_zero(to, l.w * lane_count);
            for (i64 lane = 0; lane < l.channels; lane += 2, to += 2) {
                const i64 line = 2 * row + lane / 2 % 2;
                if (line < h) {
                    const f32* pixels = from + (lane / 4 * h + line) * w;
                    for (i64 pair = 0; pair < w / 2; pair++) {
                        __builtin_memcpy_inline(to + pair * lane_count, pixels + 2 * pair, 2 * sizeof(f32));
                    }
                    if (w % 2 == 1) {
                        to[w / 2 * lane_count] = pixels[w - 1];
                    }
                }
            }
        }
        write_halo(l, {0, l.h}, y + image * l.image());
    }
}

// x plain to y padded, with its border.
INLINE void relayout_to_padded([[maybe_unused]] i64 n, const Padded& l, Range planes, const f32* x, f32* y) {
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const f32* from = x + plane * l.h * l.w;
        f32* to = y + plane * l.plane();
        for (i64 row = 0; row < l.h; row++) {
            copy_row(l.w, to + (l.top + row) * l.row() + l.left, 1, from + row * l.w, 1);
        }
        write_halo(l, {0, l.h}, to);
    }
}

// x blocked to y plain [n][C][h][w].
INLINE void relayout_to_plain([[maybe_unused]] i64 n, const Blocked& l, Range planes, const f32* x, f32* y) {
    const i64 size = l.h * l.w;
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const i64 image = plane / l.blocks();
        const i64 block = plane % l.blocks();
        const i64 channels = l.channels_in(block);
        f32* to = y + (image * l.channels + block * lane_count) * size;
        for (i64 row = 0; row < l.h; row++) {
            for (i64 begin = 0; begin < l.w; begin += copy_tile) {
                const i64 length = smaller(copy_tile, l.w - begin);
                const f32* from = x + l.offset(image, block, row, begin);
                for (i64 channel = 0; channel < channels; channel++) {
                    copy_row(length, to + channel * size + row * l.w + begin, 1, from + channel, lane_count);
                }
            }
        }
    }
}

// Block x_block of an image of x becomes block y_block of that of y, with its border. The images are of one size, their
// halos need not be.
[[gnu::noinline]] inline void copy_block(const Blocked& xl, i64 x_block, const Blocked& yl, i64 y_block, i64 image,
                                         const f32* x, f32* y) {
    const i64 channels = yl.channels_in(y_block);
    for (i64 row = 0; row < yl.h; row++) {
        const f32* from = x + xl.offset(image, x_block, row, 0);
        f32* to = y + yl.offset(image, y_block, row, 0);
        for (i64 column = 0; column < yl.w; column++) {
            store(to + column * lane_count, with_real_channels(channels, load(from + column * lane_count)));
        }
    }
    write_halo(yl, {0, yl.h}, y + image * yl.image() + y_block * yl.plane());
}

// y = the blocks of x from block `first` on; planes count images * blocks of y.
INLINE void slice_blocks(const Blocked& xl, i64 first, const Blocked& yl, Range planes, const f32* x, f32* y) {
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const i64 block = plane % yl.blocks();
        copy_block(xl, first + block, yl, block, plane / yl.blocks(), x, y);
    }
}

// An operand of a concatenation, whose blocks are those of the result from `first` on.
struct BlockedPart {
    const f32* x;
    Blocked layout;
    i64 first;
};

// y = the parts' blocks behind each other; planes count images * blocks of y. The first part begins at block 0.
INLINE void concat_blocks(const BlockedPart* parts, i64 count, const Blocked& yl, Range planes, f32* y) {
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const i64 block = plane % yl.blocks();
        i64 part = count - 1;
        while (parts[part].first > block) {
            part--;
        }
        const BlockedPart& from = parts[part];
        copy_block(from.layout, block - from.first, yl, block, plane / yl.blocks(), from.x, y);
    }
}

// ---- Choice by index

// y[o][j][i] = x[o][indices[j]][i] for x[outer][axis][inner] and `count` indices in -axis .. axis, negative ones
// counting from the end. The range counts the rows o * count + j. Returns the position j of the first index in the
// range that is out of bounds, where y gets zeros, or -1.
template <class T, class I>
INLINE i64 gather(i64 outer, i64 axis, i64 inner, i64 count, Range rows, const T* x, const I* indices, T* y) {
    i64 wrong = -1;
    rows.end = smaller(rows.end, outer * count);
    for (i64 row = rows.begin; row < rows.end; row++) {
        const i64 j = row % count;
        i64 index = static_cast<i64>(indices[j]);
        index += index < 0 ? axis : 0;
        T* to = y + row * inner;
        if (index < 0 || index >= axis) {
            wrong = wrong < 0 ? j : smaller(wrong, j);
            for (i64 i = 0; i < inner; i++) {
                to[i] = T(0);
            }
            continue;
        }
        copy_row(inner, to, 1, x + (row / count * axis + index) * inner, 1);
    }
    return wrong;
}

// gather of whole rows from a matrix of axis x inner elements whose transpose is packed into panels, as the b of a
// matrix product is.
template <class W, class I>
INLINE i64 gather_packed(i64 axis, i64 inner, Range rows, const W* packed, const I* indices, f32* y) {
    i64 wrong = -1;
    for (i64 row = rows.begin; row < rows.end; row++) {
        i64 index = static_cast<i64>(indices[row]);
        index += index < 0 ? axis : 0;
        const bool is_there = index >= 0 && index < axis;
        if (!is_there) {
            wrong = wrong < 0 ? row : wrong;
        }
        const i64 column = is_there ? index : 0;
        for (i64 i = 0; i < inner; i++) {
            y[row * inner + i] = is_there ? packed_element(packed, inner, i, column) : 0.0f;
        }
    }
    return wrong;
}

// y[i] = start + i * delta for the range. Integers wrap.
template <class T> INLINE void fill_range(Range range, T start, T delta, T* y) {
    for (i64 i = range.begin; i < range.end; i++) {
        y[i] = add(start, mul(static_cast<T>(i), delta));
    }
}

// How many of n elements are not zero. NaN is not zero.
template <class T> INLINE i64 nonzero_count(i64 n, const T* x) {
    i64 count = 0;
    for (i64 i = 0; i < n; i++) {
        count += x[i] != T(0);
    }
    return count;
}

// The indices of the elements that are not zero, in row-major order: dimension d of the j-th stands in
// y[j * element_stride + d * dimension_stride].
template <class T>
INLINE void nonzero_fill(i64 rank, const i64* shape, const T* x, i64* y, i64 element_stride, i64 dimension_stride) {
    i64 n = 1;
    for (i64 d = 0; d < rank; d++) {
        n *= shape[d];
    }
    for (i64 i = 0; i < n; i++) {
        if (x[i] == T(0)) {
            continue;
        }
        i64 left = i;
        for (i64 d = rank - 1; d >= 0; d--) {
            y[d * dimension_stride] = left % shape[d];
            left /= shape[d];
        }
        y += element_stride;
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
