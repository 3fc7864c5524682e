#pragma once
// Convolution with a window of 3 x 3 by fewer multiplications: F(M x M, 3 x 3) for M = 4 and 2, after Winograd,
// "Arithmetic Complexity of Computations" (1980), and Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (2016).
//
// A tile of M x M outputs needs (M + 2)^2 inputs. Both they and the weights are evaluated at M + 2 points in each
// direction; there the convolution is a product, for each of the (M + 2)^2 pairs of points a matrix product over the
// channels, which takes the micro-kernel of gemm.hpp; and from the products the outputs are interpolated:
//
//     x  --to_points-->  V[point][channel]  --product with weights-->  S[point][channel]  --from_points-->  y
//
// For M = 4 these are 36 multiplications where the sum over the window has 144, for M = 2 16 where it has 36. The
// points of M = 4 are 0, +-sqrt(1/2), +-sqrt(2) and infinity: with the usual 0, +-1, +-2 and infinity the error is
// twice as large. The points of M = 2 are 0, +-1 and infinity.
//
// A window that moves by 2 is one of 2 taps over every other input and one of a single tap over those between
// (polyphase). The first one takes M + 1 points, the same without 0; the second one the M inputs as they are, which
// counts here as M more points that have one weight in common. For M = 4 these are 81 multiplications instead of 144,
// for M = 2 25 instead of 36.
//
// A larger window that moves by 2 over an image of few channels is one of 3 x 3 or 4 x 4 taps over the channels of 2 x
// 2 pixels (see Phased in layout.hpp). F(4 x 4, 4 x 4) has the points +-0.4, +-0.85, +-1.75 and infinity, which of
// those tried had the smallest error.
//
// One chain of fma in rising k makes a sum at a point, and the transforms have a fixed order, so levels with fma give
// the same bits; which scheme a convolution takes decides its bits, how it is cut does not.
#include "kernels/conv.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// What a tile computes in one direction, and alike in the other: outputs of a window of `taps` that moves by `stride`.
struct WinogradScheme {
    int outputs, stride, taps = 3;

    // Of the products; the last ones have one weight in common where the stride is 2.
    constexpr int points() const { return stride == 1 ? weights() : outputs + 1 + outputs; }
    constexpr int weights() const { return outputs + taps - 1; }
    constexpr Range points_of(i64 weight) const {
        return {weight, weight + 1 < weights() ? weight + 1 : i64(points())};
    }
    constexpr int inputs(int of_outputs) const { return (of_outputs - 1) * stride + taps; }
    constexpr bool has_small_tiles() const { return taps == 3; }
    // The points that these do without.
    constexpr bool is_left_out(i64 point) const {
        return stride == 1 ? point == outputs : point == outputs - 1 || point == points() - 1;
    }
    constexpr int products() const { return points() * points(); }
};

// ---- The transforms in one direction, of any part of the lanes

inline constexpr f64 sqrt_half = 0.70710678118654752440, sqrt_two = 1.41421356237309504880;
inline constexpr f64 points_of_4_taps[3] = {0.4, 0.85, 1.75};

// The values at the points, of the inputs of M outputs.
template <class V> INLINE void to_points(const V (&d)[6], V (&v)[6]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two));
    v[0] = fma(V(-2.5f), d[2], d[0]) + d[4];
    v[5] = fma(V(-2.5f), d[3], d[1]) + d[5];
    const V even_a = fma(V(-2.0f), d[2], d[4]), odd_a = fma(V(-2.0f), d[1], d[3]);
    v[1] = fma(a, odd_a, even_a);
    v[2] = fma(-a, odd_a, even_a);
    const V even_b = fma(V(-0.5f), d[2], d[4]), odd_b = fma(V(-0.5f), d[1], d[3]);
    v[3] = fma(b, odd_b, even_b);
    v[4] = fma(-b, odd_b, even_b);
}
template <class V> INLINE void to_points(const V (&d)[4], V (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
}
template <class V> INLINE void to_points(const V (&d)[9], V (&v)[9]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two));
    const V even_a = fma(V(-2.0f), d[2], d[6]), odd_a = fma(V(-2.0f), d[0], d[4]);
    v[0] = fma(a, odd_a, even_a);
    v[1] = fma(-a, odd_a, even_a);
    const V even_b = fma(V(-0.5f), d[2], d[6]), odd_b = fma(V(-0.5f), d[0], d[4]);
    v[2] = fma(b, odd_b, even_b);
    v[3] = fma(-b, odd_b, even_b);
    v[4] = fma(V(-2.5f), d[4], d[0]) + d[8];
    UNROLL for (int i = 0; i < 4; i++) { v[5 + i] = d[2 * i + 1]; }
}
template <class V> INLINE void to_points(const V (&d)[5], V (&v)[5]) {
    v[0] = d[2] + d[0];
    v[1] = d[2] - d[0];
    v[2] = d[4] - d[0];
    v[3] = d[1];
    v[4] = d[3];
}

