#pragma once
// Convolution in groups of few channels, of blocked f32 images: each group of `Width` channels (1, 2, 4 or 8) goes to
// as many channels of its own. Width 1 is the depthwise convolution. A block of 16 channels holds 16 / Width whole
// groups, and its outputs meet no other block, so the lanes of a pixel are computed side by side: for each tap and each
// channel of a group, a vector of weights times the pixel, whose lanes are first spread over the groups:
//
//     Width 2, channel 1:   pixel  a b c d e f ...   ->   b b d d f f ...
#include "kernels/conv.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// Elements of the packed weights.
constexpr i64 packed_narrow_size(i64 k, i64 width, i64 r, i64 s) {
    return ceil_div(k, lane_count) * r * s * width * lane_count;
}

// Packs weights [k][width][r][s] as [blocks][r][s][width][16]. Missing channels are zeros.
INLINE void pack_narrow(i64 k, i64 width, i64 r, i64 s, const f32* weights, f32* packed) {
    for (i64 block = 0; block * lane_count < k; block++) {
        for (i64 tap = 0; tap < r * s; tap++) {
            for (i64 channel = 0; channel < width; channel++) {
                for (i64 lane = 0; lane < lane_count; lane++) {
                    const i64 out = block * lane_count + lane;
                    *packed++ = out < k ? weights[(out * width + channel) * r * s + tap] : 0.0f;
                }
            }
        }
    }
}

// Pixels of a row that are computed at once: as many as hide the latency of fma but do not spill.
#if defined(__AVX512F__)
inline constexpr i64 narrow_pixels = 8;
#elif defined(__AVX2__)
inline constexpr i64 narrow_pixels = 4;
#else
inline constexpr i64 narrow_pixels = 2;
#endif

// How narrow_conv_task cuts the work.
constexpr ImageCut cut_narrow_conv(const Conv2d& p, i64 width) {
    return cut_blocks(ceil_div(p.k, lane_count), p.oh, p.ow, p.ow * p.r * p.s * width * lane_count);
}

constexpr i64 narrow_conv_tasks(const Conv2d& p, i64 width) { return cut_narrow_conv(p, width).tasks(p.n); }

// The lanes of a pixel that channel `Channel` of each lane's group holds.
template <int Width, int Channel> INLINE vec<f32> spread_groups(vec<f32> v) {
    if constexpr (Width == 1) {
        return v;
    } else if constexpr (Width == 2) {
        return __builtin_shufflevector(v, v, 0 + Channel, 0 + Channel, 2 + Channel, 2 + Channel, 4 + Channel,
                                       4 + Channel, 6 + Channel, 6 + Channel, 8 + Channel, 8 + Channel, 10 + Channel,
                                       10 + Channel, 12 + Channel, 12 + Channel, 14 + Channel, 14 + Channel);
    } else if constexpr (Width == 4) {
        return __builtin_shufflevector(v, v, 0 + Channel, 0 + Channel, 0 + Channel, 0 + Channel, 4 + Channel,
                                       4 + Channel, 4 + Channel, 4 + Channel, 8 + Channel, 8 + Channel, 8 + Channel,
                                       8 + Channel, 12 + Channel, 12 + Channel, 12 + Channel, 12 + Channel);
    } else {
        static_assert(Width == 8);
        return __builtin_shufflevector(v, v, 0 + Channel, 0 + Channel, 0 + Channel, 0 + Channel, 0 + Channel,
                                       0 + Channel, 0 + Channel, 0 + Channel, 8 + Channel, 8 + Channel, 8 + Channel,
                                       8 + Channel, 8 + Channel, 8 + Channel, 8 + Channel, 8 + Channel);
    }
}

template <int Width, int Pixels, int Channel = 0>
INLINE void narrow_tap(vec<f32> (&sum)[Pixels][1], const f32* x, i64 pixel_step, const f32* weights) {
    if constexpr (Channel < Width) {
        const vec<f32> w = load(weights + Channel * lane_count);
        UNROLL for (int i = 0; i < Pixels; i++) {
            sum[i][0] = fma(spread_groups<Width, Channel>(load(x + i * pixel_step)), w, sum[i][0]);
        }
        narrow_tap<Width, Pixels, Channel + 1>(sum, x, pixel_step, weights);
    }
}

// Makes one chain of fma for each lane of the pixels, whose windows begin at x, x + pixel_step, ... and have r rows of
// s taps; `out` is that of tile_product.
template <int Width, int Pixels, class Out>
[[gnu::noinline]] void narrow_tile(const f32* x, i64 pixel_step, i64 r, i64 row_step, i64 s, i64 column_step,
                                   const f32* weights, const Out& out) {
    vec<f32> sum[Pixels][1];
    UNROLL for (int i = 0; i < Pixels; i++) { sum[i][0] = splat(0.0f); }
    for (i64 ky = 0; ky < r; ky++, x += row_step) {
        const f32* tap = x;
        for (i64 kx = 0; kx < s; kx++, tap += column_step, weights += Width * lane_count) {
            narrow_tap<Width>(sum, tap, pixel_step, weights);
        }
    }
    take(sum, out);
}

// The windows of a depthwise convolution that have tiles of their own: so many columns without gaps, moving by 1 or 2.
struct Window {
    int columns, stride;
};
inline constexpr Window any_window = {0, 0};

