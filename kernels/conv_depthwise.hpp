#pragma once
// A convolution whose result only a depthwise convolution reads, and that one, as one step. The image between them is
// the largest of such networks (MobileNetV2, arXiv:1801.04381, calls it the expansion), and never lies in memory as a
// whole: for a few blocks of channels at a time, some of its rows are made in scratch memory that stays in a cache, and
// consumed. What two groups of rows both need is kept; what two tasks both need is computed twice, to the same bits.
#include "kernels/depthwise.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// How conv_depthwise_task cuts an image: parts of the bundles of panels of the first convolution, bands of the rows of
// the second one.
struct ConvDepthwiseCut {
    i64 panels, bundles;
    ImageCut image;
    i64 rows;      // of the result that a task makes at once
    i64 held_rows; // of the image between that they need
    i64 left, row; // elements of its halo on the left, and of a whole row
    i64 slot;      // elements of scratch memory that a task works in

    constexpr i64 tasks() const { return image.tasks(1); }
    constexpr i64 plane() const { return held_rows * row; }
    constexpr i64 scratch() const { return tasks() * slot; }
};

// At most so many tasks for an image, since each has scratch memory of its own, which holds so many elements unless a
// single row needs more.
inline constexpr i64 most_conv_depthwise_tasks = 16, conv_depthwise_slot = 32768;

// Rows of its image that an output row of a convolution meets.
constexpr i64 window_height(const Conv2d& p) { return (p.r - 1) * p.dilation_h + 1; }

// For tiles of so many panels.
constexpr ConvDepthwiseCut cut_conv_depthwise(const Conv2d& first, const Conv2d& second, i64 tile_panels) {
    ConvDepthwiseCut cut{};
    cut.panels = ceil_div(first.k, lane_count);
    cut.bundles = ceil_div(cut.panels, tile_panels);
    const i64 work = first.oh * first.ow * first.c * first.r * first.s * first.k +
                     second.oh * second.ow * second.r * second.s * second.k;
    cut.image = cut_image(cut.bundles, second.oh, false, smaller(most_conv_depthwise_tasks, task_count(work)));
    const i64 right = (second.ow - 1) * second.stride_w + (second.s - 1) * second.dilation_w + 1 - second.pad_left;
    cut.left = second.pad_left * lane_count;
    cut.row = cut.left + larger(right, second.w) * lane_count;
    const i64 fitting = conv_depthwise_slot / (tile_panels * larger(1, cut.row)) - window_height(second);
    cut.rows = larger(1, smaller(fitting / second.stride_h + 1, ceil_div(second.oh, cut.image.bands)));
    cut.held_rows = window_height(second) + (cut.rows - 1) * second.stride_h;
    cut.slot = tile_panels * cut.plane();
    return cut;
}

// The rows of the image between that some rows of the result meet; those outside of it are zeros.
constexpr Range rows_between(const Conv2d& second, Range rows) {
    return {rows.begin * second.stride_h - second.pad_top,
            (rows.end - 1) * second.stride_h - second.pad_top + window_height(second)};
}

constexpr Range clamped(Range rows, i64 count) {
    return {smaller(larger(rows.begin, 0), count), smaller(larger(rows.end, 0), count)};
}

// Calls f(rows, kept) for the groups of rows of the result in a band: the rows between that the group needs, of which
// the first `kept` are those that its predecessor needed last.
template <class F>
constexpr void for_groups_of_rows(const Conv2d& second, const ConvDepthwiseCut& cut, Range band, F f) {
    i64 held = rows_between(second, {band.begin, band.begin + 1}).begin;
    for (i64 row = band.begin; row < band.end; row += cut.rows) {
        const Range rows = {row, smaller(row + cut.rows, band.end)};
        const Range between = rows_between(second, rows);
        f(rows, between, larger(0, held - between.begin));
        held = between.end;
    }
}

// The tiles of the first convolution: of few panels, whose rows fit the scratch memory. m, its pixels, may be
// `unknown`.
inline constexpr i64 most_conv_depthwise_panels = 2;
constexpr Tiles conv_depthwise_tiles(i64 m, i64 k, i64 depth) {
    Tiles tiles = choose_tiles(m, smaller(k, most_conv_depthwise_panels * lane_count), depth);
    tiles.panel_counts = sizes_with_rest(ceil_div(k, lane_count), tiles.panels);
    return tiles;
}

// Whether rows of the first convolution's result can be made as one: each output needs one pixel, and these have no
// halo beside them.
constexpr bool is_flat_conv(const Conv2d& p, const Blocked& xl) {
    return p.r == 1 && p.s == 1 && p.stride_h == 1 && p.stride_w == 1 && xl.left + xl.right == 0;
}
constexpr bool is_flat_conv(const Conv2d&, const Padded&) { return false; }

// The same where all sizes are known. Some rows are made at once.
template <class X> constexpr Tiles conv_depthwise_tiles(const Conv2d& first, const Conv2d& second, const X& xl) {
    const bool is_flat = is_flat_conv(first, xl);
    Tiles tiles = conv_depthwise_tiles(is_flat ? first.oh * first.ow : first.ow, first.k, first.c * first.r * first.s);
    tiles.row_counts = 0;
    const ConvDepthwiseCut cut = cut_conv_depthwise(first, second, tiles.panels);
    for (i64 i = 0; i < cut.image.bands; i++) {
        for_groups_of_rows(second, cut, chunk(second.oh, cut.image.bands, i), [&](Range, Range between, i64 kept) {
            const i64 rows = clamped({between.begin + kept, between.end}, first.oh).size();
            if (rows > 0) {
                tiles.row_counts |= sizes_in_parts(is_flat ? rows * first.ow : first.ow, tiles.rows);
            }
        });
    }
    return tiles;
}

