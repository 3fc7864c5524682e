#pragma once
// Matrix product: c = a b, where b is packed beforehand into panels of 16 columns, once for all levels:
//   packed[ceil(n / 16)][k][16], the last panel filled up with zeros.
// Elements of the narrower types of weights.hpp are expanded as they are loaded; of them a stripe of 2 or 4 panels lies
// together, so that a step of k is always a line of the cache, and one row reads them in the order of memory.
//
// The heart is one micro-kernel, shared with the convolutions. It computes a tile of `Rows` rows by `Panels` panels:
// each step of k loads 16 weights of every panel, broadcasts one value of every row, and adds the products to
// accumulators that stay in registers for the whole of k. So an element is one chain of fma in rising k for every tile
// size, which tile.hpp is free to choose.
//
//              k ->                       16 columns per panel
//     row 0   a a a a ...          k   | w w w w . . . | w w w w . . . |
//     row 1   a a a a ...              v
#include "kernels/epilogue.hpp"
#include "kernels/layout.hpp"
#include "kernels/tile.hpp"
#include "kernels/weights.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// Where the k values of a row lie: `outer` times a step apart, in each `middle`, in each `inner`, in each a run of
// contiguous ones. Row-major a has 1, 1, 1 and a run of k; a convolution walks channel blocks, kernel rows and columns.
// The runs of the last outer step may be shorter.
struct Walk {
    i64 outer, outer_step;
    i64 middle, middle_step;
    i64 inner, inner_step;
    i64 run, last_run = run;
};

// What a tile brings to the caches while it is computed: lines of its panels' weights from `first` on, and `step`
// elements further for each 4 steps of k.
template <class W> struct Ahead {
    const W* first;
    i64 step;
};
// The tile's own weights, before it needs them.
template <class W> INLINE Ahead<W> own_weights(const W* packed) {
    return {packed + 4096 / sizeof(W), 4 * stripe_columns<W>};
}

// Hides where a pointer comes from. Without this LLVM recomputes the row pointers from one another in the inner loop,
// and spills the accumulators.
template <class T> INLINE void hide_origin(const T*& p) { asm("" : "+r"(p)); }

// Ends a step of a tile: no load of the next one is begun before all its sums are made. LLVM would begin some, run out
// of registers and keep a sum on the stack. With f32 in registers of 8 or 4 lanes it does not.
template <class W, int Rows, int Panels> INLINE void end_step([[maybe_unused]] vec<f32> (&sum)[Rows][Panels]) {
#if defined(__AVX512F__)
    UNROLL for (int r = 0; r < Rows; r++) {
        UNROLL for (int p = 0; p < Panels; p++) { asm volatile("" : "+v"(sum[r][p])::"memory"); }
    }
#elif defined(__AVX2__)
    if constexpr (!is_same<W, f32>) {
        UNROLL for (int r = 0; r < Rows; r++) {
            UNROLL for (int p = 0; p < Panels; p++) {
                auto low = sum[r][p].lo, high = sum[r][p].hi;
                asm volatile("" : "+x"(low), "+x"(high)::"memory");
                sum[r][p] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            }
        }
    }
    asm volatile("" ::: "memory");
#else
    asm volatile("" ::: "memory");
#endif
}

// `Steps` steps of k for a tile; row[i] points to the value of row 3 i.
template <int Steps, int Rows, int Panels, int Anchors, class W>
INLINE void tile_steps(vec<f32> (&sum)[Rows][Panels], const f32* (&row)[Anchors], i64 row_step, const W*& packed,
                       i64 panel_step, Ahead<W>& ahead) {
    UNROLL for (int step = 0; step < Steps; step++) {
        end_step<W>(sum);
        vec<f32> weights[Panels];
        UNROLL for (int p = 0; p < Panels; p++) {
            weights[p] = load_weights(packed + step * stripe_columns<W> + panel_offset<W>(p, panel_step));
            if (p % stripe_panels<W> == 0) {
                __builtin_prefetch(ahead.first + step * stripe_columns<W> + panel_offset<W>(p, panel_step));
            }
        }
        UNROLL for (int r = 0; r < Rows; r++) {
            vec<f32> value = splat(row[r / 3][r % 3 * row_step + step]);
            UNROLL for (int p = 0; p < Panels; p++) { sum[r][p] = fma(value, weights[p], sum[r][p]); }
        }
    }
    packed += Steps * stripe_columns<W>;
    hide_origin(packed);
    ahead.first += Steps == 4 ? ahead.step : ahead.step / 4;
    hide_origin(ahead.first);
    UNROLL for (int anchor = 0; anchor < Anchors; anchor++) {
        row[anchor] += Steps;
        hide_origin(row[anchor]);
    }
}

