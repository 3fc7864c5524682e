#pragma once
// Attention, y = softmax(q k * scale + mask) v, for one of a stack of heads, without its scores in memory as a whole:
//
//             keys ->                     width ->
//           | k k k k . . |             | v v v v |     keys
//           | k k k k . . |  depth      | . . . . |      |
//     q q   | s s s s . . |  scores     | y y y y |      v     rows of queries
//
// A task has some rows. It walks along the keys in blocks of about 64, packs a block of k and of v into panels, and has
// of each row the largest score so far, the sum of the powers exp(score - largest), and in y the sum of powers times v.
// Where a block has a larger score, sum and y are first multiplied by exp(largest before - largest now). So a score is
// one chain of fma in rising depth, an element of y one in rising key between these multiplications: the bits depend on
// nothing but the lengths of the blocks, which follow from the number of keys.
#include "kernels/gemm.hpp"
#include "kernels/math.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// Steps between neighbours are in elements; those of q along the depth and of y along the width are 1.
struct Attention {
    i64 rows, keys, depth, width;
    i64 q_row, k_depth, k_key, v_key, v_width, mask_row, mask_key, y_row;
    f32 scale;
    f32 fill;         // takes the place of a score whose mask is false
    bool nan_to_zero; // the powers of a row whose sum is no divisor count as 0
};

// What a task packs at once, of k and of v: so many of the depth and the width, and about so many keys; and the largest
// number of its rows.
inline constexpr i64 attention_block = 64, attention_rows = 96;

// The keys are cut into blocks of whole panels, so that none is much shorter than the others.
inline constexpr i64 most_attention_keys = 96;
struct AttentionKeys {
    i64 keys;

    constexpr i64 blocks() const { return larger(1, (keys + attention_block / 2) / attention_block); }
    constexpr Range block(i64 i) const {
        const Range panels = chunk(ceil_div(keys, lane_count), blocks(), i);
        return {panels.begin * lane_count, smaller(panels.end * lane_count, keys)};
    }
};

// The tiles of rows and panels, for a number of rows that may be `unknown`.
constexpr GemmTiles attention_tiles(i64 rows) {
    GemmTiles tiles = gemm_tiles(rows, attention_block, attention_block);
    // A last block may have any number of panels.
    tiles.rows.panel_counts = (u32(2) << tiles.rows.panels) - 2;
    tiles.one_row.panel_counts = (u32(2) << tiles.one_row.panels) - 2;
    return tiles;
}

// The number of tasks of one head.
constexpr i64 attention_tasks(const Attention& g, const GemmTiles& t) {
    const i64 tiles = ceil_div(g.rows, t.of(g.rows).rows);
    return ceil_div(tiles, attention_rows / t.of(g.rows).rows);
}

// c[Rows][Panels * 16], of which `columns` are there, + the products of rows of a with the panels: the chains of c go
// on.
template <int Rows, int Panels>
[[gnu::noinline]] void tile_onto(const f32* a, i64 row_step, i64 k, const f32* packed, i64 panel_step, f32* c,
                                 i64 c_row, i64 columns) {
    constexpr int anchors = (Rows + 2) / 3;
    vec<f32> sum[Rows][Panels];
    const f32* row[anchors];
    UNROLL for (int anchor = 0; anchor < anchors; anchor++) {
        row[anchor] = a + anchor * 3 * row_step;
        hide_origin(row[anchor]);
    }
    const bool full = columns >= Panels * lane_count;
    UNROLL for (int r = 0; r < Rows; r++) {
        UNROLL for (int p = 0; p < Panels; p++) {
            const f32* from = c + r * c_row + p * lane_count;
            sum[r][p] = full ? load(from) : load_lanes(from, columns - p * lane_count);
        }
    }
    Ahead ahead = own_weights(packed);
    for (; k >= 4; k -= 4) {
        tile_steps<4>(sum, row, row_step, packed, panel_step, ahead);
    }
    for (; k > 0; k--) {
        tile_steps<1>(sum, row, row_step, packed, panel_step, ahead);
    }
    UNROLL for (int r = 0; r < Rows; r++) {
        UNROLL for (int p = 0; p < Panels; p++) {
            f32* to = c + r * c_row + p * lane_count;
            if (full) {
                store(to, sum[r][p]);
            } else {
                store_lanes(to, sum[r][p], columns - p * lane_count);
            }
        }
    }
}

// tile_onto with run-time numbers of rows and panels, of those that occur in `T`.
template <Tiles T, Tile Size = T.first()>
INLINE void tile_onto_of(i64 rows, i64 panels, const f32* a, i64 row_step, i64 k, const f32* packed, i64 panel_step,
                         f32* c, i64 c_row, i64 columns) {
    if constexpr (Size.rows > 0) {
        if (rows == Size.rows && panels == Size.panels) {
            tile_onto<Size.rows, Size.panels>(a, row_step, k, packed, panel_step, c, c_row, columns);
        } else {
            tile_onto_of<T, T.next(Size)>(rows, panels, a, row_step, k, packed, panel_step, c, c_row, columns);
        }
    }
}