// Makes some rows of some panels of the first convolution's result from `held` on.
template <int Block, Tiles T, class X, class E>
[[gnu::noinline]] void make_rows_between(const Conv2d& first, const ConvDepthwiseCut& cut, i64 n, Range between,
                                         i64 panel, i64 panels, const f32* x, const X& xl, const f32* packed, f32* held,
                                         const E& its_epilogue) {
    const E epilogue = its_epilogue; // which no store can change
    const Range rows = clamped(between, first.oh);
    for (i64 i = 0; i < panels; i++) {
        f32* plane = held + i * cut.plane();
        fill_zero(plane, (rows.begin - between.begin) * cut.row);
        for (i64 y = rows.begin; y < rows.end; y++) {
            f32* row = plane + (y - between.begin) * cut.row;
            fill_zero(row, cut.left);
            fill_zero(row + cut.left + first.ow * lane_count, cut.row - cut.left - first.ow * lane_count);
        }
        fill_zero(plane + (rows.end - between.begin) * cut.row, (between.end - rows.end) * cut.row);
    }
    const bool is_flat = is_flat_conv(first, xl);
    const i64 line = is_flat ? rows.size() * first.ow : first.ow;
    const i64 tiles = ceil_div(line, T.rows);
    const i64 lines = is_flat ? smaller(1, rows.size()) : rows.size();
    const i64 x_step = first.stride_w * Block;
    const i64 panel_step = packed_channels(first.c, Block) * first.r * first.s * lane_count;
    const f32* weights = packed + panel * panel_step;
    const Walk walk = window_walk(first, xl);
    const Chunks tiles_of_line(line, larger(1, tiles));
    i64 oy = rows.begin, ox = 0;
    for (i64 i = 0, tile = 0; i < lines * tiles; i++, tile = tile + 1 < tiles ? tile + 1 : 0) {
        const i64 size = tiles_of_line[tile].size();
        const f32* window =
            x + xl.offset(n, 0, oy * first.stride_h - first.pad_top, ox * first.stride_w - first.pad_left);
        const auto multiply = [&](auto out) {
            tile_product_of<Block == 1 ? 0 : Block, T>(size, panels, window, x_step, walk, weights, panel_step,
                                                       own_weights(weights), out);
        };
        const auto place = [&](i64 at_panel) {
            return At{(panel + at_panel) * lane_count,
                      at_panel * cut.plane() + (oy - between.begin) * cut.row + cut.left + ox * lane_count, lane_count};
        };
        if constexpr (is_light<E>) {
            if (ox + size <= first.ow) {
                multiply(Finished<E>{held, place(0), lane_count, cut.plane(), epilogue});
                ox += size;
                if (ox == first.ow) {
                    oy++, ox = 0;
                }
                continue;
            }
        }
        alignas(64) f32 sums[T.rows * T.panels * lane_count];
        multiply(static_cast<f32*>(sums));
        for (i64 done = 0; done < size;) { // row by row
            const i64 count = smaller(size - done, first.ow - ox);
            for (i64 p = 0; p < panels; p++) {
                finish_pixels(count, sums + (done * panels + p) * lane_count, panels * lane_count,
                              smaller(lane_count, first.k - (panel + p) * lane_count), held, place(p), lane_count,
                              epilogue);
            }
            done += count, ox += count;
            if (ox == first.ow) {
                oy++, ox = 0;
            }
        }
    }
}

// Computes the part of image n of y that belongs to the task. The first convolution goes from x, Blocked for Block 16,
// Padded for Block 1, to first.k channels; its epilogue reads no images. The second one has as many channels, one for
// each. T = conv_depthwise_tiles(...); W is that of narrow_conv_task.
template <int Block, Tiles T, Window W, class X, class FirstEpilogue, class E>
INLINE void conv_depthwise_task(const Conv2d& first, const Conv2d& second, i64 n, i64 task, const f32* x, const X& xl,
                                const f32* first_packed, FirstEpilogue first_epilogue, const f32* packed, f32* scratch,
                                f32* y, const Blocked& yl, E epilogue) {
    const ConvDepthwiseCut cut = cut_conv_depthwise(first, second, T.panels);
    const ImageCut::Piece piece = cut.image.piece(task);
    const Range bundles = chunk(cut.bundles, cut.image.parts, piece.part);
    f32* held = scratch + task * cut.slot;
    for (i64 bundle = bundles.begin; bundle < bundles.end; bundle++) {
        const i64 panel = bundle * T.panels;
        const i64 panels = smaller(T.panels, cut.panels - panel);
        const Range band = chunk(second.oh, cut.image.bands, piece.band);
        for_groups_of_rows(second, cut, band, [&](Range rows, Range between, i64 kept) {
            for (i64 p = 0; p < panels && kept > 0; p++) {
                f32* plane = held + p * cut.plane();
                move_down(plane, plane + (cut.held_rows - kept) * cut.row, kept * cut.row);
            }
            make_rows_between<Block, T>(first, cut, n, {between.begin + kept, between.end}, panel, panels, x, xl,
                                        first_packed, held + kept * cut.row, first_epilogue);
            for (i64 p = 0; p < panels; p++) {
                narrow_conv_rows<1, W>(second, n, panel + p, rows, held + p * cut.plane(), between.begin, cut.row,
                                       packed, y, yl, epilogue);
            }
        });
        for (i64 p = 0; p < panels && second.oh == 0; p++) {
            write_halo(yl, {0, 0}, y + yl.offset(n, panel + p, -yl.top, -yl.left));
        }
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
