#pragma once
// Where the elements of an image tensor lie. Besides the plain row-major [N][C][H][W] there are two forms of f32 tensor
// with a border of zeros (the halo) around each plane, wide enough that a convolution never asks where the image ends:
//   Blocked  [N][ceil(C / 16)][top + h + bottom][left + w + right][16]
//   Padded   [N][C][top + h + bottom][left + w + right]
// and one of few channels for windows that move by two pixels, whose 2 x 2 phases count as channels:
//   Phased   Blocked, with channel 4 c + 2 (y % 2) + x % 2 and pixel y / 2, x / 2 for channel c and pixel y, x
// The halo and the channels that fill up the last block hold 0. Whoever writes such a tensor writes these zeros too, so
// the memory a tensor is given may hold anything before.
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// Strides and offsets are in elements. y and x count from the first row and column of the image, so the halo has
// negative ones.
struct Blocked {
    i64 channels, h, w, top, left, bottom, right;

    constexpr i64 blocks() const { return ceil_div(channels, lane_count); }
    constexpr i64 row() const { return (left + w + right) * lane_count; }
    constexpr i64 plane() const { return (top + h + bottom) * row(); }
    constexpr i64 image() const { return blocks() * plane(); }
    constexpr i64 offset(i64 n, i64 block, i64 y, i64 x) const {
        return n * image() + block * plane() + (top + y) * row() + (left + x) * lane_count;
    }
    // How many channels of a block are real: 16, fewer in the last one.
    constexpr i64 channels_in(i64 block) const { return smaller(lane_count, channels - block * lane_count); }
};

struct Padded {
    i64 channels, h, w, top, left, bottom, right;

    constexpr i64 row() const { return left + w + right; }
    constexpr i64 plane() const { return (top + h + bottom) * row(); }
    constexpr i64 image() const { return channels * plane(); }
    constexpr i64 offset(i64 n, i64 channel, i64 y, i64 x) const {
        return n * image() + channel * plane() + (top + y) * row() + left + x;
    }
};

// The image that a phased one is, of c channels and h x w pixels.
constexpr Blocked phased(i64 c, i64 h, i64 w, i64 top, i64 left, i64 bottom, i64 right) {
    return {4 * c, ceil_div(h, 2), ceil_div(w, 2), top, left, bottom, right};
}

// A pixel of a block of which only some channels are real: the others hold 0.
INLINE vec<f32> with_real_channels(i64 channels, vec<f32> v) {
    return channels < lane_count ? select_lanes(channels, v, splat(0.0f)) : v;
}

INLINE void fill_zero(f32* p, i64 n) {
    i64 i = 0;
    for (; i + lane_count <= n; i += lane_count) {
        store(p + i, splat(0.0f));
    }
    for (; i < n; i++) {
        p[i] = 0;
    }
}

// Moves n elements, a multiple of 16, to an address before theirs.
INLINE void move_down(f32* to, const f32* from, i64 n) {
    for (i64 i = 0; i < n; i += lane_count) {
        store(to + i, load(from + i));
    }
}

// Writes the halo beside the given rows of one plane, and that above row 0 and below row h - 1 if those are among them
// or the image has no rows. `plane` points to the first element of the plane.
template <class Layout> INLINE void write_halo(const Layout& l, Range rows, f32* plane) {
    i64 pixel = l.row() / larger(1, l.left + l.w + l.right);
    if (rows.begin == 0) {
        fill_zero(plane, l.top * l.row());
    }
    for (i64 y = rows.begin; y < rows.end; y++) {
        f32* row = plane + (l.top + y) * l.row();
        fill_zero(row, l.left * pixel);
        fill_zero(row + (l.left + l.w) * pixel, l.right * pixel);
    }
    if (rows.end == l.h) {
        fill_zero(plane + (l.top + l.h) * l.row(), l.bottom * l.row());
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