// What a tile does with its sums: leaves them in memory, sums[Rows][Panels * 16], ...
template <int Rows, int Panels> INLINE void take(const vec<f32> (&sum)[Rows][Panels], f32* sums) {
    UNROLL for (int r = 0; r < Rows; r++) {
        UNROLL for (int p = 0; p < Panels; p++) { store(sums + (r * Panels + p) * lane_count, sum[r][p]); }
    }
}

// ... or passes them through a light epilogue while they are in registers, and stores them from y + at.offset on.
template <class E> struct Finished {
    f32* y;
    At at;
    i64 row_step, panel_step;
    E epilogue;
};
template <int Rows, int Panels, class E> INLINE void take(const vec<f32> (&sum)[Rows][Panels], const Finished<E>& to) {
    const Finished<E> own = to; // which no store can change
    UNROLL for (int p = 0; p < Panels; p++) {
        At at = {own.at.channel + p * lane_count, own.at.offset + p * own.panel_step, lane_count};
        UNROLL for (int r = 0; r < Rows; r++, at.offset += own.row_step) {
            store(own.y + at.offset, own.epilogue(sum[r][p], at));
        }
    }
}

// Makes the products of rows a, a + row_step, ... with the panels, which lie panel_step apart (their stripes, where
// those have several) and hold their weights in the order of the walk; `out` says where they go. `Run` is the length of
// the walk's runs where it is fixed (16 is used, of which the last ones may take a multiple of 4), else 0.
template <int Rows, int Panels, int Run, class W, class Out>
[[gnu::noinline]] void tile_product(const f32* a, i64 row_step, const Walk& walk, const W* packed, i64 panel_step,
                                    Ahead<W> ahead, const Out& out) {
    // Rows are addressed from every third one, so that an address is a register plus 0, 1 or 2 times the step.
    constexpr int anchors = (Rows + 2) / 3;
    vec<f32> sum[Rows][Panels];
    UNROLL for (int r = 0; r < Rows; r++) {
        UNROLL for (int p = 0; p < Panels; p++) { sum[r][p] = splat(0.0f); }
    }
    const f32* outer_row = a;
    for (i64 outer = 0; outer < walk.outer; outer++, outer_row += walk.outer_step) {
        const i64 run = outer + 1 == walk.outer ? walk.last_run : Run > 0 ? Run : walk.run;
        const f32* middle_row = outer_row;
        for (i64 middle = 0; middle < walk.middle; middle++, middle_row += walk.middle_step) {
            const f32* inner_row = middle_row;
            for (i64 inner = 0; inner < walk.inner; inner++, inner_row += walk.inner_step) {
                const f32* row[anchors];
                UNROLL for (int anchor = 0; anchor < anchors; anchor++) {
                    row[anchor] = inner_row + anchor * 3 * row_step;
                    hide_origin(row[anchor]);
                }
                i64 left = run;
                for (; left >= 4; left -= 4) {
                    tile_steps<4>(sum, row, row_step, packed, panel_step, ahead);
                }
                if constexpr (Run % 4 != 0 || Run == 0) {
                    for (; left > 0; left--) {
                        tile_steps<1>(sum, row, row_step, packed, panel_step, ahead);
                    }
                }
            }
        }
    }
    take(sum, out);
}

// tile_product with run-time numbers of rows and panels, of those that occur in `T`.
template <int Run, Tiles T, Tile Size = T.first(), class W, class Out>
INLINE void tile_product_of(i64 rows, i64 panels, const f32* a, i64 row_step, const Walk& walk, const W* packed,
                            i64 panel_step, Ahead<W> ahead, Out out) {
    if constexpr (Size.rows > 0) {
        if (rows == Size.rows && panels == Size.panels) {
            tile_product<Size.rows, Size.panels, Run>(a, row_step, walk, packed, panel_step, ahead, out);
        } else {
            tile_product_of<Run, T, T.next(Size)>(rows, panels, a, row_step, walk, packed, panel_step, ahead, out);
        }
    }
}

