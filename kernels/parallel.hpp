#pragma once
// How work is cut. Kernels know nothing of threads: a caller asks for a number of tasks, or cuts a range, and runs the
// pieces in any order on any thread. No result depends on the cut.
#include "kernels/vector.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// begin <= i < end.
struct Range {
    i64 begin, end;

    constexpr i64 size() const { return end - begin; }
};

constexpr i64 smaller(i64 a, i64 b) { return a < b ? a : b; }

constexpr i64 larger(i64 a, i64 b) { return a > b ? a : b; }

constexpr i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

// Piece i of 0 .. n cut into `parts` (>= 1) pieces, whose sizes differ by at most one.
constexpr Range chunk(i64 n, i64 parts, i64 i) {
    i64 size = n / parts;
    i64 longer = n % parts;
    i64 begin = i * size + smaller(i, longer);
    return {begin, begin + size + (i < longer)};
}

// The same for many pieces: divides once.
struct Chunks {
    i64 size, longer;

    constexpr Chunks(i64 n, i64 parts) : size(n / parts), longer(n % parts) {}
    constexpr Range operator[](i64 i) const {
        const i64 begin = i * size + smaller(i, longer);
        return {begin, begin + size + (i < longer)};
    }
};

// Into how many tasks a step of so many multiplications is cut: large ones for large steps, yet at least eight of a
// small one, since with few tasks the last of them keeps the other threads waiting.
constexpr i64 task_count(i64 work) { return larger(1, smaller(work / 100000, larger(8, work / 1000000))); }

// How a step over images is cut: each image into parts of its channels and bands of its rows. Threads take tasks from
// both ends of their numbers, so that neighbours in number mostly meet the same core, from step to step. Numbered by
// rows, a core keeps the upper or the lower half of all channels, and reads next what it has just written, but for a
// few rows in the middle; numbered by channels, it reads whole images, but only its part of the weights.
struct ImageCut {
    i64 parts, bands;
    bool by_rows;

    struct Piece {
        i64 image, part, band;
    };
    constexpr i64 tasks(i64 images) const { return images * parts * bands; }
    constexpr Piece piece(i64 task) const {
        const i64 of_image = task % (parts * bands);
        return by_rows ? Piece{task / (parts * bands), of_image % parts, of_image / parts}
                       : Piece{task / (parts * bands), of_image / bands, of_image % bands};
    }
};

// At least so many tasks, as far as `parts` and `bands`, the most there can be, allow it.
constexpr ImageCut cut_image(i64 parts, i64 bands, bool by_rows, i64 tasks) {
    const i64 along = larger(1, smaller(by_rows ? bands : parts, tasks));
    const i64 across = larger(1, smaller(by_rows ? parts : bands, ceil_div(tasks, along)));
    return by_rows ? ImageCut{across, along, true} : ImageCut{along, across, false};
}

// The cut of a step that takes each block of 16 channels by itself, with so many multiplications for a row of each. It
// follows the convolutions around it: those of small images have more weights than pixels, and are cut by channels.
constexpr ImageCut cut_blocks(i64 blocks, i64 rows, i64 columns, i64 row_work) {
    return cut_image(blocks, rows, rows * columns >= 128, task_count(blocks * rows * row_work));
}

} // namespace CUVIL_ISA
} // namespace cuvil