template <class V> INLINE void to_points(const V (&d)[7], V (&v)[7]) {
    constexpr auto& p = points_of_4_taps;
    UNROLL for (int i = 0; i < 3; i++) {
        // The polynomial without the points +-p[i], times z and 1.
        const f64 a = p[(i + 1) % 3] * p[(i + 1) % 3], b = p[(i + 2) % 3] * p[(i + 2) % 3];
        const V sum = V(f32(-(a + b))), product = V(f32(a * b)), point = V(f32(p[i]));
        const V even = fma(product, d[1], fma(sum, d[3], d[5])), odd = fma(product, d[0], fma(sum, d[2], d[4]));
        v[2 * i] = fma(point, odd, even);
        v[2 * i + 1] = fma(-point, odd, even);
    }
    constexpr f64 a = p[0] * p[0], b = p[1] * p[1], c = p[2] * p[2];
    v[6] =
        fma(V(f32(-a * b * c)), d[0], fma(V(f32(a * b + b * c + c * a)), d[2], fma(V(f32(-(a + b + c))), d[4], d[6])));
}

// Small tiles have M - 1 outputs, need fewer inputs, and leave one point out, that before infinity. They take the same
// weights: those were divided by a number that depends on the points, and where one is left out the outputs are
// multiplied by what is too much.

// The values at the points, of the inputs of M - 1 outputs; what is_left_out() is not written.
template <class V> INLINE void to_points(const V (&d)[5], V (&v)[6]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two)), half = V(0.5f);
    const V first = fma(-b, d[0], d[1]), odd = fma(-b, d[1], d[2]), even = fma(-b, d[2], d[3]);
    v[0] = fma(-half, first, even);
    v[1] = fma(a, odd, even);
    v[2] = fma(-a, odd, even);
    v[3] = fma(-half, d[1], d[3]);
    v[5] = fma(-half, odd, fma(-b, d[3], d[4]));
}
template <class V> INLINE void to_points(const V (&d)[3], V (&v)[4]) {
    v[0] = d[0] - d[1];
    v[1] = d[1];
    v[3] = d[2] - d[1];
}
template <class V> INLINE void to_points(const V (&d)[7], V (&v)[9]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two)), half = V(0.5f);
    const V odd = fma(-b, d[0], d[2]), even = fma(-b, d[2], d[4]);
    v[0] = fma(a, odd, even);
    v[1] = fma(-a, odd, even);
    v[2] = fma(-half, d[0], d[4]);
    v[4] = fma(-half, odd, fma(-b, d[4], d[6]));
    UNROLL for (int i = 0; i < 3; i++) { v[5 + i] = d[2 * i + 1]; }
}
template <class V> INLINE void to_points(const V (&d)[3], V (&v)[5]) {
    v[0] = d[0];
    v[2] = d[2] - d[0];
    v[3] = d[1];
}

