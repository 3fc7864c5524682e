#pragma once
// Pooling: the largest or the mean value of a window. The quick kernels take and give blocked tensors and look only at
// the real image, whatever its halo; `pool_any` takes plain tensors of any element type.
#include "kernels/conv.hpp"
#include "kernels/layout.hpp"
#include "kernels/math.hpp"
#include "kernels/reduce.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// A pad that never ends: all taps of a window count, however far it reaches beyond the image.
inline constexpr i64 unbounded_pad = i64(1) << 40;

// n images of c channels, h x w to oh x ow pixels, with a window of kh x kw. The last two say where the padding ends,
// which matters only to a mean that counts the padding in a window that reaches beyond it (ceil_mode).
struct Pool2d {
    i64 n, c, h, w, oh, ow, kh, kw, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    i64 pad_bottom = unbounded_pad, pad_right = unbounded_pad;
};

// The taps t in 0 .. kernel for which at + t * dilation lies in 0 .. size.
constexpr Range taps_inside(i64 kernel, i64 dilation, i64 at, i64 size) { return inside(kernel, dilation, at, size); }

// How the quick kernels cut the work.
constexpr ImageCut cut_pool2d(const Pool2d& p) {
    return cut_blocks(ceil_div(p.c, lane_count), p.oh, p.ow, p.ow * p.kh * p.kw * lane_count);
}

constexpr i64 pool2d_tasks(const Pool2d& p) { return cut_pool2d(p).tasks(p.n); }

// Walks the pixels of a band of rows of one block of channels of image n. f(window, rows, columns) gives the result for
// the taps of the window that are real; `window` is where the tap (0, 0) lies or would lie.
template <class F>
INLINE void pool2d_rows(const Pool2d& p, i64 n, i64 block, Range band, const f32* x, const Blocked& xl, f32* y,
                        const Blocked& yl, F f) {
    const i64 channels = yl.channels_in(block);
    for (i64 oy = band.begin; oy < band.end; oy++) {
        const i64 iy = oy * p.stride_h - p.pad_top;
        const Range rows = taps_inside(p.kh, p.dilation_h, iy, p.h);
        f32* out = y + yl.offset(n, block, oy, 0);
        for (i64 ox = 0; ox < p.ow; ox++, out += lane_count) {
            const i64 ix = ox * p.stride_w - p.pad_left;
            const Range columns = taps_inside(p.kw, p.dilation_w, ix, p.w);
            vec<f32> v;
            [[clang::always_inline]] v = f(x + xl.offset(n, block, iy, ix), rows, columns, iy, ix);
            store(out, with_real_channels(channels, v));
        }
    }
    write_halo(yl, band, y + n * yl.image() + block * yl.plane());
}

// The same for all pixels of a task.
template <class F>
INLINE void pool2d_walk(const Pool2d& p, i64 task, const f32* x, const Blocked& xl, f32* y, const Blocked& yl, F f) {
    const ImageCut cut = cut_pool2d(p);
    const ImageCut::Piece piece = cut.piece(task);
    const Range blocks = chunk(yl.blocks(), cut.parts, piece.part);
    for (i64 block = blocks.begin; block < blocks.end; block++) {
        pool2d_rows(p, piece.image, block, chunk(p.oh, cut.bands, piece.band), x, xl, y, yl, f);
    }
}

// The largest value of each window; NaN if it holds one, -inf if no tap is real.
INLINE void max_pool2d_task(const Pool2d& p, i64 task, const f32* x, const Blocked& xl, f32* y, const Blocked& yl) {
    const i64 row_step = p.dilation_h * xl.row();
    const i64 column_step = p.dilation_w * lane_count;
    pool2d_walk(p, task, x, xl, y, yl, [&](const f32* window, Range rows, Range columns, i64, i64) {
        vec<f32> largest = splat(-infinity_of<f32>);
        for (i64 ky = rows.begin; ky < rows.end; ky++) {
            for (i64 kx = columns.begin; kx < columns.end; kx++) {
                largest = maximum(largest, load(window + ky * row_step + kx * column_step));
            }
        }
        return largest;
    });
}

// How many taps of a window starting at `at` lie before the end of the padding.
constexpr i64 padded_taps(i64 kernel, i64 dilation, i64 at, i64 end) {
    return larger(0, smaller(kernel, ceil_div(end - at, dilation)));
}

// The mean of each window: the sum of the real taps in row-major order, divided by their number, or by the number of
// all taps within the padded image if count_include_pad.
INLINE void avg_pool2d_task(const Pool2d& p, i64 task, const f32* x, const Blocked& xl, f32* y, const Blocked& yl,
                            bool count_include_pad) {
    const i64 row_step = p.dilation_h * xl.row();
    const i64 column_step = p.dilation_w * lane_count;
    pool2d_walk(p, task, x, xl, y, yl, [&](const f32* window, Range rows, Range columns, i64 iy, i64 ix) {
        vec<f32> sum = splat(0.0f);
        for (i64 ky = rows.begin; ky < rows.end; ky++) {
            for (i64 kx = columns.begin; kx < columns.end; kx++) {
                sum = sum + load(window + ky * row_step + kx * column_step);
            }
        }
        const i64 count = count_include_pad ? padded_taps(p.kh, p.dilation_h, iy, p.h + p.pad_bottom) *
                                                  padded_taps(p.kw, p.dilation_w, ix, p.w + p.pad_right)
                                            : rows.size() * columns.size();
        return sum / splat(static_cast<f32>(count));
    });
}