// ---- f32: c[m][n] = a[m][k] b[k][n], rows lda and ldc elements apart, and the elements of a row of a `a_step`; W is
// what the packed b holds.

struct Gemm {
    i64 m, n, k, lda, ldc, a_step = 1;
};

// Elements of a packed b.
constexpr i64 packed_size(i64 k, i64 n) { return ceil_div(n, lane_count) * k * lane_count; }

// Packs a panel whose columns are contiguous in memory and `stride` apart: `lanes` of them, k values each.
[[gnu::noinline]] inline void pack_columns(i64 k, i64 lanes, const f32* b, i64 stride, f32* packed) {
    for (i64 i = 0; i < k; i += lane_count) {
        const i64 left = smaller(lane_count, k - i);
        vec<f32> columns[lane_count];
        UNROLL for (int lane = 0; lane < lane_count; lane++) {
            columns[lane] = lane < lanes ? load_lanes(b + lane * stride + i, left) : splat(0.0f);
        }
        transpose_lanes(columns);
        UNROLL for (int step = 0; step < lane_count; step++) {
            if (step < left) {
                store(packed + (i + step) * lane_count, columns[step]);
            }
        }
    }
}

// Packs b, whose element (i, j) is b[i * row_stride + j * column_stride], into packed_size(k, n) elements.
INLINE void pack_b(i64 k, i64 n, const f32* b, i64 row_stride, i64 column_stride, f32* packed) {
    if (k == 0) return; // b may be no memory at all
    for (i64 j = 0; j < n; j += lane_count, packed += k * lane_count) {
        const i64 lanes = smaller(lane_count, n - j);
        const f32* panel = b + j * column_stride;
        if (row_stride == 1 && column_stride != 1) {
            pack_columns(k, lanes, panel, column_stride, packed);
            continue;
        }
        for (i64 i = 0; i < k; i++) {
            store(packed + i * lane_count, load_strided(panel + i * row_stride, column_stride, lanes));
        }
    }
}

// The tiles of a product. Where the rows are counted at run time only, a single one has tiles of its own, or it would
// wait for its own additions.
struct GemmTiles {
    Tiles rows, one_row;
    bool one_row_streams = false; // a single row takes its weights from memory, in one sequence

    constexpr const Tiles& of(i64 m) const { return m == 1 ? one_row : rows; }
};

// Whether weights of k x n are best read panel by panel, and by the hardware's foresight alone: if they do not fit into
// a second-level cache. A Zen 4 core then reads 28 to 31 GB/s, of four panels at once 26 to 28, with hints ahead 20 to
// 24.
template <class W> constexpr bool is_read_in_sequence(i64 n, i64 k) {
    return is_same<W, f32> && core.parts == 2 && n != unknown && k != unknown && n * k > (i64(1) << 19);
}

// For c[m][n] = a[m][k] b[k][n]; each size may be `unknown`.
template <class W = f32> constexpr GemmTiles gemm_tiles(i64 m, i64 n, i64 k) {
    const bool streams = is_read_in_sequence<W>(n, k);
    const Tiles rows = choose_tiles(m, n, k, stripe_panels<W>);
    const Tiles one_row = streams ? Tiles{1, 1, 2, 2} : m == unknown ? choose_tiles(1, n, k, stripe_panels<W>) : rows;
    return {m == 1 ? one_row : rows, one_row, streams};
}

// How gemm_task cuts the work: tiles of rows, of about 512 KB of a together, times bundles of panels.
struct GemmCut {
    i64 panels;       // of b
    i64 tiles;        // of rows
    i64 row_parts;    // tasks along the rows
    i64 bundle_parts; // tasks along the panels
};

constexpr GemmCut cut_gemm(const Gemm& g, const Tiles& t) {
    GemmCut cut{};
    cut.panels = ceil_div(g.n, lane_count);
    cut.tiles = ceil_div(g.m, t.rows);
    i64 tiles_at_once = larger(1, 131072 / larger(1, t.rows * g.k));
    cut.row_parts = ceil_div(cut.tiles, tiles_at_once);
    i64 bundles = ceil_div(cut.panels, t.panels);
    cut.bundle_parts = smaller(bundles, ceil_div(task_count(g.m * g.n * g.k), larger(1, cut.row_parts)));
    return cut;
}