// M outputs of the products at the points.
template <class V> INLINE void from_points(const V (&m)[6], V (&y)[4]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two));
    const V half_a = V(f32(sqrt_half / 2)), twice_b = V(f32(2 * sqrt_two));
    const V sum_a = m[1] + m[2], difference_a = m[1] - m[2];
    const V sum_b = m[3] + m[4], difference_b = m[3] - m[4];
    y[0] = m[0] + sum_a + sum_b;
    y[1] = fma(b, difference_b, a * difference_a);
    y[2] = fma(V(2.0f), sum_b, V(0.5f) * sum_a);
    y[3] = fma(twice_b, difference_b, half_a * difference_a) + m[5];
}
template <class V> INLINE void from_points(const V (&m)[4], V (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] + m[3];
}
template <class V> INLINE void from_points(const V (&m)[9], V (&y)[4]) {
    const V a = V(f32(sqrt_half)), b = V(f32(sqrt_two));
    const V half_a = V(f32(sqrt_half / 2)), twice_b = V(f32(2 * sqrt_two));
    const V sum_a = m[0] + m[1], difference_a = m[0] - m[1];
    const V sum_b = m[2] + m[3], difference_b = m[2] - m[3];
    y[0] = m[5] + sum_a + sum_b;
    y[1] = fma(b, difference_b, fma(a, difference_a, m[6]));
    y[2] = fma(V(2.0f), sum_b, fma(V(0.5f), sum_a, m[7]));
    y[3] = fma(twice_b, difference_b, fma(half_a, difference_a, m[8])) + m[4];
}
template <class V> INLINE void from_points(const V (&m)[5], V (&y)[2]) {
    y[0] = m[0] + m[1] + m[3];
    y[1] = m[0] - m[1] + m[2] + m[4];
}
template <class V> INLINE V weighed_sum(f64 a, V x, f64 b, V y, f64 c, V z) {
    return fma(V(f32(c)), z, fma(V(f32(b)), y, V(f32(a)) * x));
}
template <class V> INLINE void from_points(const V (&m)[7], V (&y)[4]) {
    constexpr f64 p = points_of_4_taps[0], q = points_of_4_taps[1], r = points_of_4_taps[2];
    const V sum_p = m[0] + m[1], difference_p = m[0] - m[1];
    const V sum_q = m[2] + m[3], difference_q = m[2] - m[3];
    const V sum_r = m[4] + m[5], difference_r = m[4] - m[5];
    y[0] = sum_p + sum_q + sum_r;
    y[1] = weighed_sum(p, difference_p, q, difference_q, r, difference_r);
    y[2] = weighed_sum(p * p, sum_p, q * q, sum_q, r * r, sum_r);
    y[3] = weighed_sum(p * p * p, difference_p, q * q * q, difference_q, r * r * r, difference_r) + m[6];
}

// M - 1 outputs.
template <class V> INLINE void from_points(const V (&m)[6], V (&y)[3]) {
    constexpr f64 a = sqrt_half, b = sqrt_two;
    const V p = V(f32(a + b)) * m[1], q = V(f32(b - a)) * m[2];
    const V sum = p + q, difference = p - q;
    y[0] = fma(V(f32(2 * b)), m[3], fma(V(f32(b)), m[0], sum));
    y[1] = fma(V(4.0f), m[3], V(f32(a)) * difference);
    y[2] = fma(V(f32(4 * b)), m[3], V(0.5f) * sum) + m[5];
}
template <class V> INLINE void from_points(const V (&m)[4], V (&y)[1]) { y[0] = m[0] + V(2.0f) * m[1] + m[3]; }
template <class V> INLINE void from_points(const V (&m)[9], V (&y)[3]) {
    constexpr f64 a = sqrt_half, b = sqrt_two;
    const V p = V(f32(a + b)) * m[0], q = V(f32(b - a)) * m[1];
    const V sum = p + q, difference = p - q;
    y[0] = fma(V(f32(2 * b)), m[2], m[5] + sum);
    y[1] = fma(V(4.0f), m[2], fma(V(f32(a)), difference, m[6]));
    y[2] = fma(V(f32(4 * b)), m[2], fma(V(0.5f), sum, m[7])) + m[4];
}
template <class V> INLINE void from_points(const V (&m)[5], V (&y)[1]) { y[0] = m[2] + V(2.0f) * m[0] + m[3]; }

// ---- Weights