// The same for any number of columns and for the rows of some tiles of `count`, into which all rows are cut.
template <GemmTiles T>
INLINE void product_onto(i64 all_rows, i64 count, Range tiles, const f32* a, i64 row_step, i64 k, const f32* packed,
                         f32* c, i64 c_row, i64 columns) {
    const i64 bundle = T.of(all_rows).panels * lane_count;
    const i64 first = chunk(all_rows, count, tiles.begin).begin;
    for (i64 column = 0; column < columns; column += bundle) {
        const i64 left = smaller(bundle, columns - column);
        const i64 panels = ceil_div(left, lane_count);
        for (i64 t = tiles.begin; t < tiles.end; t++) {
            const Range rows = chunk(all_rows, count, t);
            const f32* a_row = a + (rows.begin - first) * row_step;
            f32* c_tile = c + (rows.begin - first) * c_row + column;
            if (all_rows == 1) {
                tile_onto_of<T.one_row>(1, panels, a_row, row_step, k, packed + column * k, k * lane_count, c_tile,
                                        c_row, left);
            } else {
                tile_onto_of<T.rows>(rows.size(), panels, a_row, row_step, k, packed + column * k, k * lane_count,
                                     c_tile, c_row, left);
            }
        }
    }
}

// ---- Masks: some numbers to add, truth values, or none

INLINE vec<f32> masked(vec<f32> score, const f32* mask, i64 step, i64 lanes, f32) {
    return score + load_strided(mask, step, lanes);
}

INLINE vec<f32> masked(vec<f32> score, const bool* mask, i64 step, i64 lanes, f32 fill) {
    return select(convert<u32>(load_strided(mask, step, lanes)) != 0u, score, splat(fill));
}

struct NoMask {};

INLINE vec<f32> masked(vec<f32> score, const NoMask*, i64, i64, f32) { return score; }

// What is known of the rows of a task, 16 of them in a vector.
struct Rows {
    alignas(64) f32 largest[attention_rows]; // score so far
    alignas(64) f32 sum[attention_rows];     // of the powers
    alignas(64) f32 factor[attention_rows];  // that y is to be multiplied by
};

// What the lanes hold of each of 16 rows, combined to a lane for each row in the order of combine_lanes. In each round
// two rows share a vector, half as many lanes of each as before.
template <class F> INLINE vec<f32> combine_rows(vec<f32> (&rows)[lane_count], F f) {
    UNROLL for (int r = 0; r < 8; r++) {
        const vec<f32> a = rows[r], b = rows[r + 8];
        rows[r] = f(__builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                    __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31));
    }
    UNROLL for (int r = 0; r < 4; r++) {
        const vec<f32> a = rows[r], b = rows[r + 4];
        rows[r] = f(__builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                    __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31));
    }
    UNROLL for (int r = 0; r < 2; r++) {
        const vec<f32> a = rows[r], b = rows[r + 2];
        rows[r] = f(__builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
                    __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31));
    }
    const vec<f32> a = rows[0], b = rows[1];
    return f(__builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
             __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31));
}

// exp(v) for v <= 0, 0 where that is no normal number: such numbers would cost 100 times as much.
INLINE vec<f32> normal_power(vec<f32> v) {
    const auto is_tiny = v < splat(-87.0f);
    return select(is_tiny, splat(0.0f), exp_to_normal(select(is_tiny, splat(-87.0f), v)));
}

// Turns the n products of each of `count` <= 16 rows into powers. What lies behind the n takes no part. Rows are taken
// together since each of them alone waits for its largest score and for its sum.
template <class M>
INLINE void soften(const Attention& g, i64 count, i64 n, f32* scores, const M* mask, f32* largest, f32* sum,
                   f32* factor) {
    // A NaN is not the largest score, but its power is one and makes the sum one.
    const auto maximum_of = [](auto a, auto b) { return select(a > b, a, b); };
    vec<f32> parts[lane_count];
    UNROLL for (i64 r = 0; r < lane_count; r++) { parts[r] = splat(-infinity_of<f32>); }
    for (i64 r = 0; r < count; r++) {
        vec<f32> most = splat(-infinity_of<f32>);
        for_lanes(n, [&](i64 i, i64 lanes) {
            f32* at = scores + r * most_attention_keys + i;
            const M* its_mask = mask + r * g.mask_row + i * g.mask_key;
            const vec<f32> score = masked(load(at) * splat(g.scale), its_mask, g.mask_key, lanes, g.fill);
            store(at, score);
            most = maximum_of(lanes == lane_count ? score : select_lanes(lanes, score, splat(-infinity_of<f32>)), most);
        });
        parts[r] = most;
    }
    const vec<f32> before = load(largest), now = maximum_of(combine_rows(parts, maximum_of), before);
    // As long as all scores are -inf their powers are 0.
    alignas(64) f32 zero[lane_count];
    store(zero, select(now == splat(-infinity_of<f32>), splat(0.0f), now));
    UNROLL for (i64 r = 0; r < lane_count; r++) { parts[r] = splat(0.0f); }
    for (i64 r = 0; r < count; r++) {
        vec<f32> powers = splat(0.0f);
        for_lanes(n, [&](i64 i, i64 lanes) {
            f32* at = scores + r * most_attention_keys + i;
            const vec<f32> power = normal_power(load(at) - splat(zero[r]));
            store(at, power);
            powers = powers + (lanes == lane_count ? power : select_lanes(lanes, power, splat(0.0f)));
        });
        parts[r] = powers;
    }
    const vec<f32> change = normal_power(before - load(zero));
    store(factor, change);
    store(sum, load(sum) * change + combine_rows(parts, [](auto a, auto b) { return a + b; }));
    store(largest, now);
}

