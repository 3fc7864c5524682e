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
INLINE void narrow_tap(vec<f32> (&sum)[Pixels], const f32* x, i64 pixel_step, const f32* weights) {
    if constexpr (Channel < Width) {
        const vec<f32> w = load(weights + Channel * lane_count);
        UNROLL for (int i = 0; i < Pixels; i++) {
            sum[i] = fma(spread_groups<Width, Channel>(load(x + i * pixel_step)), w, sum[i]);
        }
        narrow_tap<Width, Pixels, Channel + 1>(sum, x, pixel_step, weights);
    }
}

// out[Pixels][16] = one chain of fma for each lane of the pixels, whose windows begin at x, x + pixel_step, ... and
// have r rows of s taps.
template <int Width, int Pixels>
[[gnu::noinline]] void narrow_tile(const f32* x, i64 pixel_step, i64 r, i64 row_step, i64 s, i64 column_step,
                                   const f32* weights, f32* out) {
    vec<f32> sum[Pixels];
    UNROLL for (int i = 0; i < Pixels; i++) { sum[i] = splat(0.0f); }
    for (i64 ky = 0; ky < r; ky++, x += row_step) {
        const f32* tap = x;
        for (i64 kx = 0; kx < s; kx++, tap += column_step, weights += Width * lane_count) {
            narrow_tap<Width>(sum, tap, pixel_step, weights);
        }
    }
    UNROLL for (int i = 0; i < Pixels; i++) { store(out + i * lane_count, sum[i]); }
}

// Computes a band of rows of one block of channels of image n, with their part of the border.
template <int Width, class E>
INLINE void narrow_conv_rows(const Conv2d& p, i64 n, i64 block, Range band, const f32* x, const Blocked& xl,
                             const f32* packed, f32* y, const Blocked& yl, E epilogue) {
    const i64 channels = yl.channels_in(block);
    const i64 pixel_step = p.stride_w * lane_count;
    const i64 row_step = p.dilation_h * xl.row();
    const i64 column_step = p.dilation_w * lane_count;
    const f32* weights = packed + block * p.r * p.s * Width * lane_count;
    alignas(64) f32 out[narrow_pixels * lane_count];
    // Tiles of one size: the last one of a row reaches back over pixels that are done; they get the same values again.
    const i64 pixels = p.ow >= narrow_pixels ? narrow_pixels : p.ow >= narrow_pixels / 2 ? narrow_pixels / 2 : 1;
    for (i64 oy = band.begin; oy < band.end; oy++) {
        const f32* row = x + xl.offset(n, block, oy * p.stride_h - p.pad_top, -p.pad_left);
        for (i64 tile = 0; tile < p.ow; tile += pixels) {
            const i64 ox = smaller(tile, p.ow - pixels);
            const f32* window = row + ox * pixel_step;
            if (pixels == narrow_pixels) {
                narrow_tile<Width, narrow_pixels>(window, pixel_step, p.r, row_step, p.s, column_step, weights, out);
            } else if (pixels == narrow_pixels / 2) {
                narrow_tile<Width, narrow_pixels / 2>(window, pixel_step, p.r, row_step, p.s, column_step, weights,
                                                      out);
            } else {
                narrow_tile<Width, 1>(window, pixel_step, p.r, row_step, p.s, column_step, weights, out);
            }
            const At at = {block * lane_count, yl.offset(n, block, oy, ox), lane_count};
            finish_pixels(pixels, out, lane_count, channels, y, at, lane_count, epilogue);
        }
    }
    write_halo(yl, band, y + n * yl.image() + block * yl.plane());
}

// Computes the part of y that belongs to the task. x is blocked, its halo covers the padding; the epilogue is that of
// conv2d_task.
template <int Width, class E>
INLINE void narrow_conv_task(const Conv2d& p, i64 task, const f32* x, const Blocked& xl, const f32* packed, f32* y,
                             const Blocked& yl, E epilogue) {
    const ImageCut cut = cut_narrow_conv(p, Width);
    const ImageCut::Piece piece = cut.piece(task);
    const Range blocks = chunk(yl.blocks(), cut.parts, piece.part);
    const Range band = chunk(p.oh, cut.bands, piece.band);
    for (i64 block = blocks.begin; block < blocks.end; block++) {
        narrow_conv_rows<Width>(p, piece.image, block, band, x, xl, packed, y, yl, epilogue);
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