// At the points, of the taps g.
template <WinogradScheme W> INLINE void weights_at_points(const f64 (&g)[W.taps], f64 (&u)[W.weights()]) {
    constexpr f64 a = sqrt_half, b = sqrt_two;
    if constexpr (W.taps == 4) {
        constexpr auto& p = points_of_4_taps;
        for (int i = 0; i < 3; i++) {
            const f64 x = p[i], y = p[(i + 1) % 3], z = p[(i + 2) % 3];
            const f64 divisor = 2 * x * (x * x - y * y) * (x * x - z * z);
            const f64 even = g[0] + g[2] * x * x, odd = g[1] * x + g[3] * x * x * x;
            u[2 * i] = (even + odd) / divisor;
            u[2 * i + 1] = (even - odd) / -divisor;
        }
        u[6] = g[3];
    } else if constexpr (W.stride == 2 && W.outputs == 2) {
        u[0] = (g[0] + g[2]) / 2;
        u[1] = (g[2] - g[0]) / 2;
        u[2] = g[2];
        u[3] = g[1];
    } else if constexpr (W.stride == 2) {
        u[0] = (g[0] + a * g[2]) / (-3 * a);
        u[1] = (g[0] - a * g[2]) / (3 * a);
        u[2] = (g[0] + b * g[2]) / (3 * b);
        u[3] = (g[0] - b * g[2]) / (-3 * b);
        u[4] = g[2];
        u[5] = g[1];
    } else if constexpr (W.outputs == 4) {
        const f64 half = g[0] + g[2] * 0.5, two = g[0] + g[2] * 2;
        u[0] = g[0];
        u[1] = (half + a * g[1]) / -1.5;
        u[2] = (half - a * g[1]) / -1.5;
        u[3] = (two + b * g[1]) / 6;
        u[4] = (two - b * g[1]) / 6;
        u[5] = g[2];
    } else {
        u[0] = g[0];
        u[1] = (g[0] + g[1] + g[2]) / 2;
        u[2] = (g[0] - g[1] + g[2]) / 2;
        u[3] = g[2];
    }
}

// Elements of the packed weights.
template <WinogradScheme W> constexpr i64 packed_winograd_size(i64 k, i64 c) {
    return W.weights() * W.weights() * packed_size(ceil_div(c, lane_count) * lane_count, k);
}

// Packs weights [k][c][taps][taps] as [panel of 16 output channels][weight][input channel][16]: at the points, computed
// in f64. Missing channels on either side are zeros.
template <WinogradScheme W> INLINE void pack_winograd(i64 k, i64 c, const f32* weights, f32* packed) {
    constexpr int count = W.weights();
    const i64 channels = ceil_div(c, lane_count) * lane_count;
    const i64 point_step = channels * lane_count;
    fill_zero(packed, packed_winograd_size<W>(k, c));
    for (i64 out = 0; out < k; out++) {
        for (i64 in = 0; in < c; in++) {
            const f32* window = weights + (out * c + in) * W.taps * W.taps;
            f64 rows[count][W.taps]; // at the points in the direction of y
            for (int x = 0; x < W.taps; x++) {
                f64 column[W.taps];
                for (int y = 0; y < W.taps; y++) {
                    column[y] = window[y * W.taps + x];
                }
                f64 at_points[count];
                weights_at_points<W>(column, at_points);
                for (int i = 0; i < count; i++) {
                    rows[i][x] = at_points[i];
                }
            }
            f32* to = packed + (out / lane_count * count * count * channels + in) * lane_count + out % lane_count;
            for (int i = 0; i < count; i++) {
                f64 at_points[count];
                weights_at_points<W>(rows[i], at_points);
                for (int j = 0; j < count; j++) {
                    to[(i * count + j) * point_step] = static_cast<f32>(at_points[j]);
                }
            }
        }
    }
}

// ---- The cut

// Tiles of a block: few enough that their V and S stay in a core's second-level cache, many enough that the weights at
// a point are read from it once for several tiles of registers.
inline constexpr i64 most_winograd_tiles = 28;
// Elements of V of all blocks that are under way at once, but for a block that is larger.
inline constexpr i64 most_winograd_values = i64(1) << 18;
// Blocks under way at once, and tasks that one block may be cut into.
inline constexpr i64 most_winograd_blocks = 16, most_winograd_parts = 8;

// Two panels where registers of 16 lanes hold their sums, else one.
inline constexpr i64 winograd_panels = rows_that_fit(2) > 2 ? 2 : 1;

// The tiles along one direction: large ones, behind them small ones, so that fewer outputs are computed
// that the image does not have.
struct TileLine {
    i64 large, small;

    constexpr i64 count() const { return large + small; }
};

template <WinogradScheme W> constexpr TileLine tile_line(i64 outputs) {
    const i64 count = ceil_div(outputs, W.outputs);
    const i64 small = W.has_small_tiles() ? smaller(count * W.outputs - outputs, count) : 0;
    return {count - small, small};
}