// narrow_tile for such a window. A pixel is loaded once for all the taps in its row that meet it, in rising order; part
// by part of the lanes, so that there are registers for the taps of a row.
template <Window W, int Pixels, class Out>
[[gnu::noinline]] void window_tile(const f32* x, i64 r, i64 row_step, const f32* weights, const Out& out) {
    alignas(64) f32 sums[Pixels * lane_count];
    UNROLL for (int part = 0; part < core.parts; part++) {
        PartLanes sum[Pixels], tap[W.columns];
        UNROLL for (int i = 0; i < Pixels; i++) { sum[i] = 0.0f; }
        const f32 *row = x, *w = weights;
        for (i64 ky = 0; ky < r; ky++, row += row_step, w += W.columns * lane_count) {
            UNROLL for (int kx = 0; kx < W.columns; kx++) { tap[kx] = load_part(w + kx * lane_count, part); }
            UNROLL for (int column = 0; column < (Pixels - 1) * W.stride + W.columns; column++) {
                const PartLanes pixel = load_part(row + column * lane_count, part);
                UNROLL for (int kx = 0; kx < W.columns; kx++) {
                    const int to = column - kx;
                    if (to >= 0 && to % W.stride == 0 && to / W.stride < Pixels) {
                        sum[to / W.stride] = fma(pixel, tap[kx], sum[to / W.stride]);
                    }
                }
            }
        }
        UNROLL for (int i = 0; i < Pixels; i++) { store_part(sums + i * lane_count, part, sum[i]); }
    }
    vec<f32> sum[Pixels][1];
    UNROLL for (int i = 0; i < Pixels; i++) { sum[i][0] = load(sums + i * lane_count); }
    take(sum, out);
}

// The sizes of tiles, from the largest one down to 1. Where each output needs new pixels, few at once are quicker.
template <Window W> inline constexpr i64 narrow_tiles[] = {W.stride == 1 ? 7 : 4, 4, 1};
template <> inline constexpr i64 narrow_tiles<any_window>[] = {narrow_pixels, narrow_pixels / 2, 1};

// Tiles of one size: the last one of a row reaches back over pixels that are done; they get the same values again. So
// the best size is one by which few are computed.
template <Window W> constexpr i64 narrow_tile_pixels(i64 ow) {
    i64 best = 1;
    for (const i64 pixels : narrow_tiles<W>) {
        if (pixels <= ow && (best == 1 || ceil_div(ow, pixels) * pixels < ceil_div(ow, best) * best)) {
            best = pixels;
        }
    }
    return best;
}

// narrow_tile or window_tile with a run-time number of pixels.
template <int Width, Window W, int Size = 0, class Out>
INLINE void narrow_tile_of(i64 pixels, const Conv2d& p, const f32* x, i64 row, const f32* weights, const Out& out) {
    constexpr i64 size = narrow_tiles<W>[Size];
    if (pixels != size) {
        if constexpr (size > 1) {
            narrow_tile_of<Width, W, Size + 1>(pixels, p, x, row, weights, out);
        }
    } else if constexpr (W.columns > 0) {
        window_tile<W, size>(x, p.r, p.dilation_h * row, weights, out);
    } else {
        narrow_tile<Width, size>(x, p.stride_w * lane_count, p.r, p.dilation_h * row, p.s, p.dilation_w * lane_count,
                                 weights, out);
    }
}

// Computes a band of rows of one block of channels of image n, with their part of the border. Row `first` of the
// block's input begins at x, `row` elements before the next one, with the halo on its left.
template <int Width, Window W, class E>
INLINE void narrow_conv_rows(const Conv2d& p, i64 n, i64 block, Range band, const f32* x, i64 first, i64 row,
                             const f32* packed, f32* y, const Blocked& yl, E epilogue) {
    const f32* weights = packed + block * p.r * p.s * Width * lane_count;
    const i64 pixels = narrow_tile_pixels<W>(p.ow);
    for (i64 oy = band.begin; oy < band.end; oy++) {
        const f32* windows = x + (oy * p.stride_h - p.pad_top - first) * row;
        for (i64 tile = 0; tile < p.ow; tile += pixels) {
            const i64 ox = smaller(tile, p.ow - pixels);
            const f32* window = windows + ox * p.stride_w * lane_count;
            const At at = {block * lane_count, yl.offset(n, block, oy, ox), lane_count};
            if constexpr (is_light<E>) {
                narrow_tile_of<Width, W>(pixels, p, window, row, weights, Finished<E>{y, at, lane_count, 0, epilogue});
            } else {
                alignas(64) f32 sums[narrow_tiles<W>[0] * lane_count];
                narrow_tile_of<Width, W>(pixels, p, window, row, weights, static_cast<f32*>(sums));
                finish_pixels(pixels, sums, lane_count, yl.channels_in(block), y, at, lane_count, epilogue);
            }
        }
    }
    write_halo(yl, band, y + n * yl.image() + block * yl.plane());
}

// Computes the part of y that belongs to the task. x is blocked, its halo covers the padding; the epilogue is that of
// conv2d_task. W is p's window if Width is 1 and it has tiles of its own, else any_window.
template <int Width, Window W, class E>
INLINE void narrow_conv_task(const Conv2d& p, i64 task, const f32* x, const Blocked& xl, const f32* packed, f32* y,
                             const Blocked& yl, E epilogue) {
    const ImageCut cut = cut_narrow_conv(p, Width);
    const ImageCut::Piece piece = cut.piece(task);
    const Range blocks = chunk(yl.blocks(), cut.parts, piece.part);
    const Range band = chunk(p.oh, cut.bands, piece.band);
    for (i64 block = blocks.begin; block < blocks.end; block++) {
        narrow_conv_rows<Width, W>(p, piece.image, block, band, x + xl.offset(piece.image, block, 0, -p.pad_left), 0,
                                   xl.row(), packed, y, yl, epilogue);
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
