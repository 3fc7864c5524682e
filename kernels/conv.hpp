#pragma once
// Convolution, two ways. `conv2d_task` is the quick one, for f32 images with a halo: each pixel of the output is a row
// of the matrix product in gemm.hpp, and the micro-kernel walks the window of the input in place. `conv_any` takes any
// element type, one to three spatial dimensions, and groups.
#include "kernels/gemm.hpp"
#include "kernels/layout.hpp"
#include "kernels/math.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// n images of c channels and h x w pixels to k channels and oh x ow pixels, with a window of r x s.
struct Conv2d {
    i64 n, c, h, w, k, oh, ow, r, s, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
};

// The channels that the packed weights are for; `block` is that of the input, 16 or 1. The micro-kernel takes four at
// once.
constexpr i64 packed_channels(i64 c, i64 block) { return block == 1 ? c : ceil_div(c, 4) * 4; }

// Elements of the packed weights.
constexpr i64 packed_conv_size(i64 k, i64 c, i64 r, i64 s, i64 block) {
    return packed_size(packed_channels(c, block) * r * s, k);
}

// Packs weights [k][c][r][s] into panels of 16 output channels, whose rows stand in the order in which the micro-kernel
// walks the input: (channel block, ky, kx, channel in block) for block 16, (channel, ky, kx) for block 1. Missing
// channels on either side are zeros.
INLINE void pack_conv(i64 k, i64 c, i64 r, i64 s, i64 block, const f32* weights, f32* packed) {
    for (i64 panel = 0; panel * lane_count < k; panel++) {
        for (i64 outer = 0; outer * block < c; outer++) {
            const i64 channels = smaller(block, packed_channels(c, block) - outer * block);
            for (i64 tap = 0; tap < r * s; tap++) {
                for (i64 inner = 0; inner < channels; inner++) {
                    for (i64 lane = 0; lane < lane_count; lane++) {
                        const i64 out = panel * lane_count + lane;
                        const i64 in = outer * block + inner;
                        *packed++ = out < k && in < c ? weights[(out * c + in) * r * s + tap] : 0.0f;
                    }
                }
            }
        }
    }
}

// The tiles of a convolution. The pixels of a row of y are the rows of the product; an image of a single column is
// computed as one row. oh, ow and k may be `unknown`.
constexpr Tiles conv2d_tiles(i64 oh, i64 ow, i64 k, i64 depth) { return choose_tiles(ow == 1 ? oh : ow, k, depth); }

// How conv2d_task cuts the work: images x parts of the bundles of panels x bands of tiles, row by row.
struct Conv2dCut {
    bool is_column;
    i64 line, tiles; // the pixels of a line, and the tiles it is cut into
    i64 all_tiles;   // of an image
    i64 panels, bundles;
    ImageCut image; // into parts of the bundles and bands of the tiles

    // The rows whose first tile is one of these. Each row belongs to one band.
    constexpr Range rows(Range band) const {
        return is_column ? Range{chunk(line, tiles, band.begin).begin, chunk(line, tiles, band.end).begin}
                         : Range{ceil_div(band.begin, tiles), ceil_div(band.end, tiles)};
    }
};

// Whether a convolution has more pixels than weights.
constexpr bool has_more_pixels(const Conv2d& p) {
    return p.k * p.c * p.r * p.s <= larger(p.c * p.h * p.w, p.k * p.oh * p.ow);
}

constexpr Conv2dCut cut_conv2d(const Conv2d& p, const Tiles& tiles) {
    Conv2dCut cut{};
    cut.is_column = p.ow == 1;
    cut.line = cut.is_column ? p.oh : p.ow;
    cut.tiles = larger(1, ceil_div(cut.line, tiles.rows));
    cut.all_tiles = cut.is_column ? cut.tiles : p.oh * cut.tiles;
    cut.panels = ceil_div(p.k, lane_count);
    cut.bundles = ceil_div(cut.panels, tiles.panels);
    const i64 tile_work = larger(1, ceil_div(cut.line, cut.tiles) * p.c * p.r * p.s * tiles.panels * lane_count);
    const i64 tasks = task_count(cut.bundles * cut.all_tiles * tile_work);
    cut.image = cut_image(cut.bundles, cut.all_tiles, has_more_pixels(p), tasks);
    return cut;
}

// The number of tasks, for the tiles that conv2d_task gets.
constexpr i64 conv2d_tasks(const Conv2d& p, const Tiles& tiles) { return cut_conv2d(p, tiles).image.tasks(p.n); }