// Where a tile lies: its first output in each direction, and whether it is a small one there.
struct WinogradTile {
    i64 y, x;
    bool is_low, is_narrow;
};

// How a convolution is cut: the tiles of each image into blocks, and the bundles of panels of output channels into
// parts. Some blocks are under way at once, each with a V of its own and an S for each of its parts.
struct WinogradCut {
    TileLine rows, columns; // of tiles, in an image
    i64 image_blocks, blocks;
    i64 at_once;
    i64 channels; // that the products take
    i64 channel_blocks, panels, bundles, parts;
    i64 point_step; // from a point of V to the next: an odd number of lines, so that they do not meet in the cache
    i64 block_size; // elements of V: [point][tile][channel]
    i64 part_size;  // elements of S: [point][tile][panel][16]

    constexpr i64 tiles() const { return rows.count() * columns.count(); }
    // Tiles are numbered in four parts, by the sizes of rows x columns: large x small, large x large, small x large,
    // small x small. So all that have a product at a point lie behind each other.
    template <WinogradScheme W> constexpr WinogradTile tile(i64 number) const {
        const i64 wide = rows.large * columns.small, narrow_below = wide + rows.count() * columns.large;
        i64 row, column;
        if (number < wide) {
            row = number / columns.small, column = columns.large + number % columns.small;
        } else if (number < narrow_below) {
            row = (number - wide) / columns.large, column = (number - wide) % columns.large;
        } else {
            row = rows.large + (number - narrow_below) / columns.small;
            column = columns.large + (number - narrow_below) % columns.small;
        }
        const i64 low = larger(0, row - rows.large), narrow = larger(0, column - columns.large);
        return {row * W.outputs - low, column * W.outputs - narrow, row >= rows.large, column >= columns.large};
    }
    template <WinogradScheme W> constexpr Range tiles_at(i64 point) const {
        const bool large_rows = W.is_left_out(point / W.points());
        const bool large_columns = W.is_left_out(point % W.points());
        const i64 begin = large_columns ? rows.large * columns.small : 0;
        return {begin, large_rows      ? rows.large * columns.count()
                       : large_columns ? begin + rows.count() * columns.large
                                       : tiles()};
    }
    constexpr Range tiles_of(i64 block) const { return chunk(tiles(), image_blocks, block % image_blocks); }
    // Those of a block that have a product at a point; may be none.
    template <WinogradScheme W> constexpr Range tiles_in(i64 block, i64 point) const {
        const Range of_block = tiles_of(block), of_image = tiles_at<W>(point);
        const i64 begin = larger(of_block.begin, of_image.begin);
        return {begin, larger(begin, smaller(of_block.end, of_image.end))};
    }
    constexpr f32* v(f32* scratch, i64 slot) const { return scratch + slot * block_size; }
    constexpr f32* s(f32* scratch, i64 slot, i64 part) const {
        return v(scratch, at_once) + (slot * parts + part) * part_size;
    }
};

template <WinogradScheme W> constexpr WinogradCut cut_winograd(const Conv2d& p, i64 bundle_panels = winograd_panels) {
    WinogradCut cut{};
    cut.rows = tile_line<W>(p.oh);
    cut.columns = tile_line<W>(p.ow);
    cut.image_blocks = larger(1, ceil_div(cut.tiles(), most_winograd_tiles));
    cut.blocks = p.n * cut.image_blocks;
    cut.channels = packed_channels(p.c, lane_count);
    cut.channel_blocks = ceil_div(p.c, lane_count);
    cut.panels = ceil_div(p.k, lane_count);
    cut.bundles = ceil_div(cut.panels, bundle_panels);
    const i64 tiles = ceil_div(cut.tiles(), cut.image_blocks);
    cut.point_step = (cut.channel_blocks * tiles | 1) * lane_count;
    cut.block_size = W.products() * cut.point_step;
    cut.part_size = W.products() * (tiles * bundle_panels | 1) * lane_count;
    cut.at_once = larger(1, smaller(smaller(cut.blocks, most_winograd_blocks), most_winograd_values / cut.block_size));
    const i64 work = cut.at_once * tiles * W.products() * p.c * p.k;
    const i64 tasks = smaller(most_winograd_parts, task_count(work));
    cut.parts = larger(1, smaller(cut.bundles, ceil_div(tasks, cut.at_once)));
    return cut;
}

