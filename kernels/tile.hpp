#pragma once
// Which tiles a matrix product is computed in: the sizes that the registers of a level hold, and an estimate of the
// time they take, by which one is chosen for each product. Tiles never decide a result, only its speed: see gemm.hpp.
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// What the estimate knows of a level.
struct Core {
    i64 registers; // of the vector unit
    i64 parts;     // registers that 16 lanes take
    i64 spare;     // registers beside sums and weights: the value of a row and, without fma, its product
    i64 steps;     // instructions that add a product to a sum: 1 with fma, else 2
};
#if CUVIL_IS_EVAL
inline constexpr Core core = {16, 4, 2, 2};
#elif defined(__AVX512F__)
inline constexpr Core core = {32, 1, 1, 1};
#elif defined(__AVX2__)
inline constexpr Core core = {16, 2, 1, 1};
#else
inline constexpr Core core = {16, 4, 2, 2};
#endif

// A part of the lanes, as wide as a register.
inline constexpr i64 part_lanes = lane_count / core.parts;
using PartLanes = f32 __attribute__((ext_vector_type(part_lanes)));
struct [[gnu::packed, gnu::may_alias]] Part {
    PartLanes lanes;
};
INLINE PartLanes load_part(const f32* p, i64 part) {
    return reinterpret_cast<const Part*>(p + part * part_lanes)->lanes;
}
INLINE void store_part(f32* p, i64 part, PartLanes v) { reinterpret_cast<Part*>(p + part * part_lanes)->lanes = v; }

// Limits of a tile: rows, for their addresses take registers too, and panels of 16 columns.
inline constexpr i64 most_rows = 14, most_panels = 8;

// A size that is known at run time only.
inline constexpr i64 unknown = -1;

// The tallest tile of so many panels whose sums and weights stay in registers; 0 if there is none. A single row uses
// each weight once, straight from memory; 8 sums are all that it needs to keep a core busy.
constexpr i64 rows_that_fit(i64 panels) {
    const i64 sums = panels * core.parts;
    const i64 rows = smaller(most_rows, (core.registers - core.spare - sums) / sums);
    return rows > 1 ? rows : sums <= 8 ? 1 : 0;
}

// Half cycles of one step of k, on a core that does two vector instructions and two loads in a cycle, waits 4 cycles
// for a sum, and gets 32 bytes of weights in a cycle from its second-level cache.
constexpr i64 time_of_step(i64 rows, i64 panels) {
    const i64 arithmetic = rows * panels * core.parts * core.steps;
    const i64 loads = panels * core.parts + rows;
    const i64 wait = 2 * 4 * core.steps;
    const i64 weights = 2 * panels * 64 / 32;
    return larger(larger(arithmetic, loads), larger(wait, weights));
}

// The same for a whole tile, with its start and its way through the epilogue.
constexpr i64 time_of_tile(i64 rows, i64 panels, i64 k) {
    return k * time_of_step(rows, panels) + 40 + 4 * rows * panels * core.parts;
}

struct Tile {
    i64 rows, panels;
};

// The tiles of one product: full ones of rows x panels, and what occurs at its ends.
struct Tiles {
    i64 rows, panels;
    u32 row_counts, panel_counts; // bit i: tiles of i rows, of i panels occur

    // All tiles that occur, one after the other; behind the last one, one of 0 rows.
    constexpr Tile first() const { return {below(row_counts, 32), below(panel_counts, 32)}; }
    constexpr Tile next(Tile tile) const {
        const i64 fewer = below(panel_counts, tile.panels);
        return fewer > 0 ? Tile{tile.rows, fewer} : Tile{below(row_counts, tile.rows), below(panel_counts, 32)};
    }

private:
    // The largest count under `limit`; 0 if there is none.
    static constexpr i64 below(u32 counts, i64 limit) {
        i64 count = limit - 1;
        while (count > 0 && (counts >> count & 1) == 0) {
            count--;
        }
        return larger(count, 0);
    }
};

// Half cycles of a product of m rows and some panels, cut into tiles of rows x panels: rows into nearly equal groups
// (see chunk), panels into full bundles and a rest.
constexpr i64 time_of_product(i64 m, i64 all_panels, i64 k, i64 rows, i64 panels) {
    const i64 groups = ceil_div(m, rows);
    const i64 longer = m % groups;
    const auto bundle = [=](i64 count) {
        return (groups - longer) * time_of_tile(m / groups, count, k) + longer * time_of_tile(m / groups + 1, count, k);
    };
    const i64 rest = all_panels % panels;
    return all_panels / panels * bundle(panels) + (rest > 0 ? bundle(rest) : 0);
}

// All sizes up to one, as a set of Tiles.
constexpr u32 all_up_to(i64 count) { return (u32(2) << count) - 2; }
// The sizes of `total` things, if that is known, in as few parts of at most `largest` as there can be: all as large as
// each other, or one larger.
constexpr u32 sizes_in_parts(i64 total, i64 largest) {
    const i64 parts = larger(1, ceil_div(total, largest));
    return total == unknown ? all_up_to(largest)
                            : (u32(1) << total / parts | u32(1) << ceil_div(total, parts)) & ~u32(1);
}
// The same, each `size` and the last one what is left over.
constexpr u32 sizes_with_rest(i64 total, i64 size) {
    return total == unknown ? all_up_to(size) : (u32(1) << size | u32(1) << total % size) & ~u32(1);
}

// The tiles by which c[m][n] = a[m][k] b[k][n] takes the shortest time by the estimate; each size may be `unknown`.
// Where `stripe` panels lie together, a tile takes whole stripes or an equal part of one. All weights count as f32.
constexpr Tiles choose_tiles(i64 m, i64 n, i64 k, i64 stripe = 1) {
    // A size that is not known counts as one of many tiles.
    const i64 usual_m = m == unknown ? 1024 : larger(1, m);
    const i64 all_panels = ceil_div(n == unknown ? 1024 : larger(1, n), lane_count);
    i64 best_time = 0, best_rows = 0, best_panels = 0;
    for (i64 panels = 1; panels <= smaller(most_panels, all_panels); panels++) {
        const i64 rows = rows_that_fit(panels);
        if (rows == 0) {
            break;
        }
        if (panels % stripe != 0 && stripe % panels != 0) {
            continue;
        }
        const i64 time = time_of_product(usual_m, all_panels, k == unknown ? 256 : k, rows, panels);
        if (best_rows == 0 || time < best_time) {
            best_time = time, best_rows = rows, best_panels = panels;
        }
    }
    return {best_rows, best_panels, sizes_in_parts(m == unknown ? m : usual_m, best_rows),
            sizes_with_rest(n == unknown ? n : all_panels, best_panels)};
}

} // namespace CUVIL_ISA
} // namespace cuvil