// Passes the sums of some pixels of one block of channels through the epilogue, and stores them from y + at.offset on.
// The steps lead from one pixel to the next.
template <class E>
INLINE void finish_pixels(i64 pixels, const f32* sums, i64 sums_step, i64 channels, f32* y, At at, i64 y_step,
                          E epilogue) {
    for (i64 i = 0; i < pixels; i++, sums += sums_step, at.offset += y_step) {
        vec<f32> v;
        [[clang::always_inline]] v = epilogue(load(sums), at);
        store(y + at.offset, with_real_channels(channels, v));
    }
}

// How the micro-kernel walks a window in the channels of p, which may be a group of those of x. Taps that lie behind
// each other are one run.
INLINE Walk window_walk(const Conv2d& p, const Blocked& xl) {
    const i64 blocks = ceil_div(p.c, lane_count);
    const i64 last_run = packed_channels(p.c, lane_count) - (blocks - 1) * lane_count;
    return {blocks, xl.plane(), p.r, p.dilation_h * xl.row(), p.s, p.dilation_w * lane_count, lane_count, last_run};
}
INLINE Walk window_walk(const Conv2d& p, const Padded& xl) {
    const i64 row_step = p.dilation_h * xl.row();
    if (p.dilation_w != 1) {
        return {p.c, xl.plane(), p.r, row_step, p.s, p.dilation_w, 1};
    }
    if (row_step != p.s) {
        return {p.c, xl.plane(), p.r, row_step, 1, 0, p.s};
    }
    return {p.c, xl.plane(), 1, 0, 1, 0, p.r * p.s};
}

// Computes the tiles of y that belong to the task, with their part of the border. x is Blocked for Block 16, Padded for
// Block 1, and its halo covers the padding. The epilogue, `vec<f32> e(vec<f32>, At)`, gets physical offsets in y and
// always 16 lanes: operands in the layout of y, and per-channel ones filled up to a multiple of 16, may be read whole.
// T = conv2d_tiles(oh, ow, k, c * r * s). Shared by all steps with such tiles and a known epilogue.
template <int Block, Tiles T, class X, class E>
[[gnu::noinline]] void conv2d_task(const Conv2d& p, i64 task, const f32* x, const X& xl, const f32* packed, f32* y,
                                   const Blocked& yl, const E& its_epilogue) {
    const E epilogue = its_epilogue; // which no store can change
    const Conv2dCut cut = cut_conv2d(p, T);
    const ImageCut::Piece piece = cut.image.piece(task);
    const Range band = chunk(cut.all_tiles, cut.image.bands, piece.band);
    const Range bundles = chunk(cut.bundles, cut.image.parts, piece.part);
    const i64 n = piece.image;
    const i64 panel_step = packed_channels(p.c, Block) * p.r * p.s * lane_count;
    const Walk walk = window_walk(p, xl);
    const i64 x_step = cut.is_column ? p.stride_h * xl.row() : p.stride_w * Block;
    const i64 y_step = cut.is_column ? yl.row() : lane_count;
    const Chunks tiles_of_line(cut.line, cut.tiles);
    for (i64 bundle = bundles.begin; bundle < bundles.end; bundle++) {
        const i64 first = bundle * T.panels;
        const i64 panels = smaller(T.panels, cut.panels - first);
        const f32* weights = packed + first * panel_step;
        i64 line = band.begin / cut.tiles, in_line = band.begin % cut.tiles;
        for (i64 tile = band.begin; tile < band.end; tile++) {
            const Range pixels = tiles_of_line[in_line];
            const i64 oy = cut.is_column ? pixels.begin : line;
            const i64 ox = cut.is_column ? 0 : pixels.begin;
            if (++in_line == cut.tiles) {
                line++, in_line = 0;
            }
            const f32* window = x + xl.offset(n, 0, oy * p.stride_h - p.pad_top, ox * p.stride_w - p.pad_left);
            const At at = {first * lane_count, yl.offset(n, first, oy, ox), lane_count};
            const auto multiply = [&](auto out) {
                tile_product_of<Block == 1 ? 0 : Block, T>(pixels.size(), panels, window, x_step, walk, weights,
                                                           panel_step, own_weights(weights), out);
            };
            if constexpr (is_light<E>) {
                multiply(Finished<E>{y, at, y_step, yl.plane(), epilogue});
            } else {
                alignas(64) f32 sums[T.rows * T.panels * lane_count];
                multiply(static_cast<f32*>(sums));
                for (i64 panel = 0; panel < panels; panel++) {
                    finish_pixels(pixels.size(), sums + panel * lane_count, panels * lane_count,
                                  yl.channels_in(first + panel), y,
                                  {at.channel + panel * lane_count, at.offset + panel * yl.plane(), lane_count}, y_step,
                                  epilogue);
                }
            }
        }
        const Range rows = cut.rows(band);
        if (rows.size() > 0 || p.oh == 0) {
            for (i64 panel = 0; panel < panels; panel++) {
                write_halo(yl, rows, y + n * yl.image() + (first + panel) * yl.plane());
            }
        }
    }
}