constexpr i64 global_avg_pool_tasks(i64 n, const Blocked& l) { return n * l.blocks(); }

// The mean of each channel of a plane: the sums of the rows, added in rising order, divided by h * w.
INLINE vec<f32> mean_of_plane(const Blocked& l, const f32* x, i64 n, i64 block) {
    vec<f32> sum = splat(0.0f);
    for (i64 row = 0; row < l.h; row++) {
        const f32* pixel = x + l.offset(n, block, row, 0);
        vec<f32> row_sum = splat(0.0f);
        for (i64 column = 0; column < l.w; column++, pixel += lane_count) {
            row_sum = row_sum + load(pixel);
        }
        sum = sum + row_sum;
    }
    return sum / splat(static_cast<f32>(l.h * l.w));
}

// y[n][C] = the means. One task is one block of 16 channels of one image.
INLINE void global_avg_pool_task(const Blocked& l, i64 task, const f32* x, f32* y) {
    const i64 n = task / l.blocks();
    const i64 block = task % l.blocks();
    store_lanes(y + n * l.channels + block * lane_count, mean_of_plane(l, x, n, block), l.channels_in(block));
}

// The same to a blocked image of one pixel.
INLINE void global_avg_pool_task(const Blocked& l, i64 task, const f32* x, f32* y, const Blocked& yl) {
    const i64 n = task / l.blocks();
    const i64 block = task % l.blocks();
    store(y + yl.offset(n, block, 0, 0), with_real_channels(l.channels_in(block), mean_of_plane(l, x, n, block)));
    write_halo(yl, {0, 1}, y + task * yl.plane());
}

// ---- Any element type and rank; plain tensors

// `planes` is the number of images times channels.
template <int Rank> struct PoolAny {
    i64 planes;
    i64 in[Rank], out[Rank], kernel[Rank], stride[Rank], dilation[Rank], pad[Rank];
    i64 pad_end[Rank];      // padding after the last element; matters to a mean that counts it
    bool count_include_pad; // Mean only
};

// Calls f(o, taps, padded_taps, walk) for each output o of a plane, with the numbers of its taps within the image and
// within the padding; walk(g) calls g(offset) with where each of those within lies, in row-major order.
template <int Rank, class F> INLINE void for_windows(const PoolAny<Rank>& p, F f) {
    i64 out_size = 1;
    for (int d = 0; d < Rank; d++) {
        out_size *= p.out[d];
    }
    for (i64 o = 0; o < out_size; o++) {
        Range taps[Rank];
        i64 first[Rank];
        i64 count = 1, padded_count = 1, left = o;
        for (int d = Rank - 1; d >= 0; d--) {
            first[d] = left % p.out[d] * p.stride[d] - p.pad[d];
            left /= p.out[d];
            taps[d] = taps_inside(p.kernel[d], p.dilation[d], first[d], p.in[d]);
            count *= taps[d].size();
            padded_count *= padded_taps(p.kernel[d], p.dilation[d], first[d], p.in[d] + p.pad_end[d]);
        }
        f(o, count, padded_count, [&](auto g) {
            for (i64 tap = 0; tap < count; tap++) {
                i64 tap_left = tap, offset = 0, step = 1;
                for (int d = Rank - 1; d >= 0; d--) {
                    const i64 at = taps[d].begin + tap_left % taps[d].size();
                    tap_left /= taps[d].size();
                    offset += (first[d] + at * p.dilation[d]) * step;
                    step *= p.in[d];
                }
                g(offset);
            }
        });
    }
}

template <int Rank> constexpr i64 elements_of(const i64 (&sizes)[Rank]) {
    i64 elements = 1;
    for (int d = 0; d < Rank; d++) {
        elements *= sizes[d];
    }
    return elements;
}

// y[plane][out...] = x[plane][in...] pooled by Op (Max, Mean or another of reduce.hpp), for the planes in the range.
template <class T, int Rank, class Op> INLINE void pool_any(const PoolAny<Rank>& p, Range planes, const T* x, T* y) {
    const i64 in_size = elements_of(p.in);
    const i64 out_size = elements_of(p.out);
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const T* image = x + plane * in_size;
        for_windows(p, [&](i64 o, i64 count, i64 padded_count, auto walk) {
            T result = Op::template neutral<T>;
            walk([&](i64 offset) { result = Op::enter(result, image[offset]); });
            y[plane * out_size + o] = Op::finish(result, p.count_include_pad ? padded_count : count);
        });
    }
}

// Where the first largest value of each window lies in all of x, NaN counting as the largest; `column_major`: with the
// first axis of an image as the fastest. A window without taps gives the image's first element.
template <class T, int Rank>
INLINE void pool_indices(const PoolAny<Rank>& p, Range planes, bool column_major, const T* x, i64* y) {
    const i64 in_size = elements_of(p.in);
    const i64 out_size = elements_of(p.out);
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const T* image = x + plane * in_size;
        for_windows(p, [&](i64 o, i64, i64, auto walk) {
            i64 best = -1;
            walk([&](i64 offset) {
                const T v = image[offset];
                if (best < 0 || v > image[best] || (v != v && image[best] == image[best])) {
                    best = offset;
                }
            });
            i64 index = larger(best, 0);
            if (column_major) {
                i64 left = index, step = in_size;
                index = 0;
                for (int d = Rank - 1; d >= 0; d--) {
                    step /= p.in[d];
                    index += left % p.in[d] * step;
                    left /= p.in[d];
                }
            }
            y[plane * out_size + o] = plane * in_size + index;
        });
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