// The number of tasks, for the tiles that gemm_task gets; 0 if there is nothing to compute.
constexpr i64 gemm_tasks(const Gemm& g, const GemmTiles& tiles) {
    if (g.m == 0 || g.n == 0) {
        return 0;
    }
    GemmCut cut = cut_gemm(g, tiles.of(g.m));
    return cut.row_parts * cut.bundle_parts;
}

// Computes the part of c that belongs to the task: every element passes through the epilogue, `vec<f32> e(vec<f32>,
// At)` with offsets in c, and is stored. T = gemm_tiles<W>(m, n, k). Run is 0 where a_step is 1, else 1.
template <GemmTiles T, int Run = 0, class W, class E>
INLINE void gemm_task(const Gemm& g, i64 task, const f32* a, const W* packed, f32* c, E epilogue) {
    const Tiles& sizes = T.of(g.m);
    const GemmCut cut = cut_gemm(g, sizes);
    const i64 panel_step = stripe_size<W>(g.k);
    const Walk walk = Run == 0 ? Walk{1, 0, 1, 0, 1, 0, g.k} : Walk{1, 0, 1, 0, g.k, g.a_step, 1};
    const Range bundles = chunk(ceil_div(cut.panels, sizes.panels), cut.bundle_parts, task / cut.row_parts);
    const Range tiles = chunk(cut.tiles, cut.row_parts, task % cut.row_parts);
    alignas(64) f32 out[larger(T.rows.rows * T.rows.panels, T.one_row.panels) * lane_count];
    for (i64 bundle = bundles.begin; bundle < bundles.end; bundle++) {
        const i64 first = bundle * sizes.panels;
        const i64 panels = smaller(sizes.panels, cut.panels - first);
        const W* weights = packed + stripe_head<W> + panel_offset<W>(first, panel_step);
        for (i64 t = tiles.begin; t < tiles.end; t++) {
            const Range rows = chunk(g.m, cut.tiles, t);
            const f32* a_rows = a + rows.begin * g.lda;
            if (g.m == 1) {
                const Ahead<W> ahead = T.one_row_streams ? Ahead<W>{weights, 0} : own_weights(weights);
                tile_product_of<Run, T.one_row>(1, panels, a_rows, g.lda, walk, weights, panel_step, ahead, out);
            } else {
                tile_product_of<Run, T.rows>(rows.size(), panels, a_rows, g.lda, walk, weights, panel_step,
                                             own_weights(weights), out);
            }
            const f32* sums = out;
            for (i64 row = rows.begin; row < rows.end; row++) {
                for (i64 p = 0; p < panels; p++, sums += lane_count) {
                    const i64 column = (first + p) * lane_count;
                    const At at = {column, row * g.ldc + column, smaller(lane_count, g.n - column)};
                    vec<f32> v;
                    [[clang::always_inline]] v = epilogue(scaled(load(sums), packed, column, panel_step), at);
                    store_lanes(c + at.offset, v, at.lanes);
                }
            }
        }
    }
}

// ---- Any element type

// c[i][j] = sum over k of a[i][k] b[k][j], for i < m, j < n; each matrix has its own stride between rows and columns.
// One chain in rising k per element. Integers wrap.
template <class T>
INLINE void matmul_any(i64 m, i64 n, i64 k, const T* a, i64 a_row, i64 a_column, const T* b, i64 b_row, i64 b_column,
                       T* c, i64 c_row) {
    for (i64 i = 0; i < m; i++) {
        for (i64 j = 0; j < n; j += lane_count) {
            const i64 lanes = smaller(lane_count, n - j);
            vec<T> sum = splat(T(0));
            for (i64 l = 0; l < k; l++) {
                vec<T> value = splat(a[i * a_row + l * a_column]);
                sum = fma(value, load_strided(b + l * b_row + j * b_column, b_column, lanes), sum);
            }
            store_lanes(c + i * c_row + j, sum, lanes);
        }
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
