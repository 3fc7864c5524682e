#pragma once
// Transposed convolution: x[i] times tap k of the window is added to y[i * stride + k * dilation - pad]. Both kernels
// compute it the other way round, from the output: the outputs of one phase, those with the same remainder of o + pad
// by the stride, meet the same taps, and neighbours among them meet neighbouring elements of x. So nothing is written
// twice, and each phase is a convolution of its own.
//
//     stride 2, 3 taps:   o + pad even: taps 0 and 2,  y[o] = x[i] w[0] + x[i - 1] w[2],  i = (o + pad) / 2
//                         o + pad odd:  tap 1,         y[o] = x[i] w[1]
#include "kernels/conv.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// The taps of one phase along one axis: first, first + step, ...; the next one meets the element `back` before.
struct PhaseTaps {
    i64 first, count, step, back;
};

constexpr i64 greatest_common_divisor(i64 a, i64 b) {
    while (b != 0) {
        const i64 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

constexpr PhaseTaps phase_taps(i64 taps, i64 stride, i64 dilation, i64 phase) {
    const i64 divisor = greatest_common_divisor(stride, dilation);
    PhaseTaps t{0, 0, stride / divisor, dilation / divisor};
    while (t.first < taps && (t.first * dilation - phase) % stride != 0) {
        t.first++;
    }
    t.count = ceil_div(taps - t.first, t.step);
    return t;
}

// How many taps the phases before this one have.
constexpr i64 taps_before(i64 taps, i64 stride, i64 dilation, i64 phase) {
    i64 count = 0;
    for (i64 tap = 0; tap < taps; tap++) {
        count += tap * dilation % stride < phase;
    }
    return count;
}

// The element of x that the first tap meets at output o, whose phase it has.
constexpr i64 phase_origin(const PhaseTaps& t, i64 stride, i64 dilation, i64 o, i64 pad) {
    return (o + pad - t.first * dilation) / stride;
}

// ---- f32, blocked images, no groups

// n images of c channels and h x w pixels to k channels and oh x ow pixels: a Conv2d whose pads are cut from the
// result. Elements of the packed weights.
constexpr i64 packed_conv_transpose_size(const Conv2d& p) {
    return ceil_div(p.k, lane_count) * ceil_div(p.c, lane_count) * p.r * p.s * lane_count * lane_count;
}

// Where the weights of a phase begin within those of a panel, in taps, and how many taps it has.
struct PhasePlace {
    i64 begin;
    PhaseTaps rows, columns;
};

constexpr PhasePlace phase_place(const Conv2d& p, i64 row_phase, i64 column_phase) {
    PhasePlace place{0, phase_taps(p.r, p.stride_h, p.dilation_h, row_phase),
                     phase_taps(p.s, p.stride_w, p.dilation_w, column_phase)};
    place.begin = taps_before(p.r, p.stride_h, p.dilation_h, row_phase) * p.s +
                  place.rows.count * taps_before(p.s, p.stride_w, p.dilation_w, column_phase);
    return place;
}

// Packs weights [c][k][r][s] into panels of 16 output channels, in each the phases row by row, in each the order in
// which the micro-kernel walks the input: (channel block, ky, kx, channel in block). Missing channels are zeros.
INLINE void pack_conv_transpose(const Conv2d& p, const f32* weights, f32* packed) {
    const i64 blocks = ceil_div(p.c, lane_count);
    for (i64 panel = 0; panel * lane_count < p.k; panel++) {
        for (i64 tap = 0; tap < p.r * p.s; tap++) {
            const i64 ky = tap / p.s, kx = tap % p.s;
            const PhasePlace place = phase_place(p, ky * p.dilation_h % p.stride_h, kx * p.dilation_w % p.stride_w);
            const i64 in_phase = (ky - place.rows.first) / place.rows.step * place.columns.count +
                                 (kx - place.columns.first) / place.columns.step;
            for (i64 in = 0; in < blocks * lane_count; in++) {
                const i64 at = panel * blocks * p.r * p.s + place.begin * blocks +
                               in / lane_count * place.rows.count * place.columns.count + in_phase;
                f32* to = packed + (at * lane_count + in % lane_count) * lane_count;
                for (i64 lane = 0; lane < lane_count; lane++) {
                    const i64 out = panel * lane_count + lane;
                    const bool exists = out < p.k && in < p.c;
                    to[lane] = exists ? weights[((in * p.k + out) * p.r + ky) * p.s + kx] : 0.0f;
                }
            }
        }
    }
}

// How the work is cut: images x parts of the bundles of panels x bands of output rows.
struct ConvTransposeCut {
    i64 panels, bundles;
    ImageCut image; // into parts of the bundles and bands of output rows
};

constexpr ConvTransposeCut cut_conv_transpose(const Conv2d& p, const Tiles& tiles) {
    ConvTransposeCut cut{};
    cut.panels = ceil_div(p.k, lane_count);
    cut.bundles = ceil_div(cut.panels, tiles.panels);
    const i64 taps = larger(1, p.r * p.s / (p.stride_h * p.stride_w));
    const i64 row_work = larger(1, p.ow * p.c * taps * tiles.panels * lane_count);
    cut.image = cut_image(cut.bundles, p.oh, has_more_pixels(p), task_count(cut.bundles * p.oh * row_work));
    return cut;
}

// The number of tasks, for the tiles that conv_transpose_task gets.
constexpr i64 conv_transpose_tasks(const Conv2d& p, const Tiles& tiles) {
    return cut_conv_transpose(p, tiles).image.tasks(p.n);
}

// Computes the rows of y that belong to the task, with their part of the border. The halo of x covers what the taps of
// the edges reach; the epilogue is that of conv2d_task. The outputs of a row that share a phase are the rows of a
// product: T = choose_tiles(ow / stride_w, k, c), with `unknown` for a width that the stride does not divide.
template <Tiles T, class E>
INLINE void conv_transpose_task(const Conv2d& p, i64 task, const f32* x, const Blocked& xl, const f32* packed, f32* y,
                                const Blocked& yl, E epilogue) {
    const ConvTransposeCut cut = cut_conv_transpose(p, T);
    const ImageCut::Piece piece = cut.image.piece(task);
    const Range band = chunk(p.oh, cut.image.bands, piece.band);
    const Range bundles = chunk(cut.bundles, cut.image.parts, piece.part);
    const i64 n = piece.image;
    const i64 blocks = ceil_div(p.c, lane_count);
    const i64 line = lane_count * lane_count;
    const i64 panel_step = blocks * p.r * p.s * line;
    alignas(64) f32 out[T.rows * T.panels * lane_count];
    for (i64 bundle = bundles.begin; bundle < bundles.end; bundle++) {
        const i64 first = bundle * T.panels;
        const i64 panels = smaller(T.panels, cut.panels - first);
        for (i64 oy = band.begin; oy < band.end; oy++) {
            for (i64 phase = 0; phase < smaller(p.stride_w, p.ow); phase++) {
                // The outputs `phase`, `phase` + stride, ... of the row.
                const i64 pixels = ceil_div(p.ow - phase, p.stride_w);
                const i64 tiles = ceil_div(pixels, T.rows);
                const PhasePlace place =
                    phase_place(p, (oy + p.pad_top) % p.stride_h, (phase + p.pad_left) % p.stride_w);
                const i64 iy = phase_origin(place.rows, p.stride_h, p.dilation_h, oy, p.pad_top);
                const i64 ix = phase_origin(place.columns, p.stride_w, p.dilation_w, phase, p.pad_left);
                const f32* weights = packed + first * panel_step + place.begin * blocks * line;
                const Walk walk = {blocks,
                                   xl.plane(),
                                   place.rows.count,
                                   -place.rows.back * xl.row(),
                                   place.columns.count,
                                   -place.columns.back * lane_count,
                                   lane_count};
                for (i64 t = 0; t < tiles; t++) {
                    const Range range = chunk(pixels, tiles, t);
                    const f32* window = x + xl.offset(n, 0, iy, ix + range.begin);
                    tile_product_of<16, T>(range.size(), panels, window, lane_count, walk, weights, panel_step,
                                           own_weights(weights), out);
                    for (i64 panel = 0; panel < panels; panel++) {
                        const i64 block = first + panel;
                        const i64 ox = phase + range.begin * p.stride_w;
                        const At at = {block * lane_count, yl.offset(n, block, oy, ox), lane_count};
                        finish_pixels(range.size(), out + panel * lane_count, panels * lane_count,
                                      yl.channels_in(block), y, at, p.stride_w * lane_count, epilogue);
                    }
                }
            }
        }
        for (i64 panel = 0; panel < panels; panel++) {
            write_halo(yl, band, y + n * yl.image() + (first + panel) * yl.plane());
        }
    }
}

// ---- Any element type, rank and grouping; plain tensors

// The element whose window meets output o with the given tap; -1 if there is none.
template <int Rank> INLINE i64 window_that_meets(const ConvAny<Rank>& p, i64 o, i64 tap) {
    i64 offset = 0, step = 1;
    bool meets = true;
    for (int d = Rank - 1; d >= 0; d--) {
        const i64 at = o % p.out[d] + p.pad[d] - tap % p.kernel[d] * p.dilation[d];
        const i64 element = at / p.stride[d];
        meets &= at >= 0 && at % p.stride[d] == 0 && element < p.in[d];
        offset += element * step;
        step *= p.in[d];
        o /= p.out[d];
        tap /= p.kernel[d];
    }
    return meets ? offset : -1;
}

// The fields of ConvAny, whose pads are cut from the result: y[n][k][out...] = bias[k] + the sum over (channel, window)
// in row-major order, one chain of fma per element. weights [c][k / groups][kernel...]; bias may be null. One task is
// one output channel of one image; their number is conv_any_tasks. Each element of x times the window is added where it
// lies, channel by channel and tap by tap: a tap meets an element of y at most once, so this is the order of the sum.
template <class T, int Rank>
INLINE void conv_transpose_any(const ConvAny<Rank>& p, i64 task, const T* x, const T* weights, const T* bias, T* y) {
    const i64 k = task % p.k;
    const i64 n = task / p.k;
    const i64 channels = p.c / p.groups;
    const i64 outputs = p.k / p.groups;
    constexpr int last = Rank - 1;
    i64 in_size = 1, out_size = 1, taps = 1;
    for (int d = 0; d < Rank; d++) {
        in_size *= p.in[d];
        out_size *= p.out[d];
        taps *= p.kernel[d];
    }
    y += task * out_size;
    for (i64 o = 0; o < out_size; o++) {
        y[o] = bias != nullptr ? bias[k] : T(0);
    }
    for (i64 i = 0; i < channels; i++) {
        const i64 c = k / outputs * channels + i;
        const T* image = x + (n * p.c + c) * in_size;
        const T* w = weights + (c * outputs + k % outputs) * taps;
        for (i64 tap = 0; tap < taps; tap++) {
            for (i64 row = 0; row < in_size; row += p.in[last]) {
                // Where the tap lies for the first element of the row of x, dimension by dimension from the inside.
                i64 row_left = row / p.in[last], tap_left = tap / p.kernel[last], offset = 0, step = p.out[last];
                bool is_outside = false;
                for (int d = last - 1; d >= 0; d--) {
                    const i64 at = row_left % p.in[d] * p.stride[d] + tap_left % p.kernel[d] * p.dilation[d] - p.pad[d];
                    is_outside |= at < 0 || at >= p.out[d];
                    offset += at * step;
                    step *= p.out[d];
                    row_left /= p.in[d];
                    tap_left /= p.kernel[d];
                }
                if (is_outside) {
                    continue;
                }
                const i64 shift = tap % p.kernel[last] * p.dilation[last] - p.pad[last];
                const Range valid = inside(p.in[last], p.stride[last], shift, p.out[last]);
                T* out = y + offset + shift;
                for (i64 column = valid.begin; column < valid.end; column++) {
                    T& sum = out[column * p.stride[last]];
                    sum = fma(image[row + column], w[tap], sum);
                }
            }
        }
    }
}

// The windows of an image, added up where they overlap: x [n][c][kernel...][windows...] to y[n][c][out...], with the
// fields of ConvAny of which `in` is the number of windows along each axis. One chain of sums in rising order of the
// taps per element, for the planes in the range.
template <class T, int Rank> INLINE void col2im(const ConvAny<Rank>& p, Range planes, const T* x, T* y) {
    i64 in_size = 1, out_size = 1, taps = 1;
    for (int d = 0; d < Rank; d++) {
        in_size *= p.in[d];
        out_size *= p.out[d];
        taps *= p.kernel[d];
    }
    for (i64 at = planes.begin * out_size; at < planes.end * out_size; at++) {
        T sum = 0;
        for (i64 tap = 0; tap < taps; tap++) {
            const i64 offset = window_that_meets(p, at % out_size, tap);
            if (offset >= 0) {
                sum = add(sum, x[(at / out_size * taps + tap) * in_size + offset]);
            }
        }
        y[at] = sum;
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