// The tiles of the products at the points, for images of oh x ow outputs with k channels; each may be `unknown`.
template <WinogradScheme W> constexpr Tiles winograd_tiles(i64 oh, i64 ow, i64 k) {
    constexpr i64 most = rows_that_fit(winograd_panels);
    Tiles tiles = {most, winograd_panels, all_up_to(most),
                   sizes_with_rest(k == unknown ? k : ceil_div(k, lane_count), winograd_panels)};
    const WinogradCut cut = cut_winograd<W>({.n = 1, .c = 1, .k = 1, .oh = oh, .ow = ow});
    // Of an image in many blocks, nearly all occur.
    if (oh == unknown || ow == unknown || cut.image_blocks > 64) {
        return tiles;
    }
    tiles.row_counts = 0;
    for (i64 block = 0; block < cut.image_blocks; block++) {
        for (i64 point = 0; point < W.products(); point++) {
            tiles.row_counts |= sizes_in_parts(cut.tiles_in<W>(block, point).size(), most);
        }
    }
    return tiles;
}

// The elements that V and S take, on the level that needs most. n, oh and ow may be `unknown`; then what they may take.
template <WinogradScheme W> constexpr i64 winograd_scratch(const Conv2d& p) {
    if (p.n != unknown && p.oh != unknown && p.ow != unknown) {
        i64 most = 0;
        for (i64 bundle_panels = 1; bundle_panels <= 2; bundle_panels++) {
            const WinogradCut cut = cut_winograd<W>(p, bundle_panels);
            most = larger(most, cut.at_once * (cut.block_size + cut.parts * cut.part_size));
        }
        return most;
    }
    const i64 largest_block = W.products() * (ceil_div(p.c, lane_count) * most_winograd_tiles | 1) * lane_count;
    const i64 largest_part = W.products() * (most_winograd_tiles * 2 | 1) * lane_count;
    return larger(most_winograd_values, largest_block) + (most_winograd_blocks + most_winograd_parts) * largest_part;
}

// ---- The work

// One channel block of one tile at all points: v[point * step] for the window whose first row and column are y, x.
// image is the plane, with its halo. Low and Narrow: 1 for a small tile in that direction. Part by part of the lanes,
// since a transform needs twice as many registers as it has inputs.
template <WinogradScheme W, int Low, int Narrow>
[[gnu::noinline]] void winograd_input(const f32* image, const Blocked& xl, i64 y, i64 x, f32* v, i64 point_step) {
    constexpr int points = W.points(), height = W.inputs(W.outputs - Low), width = W.inputs(W.outputs - Narrow);
    const f32* window = image + xl.offset(0, 0, y, x);
    i64 row_step = xl.row();
    const i64 h = smaller(height, xl.h + xl.bottom - y), w = smaller(width, xl.w + xl.right - x);
    alignas(64) f32 inside[height * width * lane_count];
    if (h < height || w < width) {
        // Behind the halo lies what no output of the image needs.
        for (i64 i = 0; i < height; i++) {
            for (i64 j = 0; j < width; j++) {
                store(inside + (i * width + j) * lane_count,
                      i < h && j < w ? load(window + i * row_step + j * lane_count) : splat(0.0f));
            }
        }
        window = inside, row_step = width * lane_count;
    }
    for (i64 part = 0; part < core.parts; part++) {
        PartLanes rows[height][points]; // at the points in the direction of x
        UNROLL for (int i = 0; i < height; i++) {
            PartLanes d[width];
            UNROLL for (int j = 0; j < width; j++) { d[j] = load_part(window + i * row_step + j * lane_count, part); }
            to_points(d, rows[i]);
        }
        UNROLL for (int j = 0; j < points; j++) {
            if (Narrow && W.is_left_out(j)) {
                continue;
            }
            PartLanes d[height], at_points[points];
            UNROLL for (int i = 0; i < height; i++) { d[i] = rows[i][j]; }
            to_points(d, at_points);
            UNROLL for (int i = 0; i < points; i++) {
                if (!Low || !W.is_left_out(i)) {
                    store_part(v + (i * points + j) * point_step, part, at_points[i]);
                }
            }
        }
    }
}

