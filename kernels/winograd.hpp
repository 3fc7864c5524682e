#pragma once
// Convolution by fewer multiplications, in the way that winograd_points.hpp tells: how an image is cut into blocks of
// tiles, and what is computed for a block.
//
// One chain of fma in rising k makes a sum at a point, and the transforms have a fixed order, so levels with fma give
// the same bits; which scheme a convolution takes decides its bits, how it is cut does not.
#include "kernels/conv.hpp"
#include "kernels/winograd_points.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

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

// The tiles along one direction: large ones, behind them small ones, so that fewer outputs are computed that the image
// does not have.
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

// f.template operator()<Low, Narrow>() for the size of a tile.
template <WinogradScheme W, class F> INLINE void with_size_of(const WinogradTile& tile, F f) {
    if constexpr (!W.has_small_tiles()) {
        f.template operator()<0, 0>();
    } else if (tile.is_low) {
        tile.is_narrow ? f.template operator()<1, 1>() : f.template operator()<1, 0>();
    } else {
        tile.is_narrow ? f.template operator()<0, 1>() : f.template operator()<0, 0>();
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
            f32* at_points = v + (i * cut.channel_blocks + channel_block) * lane_count;
            with_size_of<W>(tile, [&]<int Low, int Narrow>() {
                winograd_input<W, Low, Narrow>(image, xl, tile.y * W.stride - p.pad_top, tile.x * W.stride - p.pad_left,
                                               at_points, cut.point_step);
            });
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
                with_size_of<W>(tile, [&]<int Low, int Narrow>() {
                    winograd_output<W, Low, Narrow>(s + (i * panels + panel) * lane_count, sum_step, out);
                });
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