// ---- Any element type, rank and grouping; plain tensors

// n images of c channels to k channels, both a multiple of `groups`; input channels of a group meet the output channels
// of the same group. `pad` is what is added before the first element of a dimension; what lies beyond the last one is
// zero as far as the output asks for it.
template <int Rank> struct ConvAny {
    i64 n, c, k, groups;
    i64 in[Rank], out[Rank], kernel[Rank], stride[Rank], dilation[Rank], pad[Rank];
};

template <int Rank> constexpr i64 conv_any_tasks(const ConvAny<Rank>& p) { return p.n * p.k; }

// The outputs o for which o * stride + at lies in 0 .. size.
constexpr Range inside(i64 outputs, i64 stride, i64 at, i64 size) {
    const i64 begin = at < 0 ? ceil_div(-at, stride) : 0;
    const i64 end = at < size ? (size - 1 - at) / stride + 1 : 0;
    return {smaller(begin, outputs), larger(smaller(begin, outputs), smaller(end, outputs))};
}

// y[n][k][out...] = bias[k] + the sum over (channel, window) in row-major order, one chain of fma per element; taps
// outside of the image are left out. weights [k][c / groups][kernel...]; bias may be null. One task is one output
// channel of one image.
template <class T, int Rank>
INLINE void conv_any(const ConvAny<Rank>& p, i64 task, const T* x, const T* weights, const T* bias, T* y) {
    const i64 k = task % p.k;
    const i64 n = task / p.k;
    const i64 channels = p.c / p.groups;
    const i64 first_channel = k / (p.k / p.groups) * channels;
    i64 in_size = 1, out_rows = 1, taps = 1;
    for (int d = 0; d < Rank; d++) {
        in_size *= p.in[d];
        taps *= p.kernel[d];
        if (d < Rank - 1) {
            out_rows *= p.out[d];
        }
    }
    constexpr int last = Rank - 1;
    const i64 width = p.out[last];
    y += task * out_rows * width;
    for (i64 row = 0; row < out_rows; row++, y += width) {
        for (i64 ox = 0; ox < width; ox++) {
            y[ox] = bias != nullptr ? bias[k] : T(0);
        }
        for (i64 c = 0; c < channels; c++) {
            const T* image = x + (n * p.c + first_channel + c) * in_size;
            const T* w = weights + (k * channels + c) * taps;
            for (i64 tap = 0; tap < taps; tap++) {
                // The row of the image that this tap meets, dimension by dimension from the inside.
                i64 tap_left = tap / p.kernel[last], row_left = row;
                i64 offset = 0, step = p.in[last];
                bool outside = false;
                for (int d = last - 1; d >= 0; d--) {
                    const i64 at =
                        row_left % p.out[d] * p.stride[d] + tap_left % p.kernel[d] * p.dilation[d] - p.pad[d];
                    outside |= at < 0 || at >= p.in[d];
                    offset += at * step;
                    step *= p.in[d];
                    row_left /= p.out[d];
                    tap_left /= p.kernel[d];
                }
                if (outside) {
                    continue;
                }
                const i64 stride = p.stride[last];
                const i64 shift = tap % p.kernel[last] * p.dilation[last] - p.pad[last];
                const Range valid = inside(width, stride, shift, p.in[last]);
                const T* in = image + offset + shift;
                const T weight = w[tap];
                i64 ox = valid.begin;
                if (stride == 1) {
                    for (; ox + lane_count <= valid.end; ox += lane_count) {
                        store(y + ox, fma(load(in + ox), splat(weight), load(y + ox)));
                    }
                }
                for (; ox < valid.end; ox++) {
                    y[ox] = fma(in[ox * stride], weight, y[ox]);
                }
            }
        }
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