template <WinogradScheme W> INLINE auto input_transform(const WinogradTile& tile) {
    if constexpr (!W.has_small_tiles()) {
        return winograd_input<W, 0, 0>;
    } else if (tile.is_low) {
        return tile.is_narrow ? winograd_input<W, 1, 1> : winograd_input<W, 1, 0>;
    } else {
        return tile.is_narrow ? winograd_input<W, 0, 1> : winograd_input<W, 0, 0>;
    }
}

// The tiles of a block in their order.
struct WinogradTiles {
    WinogradTile tile[most_winograd_tiles];
    i64 count;
};

template <WinogradScheme W> INLINE WinogradTiles tiles_of_block(const WinogradCut& cut, i64 block) {
    const Range range = cut.tiles_of(block);
    WinogradTiles tiles;
    tiles.count = range.size();
    for (i64 i = 0; i < tiles.count; i++) {
        tiles.tile[i] = cut.tile<W>(range.begin + i);
    }
    return tiles;
}

// V of some channel blocks of a block of tiles. Not inlined, and so shared by all convolutions of a program.
template <WinogradScheme W>
[[gnu::noinline]] void winograd_inputs(const Conv2d& p, const WinogradCut& cut, i64 block, Range channel_blocks,
                                       const f32* x, const Blocked& xl, f32* v) {
    const WinogradTiles tiles = tiles_of_block<W>(cut, block);
    for (i64 channel_block = channel_blocks.begin; channel_block < channel_blocks.end; channel_block++) {
        const f32* image = x + xl.offset(block / cut.image_blocks, channel_block, -xl.top, -xl.left);
        for (i64 i = 0; i < tiles.count; i++) {
            const WinogradTile& tile = tiles.tile[i];
            input_transform<W>(tile)(image, xl, tile.y * W.stride - p.pad_top, tile.x * W.stride - p.pad_left,
                                     v + (i * cut.channel_blocks + channel_block) * lane_count, cut.point_step);
        }
    }
}

// The outputs of a tile, in rows of W.outputs, of the sums at the points, which lie point_step apart.
template <WinogradScheme W, int Low, int Narrow>
[[gnu::noinline]] void winograd_output(const f32* s, i64 point_step, f32* out) {
    constexpr int points = W.points(), height = W.outputs - Low, width = W.outputs - Narrow;
    for (i64 part = 0; part < core.parts; part++) {
        PartLanes columns[height][points];
        UNROLL for (int j = 0; j < points; j++) {
            if (Narrow && W.is_left_out(j)) {
                continue;
            }
            PartLanes m[points], y[height];
            UNROLL for (int i = 0; i < points; i++) {
                if (!Low || !W.is_left_out(i)) {
                    m[i] = load_part(s + (i * points + j) * point_step, part);
                }
            }
            from_points(m, y);
            UNROLL for (int i = 0; i < height; i++) { columns[i][j] = y[i]; }
        }
        UNROLL for (int i = 0; i < height; i++) {
            PartLanes y[width];
            from_points(columns[i], y);
            UNROLL for (int j = 0; j < width; j++) { store_part(out + (i * W.outputs + j) * lane_count, part, y[j]); }
        }
    }
}

template <WinogradScheme W> INLINE auto output_transform(const WinogradTile& tile) {
    if constexpr (!W.has_small_tiles()) {
        return winograd_output<W, 0, 0>;
    } else if (tile.is_low) {
        return tile.is_narrow ? winograd_output<W, 1, 1> : winograd_output<W, 1, 0>;
    } else {
        return tile.is_narrow ? winograd_output<W, 0, 1> : winograd_output<W, 0, 0>;
    }
}