// A row of y whose powers are all 0: NaN where v has one, or an infinity.
[[gnu::noinline]] inline void sum_of_zeros(const Attention& g, const f32* v, f32* y) {
    for (i64 i = 0; i < g.width; i++) {
        y[i] = 0.0f;
        for (i64 key = 0; key < g.keys; key++) {
            y[i] = fma(0.0f, v[key * g.v_key + i * g.v_width], y[i]);
        }
    }
}

// The part of y that belongs to a task of one head. T = attention_tiles(rows).
template <GemmTiles T, class M>
INLINE void attention_task(const Attention& g, i64 task, const f32* q, const f32* k, const f32* v, const M* mask,
                           f32* y) {
    constexpr i64 block = attention_block;
    const i64 count = ceil_div(g.rows, T.of(g.rows).rows);
    const Range tiles = chunk(count, attention_tasks(g, T), task);
    const i64 first = chunk(g.rows, count, tiles.begin).begin;
    const i64 rows = chunk(g.rows, count, tiles.end - 1).end - first;
    alignas(64) f32 packed[block * most_attention_keys];
    alignas(64) f32 scores[attention_rows * most_attention_keys];
    Rows state;
    q += first * g.q_row, y += first * g.y_row, mask += first * g.mask_row;
    for (i64 r = 0; r < attention_rows; r += lane_count) {
        store(state.largest + r, splat(-infinity_of<f32>));
        store(state.sum + r, splat(0.0f));
    }
    for (i64 r = 0; r < rows; r++) {
        for_lanes(g.width, [&](i64 i, i64 lanes) { store_lanes(y + r * g.y_row + i, splat(0.0f), lanes); });
    }
    const AttentionKeys cut = {g.keys};
    for (i64 i = 0; g.keys > 0 && i < cut.blocks(); i++) {
        const i64 key = cut.block(i).begin, n = cut.block(i).size();
        for (i64 at = 0; at < rows * most_attention_keys; at += lane_count) {
            store(scores + at, splat(0.0f));
        }
        for (i64 at = 0; at < g.depth; at += block) {
            const i64 depth = smaller(block, g.depth - at);
            pack_b(depth, n, k + key * g.k_key + at * g.k_depth, g.k_depth, g.k_key, packed);
            product_onto<T>(g.rows, count, tiles, q + at, g.q_row, depth, packed, scores, most_attention_keys, n);
        }
        for (i64 r = 0; r < rows; r += lane_count) {
            soften(g, smaller(lane_count, rows - r), n, scores + r * most_attention_keys,
                   mask + r * g.mask_row + key * g.mask_key, state.largest + r, state.sum + r, state.factor + r);
        }
        // Before the first block y is 0.
        for (i64 r = 0; key > 0 && r < rows; r++) {
            if (state.factor[r] != 1.0f) {
                f32* row = y + r * g.y_row;
                for_lanes(g.width, [&](i64 i, i64 lanes) {
                    store_lanes(row + i, load_lanes(row + i, lanes) * splat(state.factor[r]), lanes);
                });
            }
        }
        for (i64 at = 0; at < g.width; at += block) {
            const i64 width = smaller(block, g.width - at);
            pack_b(n, width, v + key * g.v_key + at * g.v_width, g.v_key, g.v_width, packed);
            product_onto<T>(g.rows, count, tiles, scores, most_attention_keys, n, packed, y + at, g.y_row, width);
        }
    }
    // Without keys there is no sum, and y is 0.
    for (i64 r = 0; g.keys > 0 && r < rows; r++) {
        f32* row = y + r * g.y_row;
        if (g.nan_to_zero && !(state.sum[r] > 0.0f)) {
            sum_of_zeros(g, v, row);
            continue;
        }
        for_lanes(g.width, [&](i64 i, i64 lanes) {
            store_lanes(row + i, load_lanes(row + i, lanes) / splat(state.sum[r]), lanes);
        });
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