// S of some panels for a block of tiles: the sums at the points, sum_step apart. Shared, too.
template <WinogradScheme W, Tiles T>
[[gnu::noinline]] void winograd_sums(const WinogradCut& cut, i64 block, i64 first, i64 panels, const f32* v,
                                     const f32* packed, i64 sum_step, f32* s) {
    const i64 channels = cut.channel_blocks * lane_count;
    const i64 weights_size = channels * lane_count;
    constexpr i64 count = W.weights() * W.weights();
    const i64 panel_step = count * weights_size;
    const Walk walk = {1, 0, 1, 0, 1, 0, cut.channels};
    const f32* weights = packed + first * panel_step;
    for (i64 weight = 0; weight < count; weight++, weights += weights_size) {
        const f32* next = weight + 1 < count ? weights + weights_size : packed + (first + panels) * panel_step;
        const Range point_rows = W.points_of(weight / W.weights()), point_columns = W.points_of(weight % W.weights());
        for (i64 at = 0; at < point_rows.size() * point_columns.size(); at++) {
            const i64 point = (point_rows.begin + at / point_columns.size()) * W.points() + point_columns.begin +
                              at % point_columns.size();
            const Range tiles = cut.tiles_in<W>(block, point);
            const i64 groups = ceil_div(tiles.size(), T.rows);
            // The products of a weight bring the next one to the cache, each group of rows a part of it.
            for (i64 group = 0; group < groups; group++) {
                const Ahead ahead = {next + weights_size / groups * group, 4 * lane_count / groups};
                const Range rows = chunk(tiles.size(), groups, group);
                const i64 row = tiles.begin - cut.tiles_of(block).begin + rows.begin;
                tile_product_of<0, T>(rows.size(), panels, v + point * cut.point_step + row * channels, channels, walk,
                                      weights, panel_step, ahead, s + point * sum_step + row * panels * lane_count);
            }
        }
    }
}

// Computes the outputs of a part of the panels for a block of tiles, with their part of the border, from V. The
// epilogue is that of conv2d_task. Shared by the steps with a known one.
template <WinogradScheme W, Tiles T, class E>
[[gnu::noinline]] void winograd_outputs(const Conv2d& p, const WinogradCut& cut, i64 block, i64 part, const f32* v,
                                        const f32* packed, f32* s, f32* y, const Blocked& yl, const E& its_epilogue) {
    const E epilogue = its_epilogue; // which no store can change
    const WinogradTiles tiles = tiles_of_block<W>(cut, block);
    const Range bundles = chunk(cut.bundles, cut.parts, part);
    const i64 n = block / cut.image_blocks;
    alignas(64) f32 out[W.outputs * W.outputs * lane_count];
    for (i64 bundle = bundles.begin; bundle < bundles.end; bundle++) {
        const i64 first = bundle * winograd_panels;
        const i64 panels = smaller(winograd_panels, cut.panels - first);
        const i64 sum_step = (tiles.count * panels | 1) * lane_count;
        winograd_sums<W, T>(cut, block, first, panels, v, packed, sum_step, s);
        for (i64 panel = 0; panel < panels; panel++) {
            const i64 channel = first + panel;
            f32* plane = y + n * yl.image() + channel * yl.plane();
            for (i64 i = 0; i < tiles.count; i++) {
                const WinogradTile& tile = tiles.tile[i];
                output_transform<W>(tile)(s + (i * panels + panel) * lane_count, sum_step, out);
                const Range rows = {tile.y, smaller(p.oh, tile.y + W.outputs - tile.is_low)};
                const i64 columns = smaller(p.ow - tile.x, W.outputs - tile.is_narrow);
                for (i64 oy = rows.begin; oy < rows.end; oy++) {
                    finish_pixels(
                        columns, out + (oy - rows.begin) * W.outputs * lane_count, lane_count, yl.channels_in(channel),
                        y, {channel * lane_count, yl.offset(n, channel, oy, tile.x), lane_count}, lane_count, epilogue);
                }
                if (tile.x == 0) {
                    write_halo(yl, rows, plane);
                }
            }
            if (cut.tiles() == 0) {
                write_halo(yl, {0, p.oh}, plane);
            }
        }
    }
}

// The tasks of the blocks first, first + 1, ... that are under way at once: if a block is one part, it makes its V
// itself; else tasks of winograd_inputs have made it. T = winograd_tiles<W>(p.oh, p.ow, p.k).
template <WinogradScheme W, Tiles T, class E>
INLINE void winograd_task(const Conv2d& p, const WinogradCut& cut, i64 first, i64 task, const f32* x, const Blocked& xl,
                          const f32* packed, f32* scratch, f32* y, const Blocked& yl, E epilogue) {
    const i64 slot = task / cut.parts, part = task % cut.parts;
    f32* v = cut.v(scratch, slot);
    if (cut.parts == 1) {
        winograd_inputs<W>(p, cut, first + slot, {0, cut.channel_blocks}, x, xl, v);
    }
    winograd_outputs<W, T>(p, cut, first + slot, part, v, packed, cut.s(scratch, slot, part), y, yl, epilogue);
}

} // namespace CUVIL_ISA
} // namespace cuvil
