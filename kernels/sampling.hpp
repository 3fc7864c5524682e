#pragma once
// Values of images at places that data gives: grid sampling, regions of interest, deformed windows. Plain tensors of
// f32 or f64; the images lie behind one another as [n][c][in...].
#include "kernels/math.hpp"
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// The whole number below, for any v: far away and NaN are no places of an image, so these become the same one.
template <class T> INLINE i64 floor_index(T v) {
    constexpr T far = T(1 << 30);
    return v > -far && v < far ? static_cast<i64>(floor(v)) : -i64(1 << 30);
}

// ---- Grids

enum class GridMode { Nearest, Linear, Cubic };
// What lies outside of the image: zeros, the nearest edge, or the image mirrored at its edges.
enum class Outside { Zeros, Border, Reflection };

template <int Rank> struct Grid {
    i64 channels;
    i64 in[Rank], pixels; // pixels of one image of the result
    GridMode mode;
    Outside outside;
    bool aligns_corners; // -1 and 1 are the centers of the first and the last element, not their outer edges
};

// The taps along one axis; index -1 stands for a zero.
template <class T> struct GridTaps {
    i64 count;
    i64 index[4];
    T weight[4];
};

// An index of 0 .. size for any i; size > 0.
INLINE i64 inner_index(i64 i, i64 size, Outside outside, bool aligns_corners) {
    if (i >= 0 && i < size) {
        return i;
    }
    if (outside == Outside::Zeros) {
        return -1;
    }
    if (outside == Outside::Border) {
        return larger(0, smaller(i, size - 1));
    }
    // Mirrored at the centers of the outer elements, or at their outer edges.
    const i64 period = aligns_corners ? larger(1, 2 * (size - 1)) : 2 * size;
    const i64 at = ((i % period) + period) % period;
    return at < size ? at : aligns_corners ? period - at : period - 1 - at;
}

template <class T> INLINE T cubic_weight(T d) {
    constexpr T a = T(-0.75);
    d = abs(d);
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

template <class T> INLINE GridTaps<T> grid_taps(T position, i64 size, GridMode mode, Outside outside, bool aligns) {
    const T s = static_cast<T>(size);
    const T at = aligns ? (position + 1) / 2 * (s - 1) : ((position + 1) * s - 1) / 2;
    GridTaps<T> taps{};
    if (mode == GridMode::Nearest) {
        taps.count = 1;
        taps.index[0] = inner_index(floor_index(round(at)), size, outside, aligns);
        taps.weight[0] = 1;
        return taps;
    }
    const i64 below = floor_index(at);
    const T fraction = at - floor(at);
    taps.count = mode == GridMode::Linear ? 2 : 4;
    for (i64 t = 0; t < taps.count; t++) {
        const i64 away = mode == GridMode::Linear ? t : t - 1;
        taps.index[t] = inner_index(below + away, size, outside, aligns);
        taps.weight[t] = mode == GridMode::Cubic ? cubic_weight(fraction - static_cast<T>(away))
                         : t == 0                ? 1 - fraction
                                                 : fraction;
    }
    return taps;
}

// The sum over the taps of axes D, D + 1, ..., the last one innermost.
template <int D, class T, int Rank>
INLINE T grid_value(const GridTaps<T> (&taps)[Rank], const Grid<Rank>& p, const T* x) {
    T sum = 0;
    for (i64 t = 0; t < taps[D].count; t++) {
        if (taps[D].index[t] < 0) {
            continue;
        }
        T v;
        if constexpr (D == Rank - 1) {
            v = x[taps[D].index[t]];
        } else {
            i64 stride = 1;
            for (int d = D + 1; d < Rank; d++) {
                stride *= p.in[d];
            }
            v = grid_value<D + 1>(taps, p, x + taps[D].index[t] * stride);
        }
        sum = p.mode == GridMode::Nearest ? v : fma(taps[D].weight[t], v, sum);
    }
    return sum;
}

// y[n][c][pixel] for the range of (n, pixel). grid [n][pixel][Rank], the last axis of the image first.
template <class T, int Rank>
INLINE void grid_sample(const Grid<Rank>& p, Range pixels, const T* x, const T* grid, T* y) {
    i64 size = 1;
    for (int d = 0; d < Rank; d++) {
        size *= p.in[d];
    }
    for (i64 pixel = pixels.begin; pixel < pixels.end; pixel++) {
        const i64 n = pixel / p.pixels;
        GridTaps<T> taps[Rank];
        for (int d = 0; d < Rank; d++) {
            const T position = grid[pixel * Rank + Rank - 1 - d];
            taps[d] = grid_taps(position, p.in[d], p.mode, p.outside, p.aligns_corners);
        }
        for (i64 c = 0; c < p.channels; c++) {
            const i64 plane = n * p.channels + c;
            y[plane * p.pixels + pixel % p.pixels] = size == 0 ? T(0) : grid_value<0>(taps, p, x + plane * size);
        }
    }
}

// ---- Regions of interest

struct Regions {
    i64 images, channels, h, w, oh, ow;
    f64 scale;
    f64 shift;        // of the coordinates
    i64 samples;      // along each axis of a bin; 0: as many as the bin has elements
    bool takes_max;   // else the mean
    bool is_enlarged; // to one element at least
};

// The value between four elements, each weighted by how near it is, or with `takes_max` the largest of the four
// weighted elements; 0 beyond one element outside.
template <class T> INLINE T value_between(const T* x, i64 h, i64 w, T y_at, T x_at, bool takes_max) {
    if (!(y_at >= -1 && y_at <= static_cast<T>(h) && x_at >= -1 && x_at <= static_cast<T>(w)) || h == 0 || w == 0) {
        return 0;
    }
    y_at = maximum(y_at, T(0));
    x_at = maximum(x_at, T(0));
    const i64 top = smaller(static_cast<i64>(y_at), h - 1), left = smaller(static_cast<i64>(x_at), w - 1);
    const i64 bottom = smaller(top + 1, h - 1), right = smaller(left + 1, w - 1);
    const T down = top == h - 1 ? T(0) : y_at - static_cast<T>(top);
    const T along = left == w - 1 ? T(0) : x_at - static_cast<T>(left);
    const T weighted[4] = {(1 - down) * (1 - along) * x[top * w + left], (1 - down) * along * x[top * w + right],
                           down * (1 - along) * x[bottom * w + left], down * along * x[bottom * w + right]};
    return takes_max ? maximum(maximum(weighted[0], weighted[1]), maximum(weighted[2], weighted[3]))
                     : weighted[0] + weighted[1] + weighted[2] + weighted[3];
}

// y[region][c][oh][ow] for the range of (region, c); rois [region][4] are x1, y1, x2, y2. An image that does not exist
// counts as zeros; the first such region is returned, else -1.
template <class T>
INLINE i64 roi_align(const Regions& p, Range planes, const T* x, const T* rois, const i64* images, T* y) {
    i64 wrong = -1;
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const i64 region = plane / p.channels;
        const bool exists = images[region] >= 0 && images[region] < p.images;
        if (!exists && wrong < 0) {
            wrong = region;
        }
        const T* roi = rois + region * 4;
        const T* image = x + (exists ? images[region] * p.channels + plane % p.channels : 0) * p.h * p.w;
        const T scale = static_cast<T>(p.scale), shift = static_cast<T>(p.shift);
        const T x1 = roi[0] * scale - shift, y1 = roi[1] * scale - shift;
        T width = roi[2] * scale - shift - x1, height = roi[3] * scale - shift - y1;
        if (p.is_enlarged) {
            width = maximum(width, T(1));
            height = maximum(height, T(1));
        }
        const T bin_h = height / static_cast<T>(p.oh), bin_w = width / static_cast<T>(p.ow);
        const i64 rows = p.samples > 0 ? p.samples : larger(0, -floor_index(-bin_h));
        const i64 columns = p.samples > 0 ? p.samples : larger(0, -floor_index(-bin_w));
        for (i64 o = 0; o < p.oh * p.ow; o++) {
            T result = 0;
            for (i64 i = 0; exists && i < rows * columns; i++) {
                const T y_at = y1 + static_cast<T>(o / p.ow) * bin_h +
                               (static_cast<T>(i / columns) + T(0.5)) * bin_h / static_cast<T>(rows);
                const T x_at = x1 + static_cast<T>(o % p.ow) * bin_w +
                               (static_cast<T>(i % columns) + T(0.5)) * bin_w / static_cast<T>(columns);
                const T v = value_between(image, p.h, p.w, y_at, x_at, p.takes_max);
                result = !p.takes_max ? result + v : i == 0 ? v : maximum(result, v);
            }
            y[plane * p.oh * p.ow + o] = p.takes_max ? result : result / static_cast<T>(larger(1, rows * columns));
        }
    }
    return wrong;
}

// The largest element in each bin of a region whose corners are rounded to elements, 0 for an empty bin; rois
// [region][5] are the image, x1, y1, x2, y2. Returns the first region whose image does not exist, else -1.
template <class T> INLINE i64 roi_max_pool(const Regions& p, Range planes, const T* x, const T* rois, T* y) {
    i64 wrong = -1;
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const i64 region = plane / p.channels;
        const T* roi = rois + region * 5;
        const i64 n = floor_index(roi[0]);
        const bool exists = n >= 0 && n < p.images;
        if (!exists && wrong < 0) {
            wrong = region;
        }
        const T* image = x + (exists ? n * p.channels + plane % p.channels : 0) * p.h * p.w;
        i64 corner[4];
        for (i64 i = 0; i < 4; i++) {
            // Halves go away from zero.
            const T at = roi[1 + i] * static_cast<T>(p.scale);
            corner[i] = at < 0 ? -floor_index(T(0.5) - at) : floor_index(at + T(0.5));
        }
        const T bin_w = static_cast<T>(larger(1, corner[2] - corner[0] + 1)) / static_cast<T>(p.ow);
        const T bin_h = static_cast<T>(larger(1, corner[3] - corner[1] + 1)) / static_cast<T>(p.oh);
        const auto bin = [](i64 start, i64 i, T size, i64 end) {
            const i64 first = start + floor_index(static_cast<T>(i) * size);
            const i64 last = start - floor_index(-static_cast<T>(i + 1) * size);
            return Range{smaller(larger(first, 0), end), smaller(larger(last, 0), end)};
        };
        for (i64 o = 0; o < p.oh * p.ow; o++) {
            const Range rows = bin(corner[1], o / p.ow, bin_h, p.h);
            const Range columns = bin(corner[0], o % p.ow, bin_w, p.w);
            const bool is_empty = !exists || rows.size() <= 0 || columns.size() <= 0;
            T result = is_empty ? T(0) : lowest_of<T>;
            for (i64 row = rows.begin; !is_empty && row < rows.end; row++) {
                for (i64 column = columns.begin; column < columns.end; column++) {
                    result = maximum(result, image[row * p.w + column]);
                }
            }
            y[plane * p.oh * p.ow + o] = result;
        }
    }
    return wrong;
}

// ---- Deformed windows

struct Deformed {
    i64 n, c, h, w, oh, ow, r, s, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left, groups;
};

// y[n][c][r][s][oh][ow] = what each tap of a window meets, for the range of (n, c): the taps are moved by
// offset [n][groups][r][s][2][oh][ow] (down, right) and scaled by mask [n][groups][r][s][oh][ow], if it is not nullptr.
// Between elements the value is interpolated, outside of the image it is 0.
template <class T>
INLINE void deformed_windows(const Deformed& p, Range planes, const T* x, const T* offset, const T* mask, T* y) {
    const i64 pixels = p.oh * p.ow;
    const i64 taps = p.r * p.s;
    for (i64 plane = planes.begin; plane < planes.end; plane++) {
        const T* image = x + plane * p.h * p.w;
        const i64 group = plane / p.c * p.groups + plane % p.c / (p.c / p.groups);
        for (i64 tap = 0; tap < taps; tap++) {
            const T* moved = offset + (group * taps + tap) * 2 * pixels;
            for (i64 o = 0; o < pixels; o++) {
                const i64 row = o / p.ow * p.stride_h - p.pad_top + tap / p.s * p.dilation_h;
                const i64 column = o % p.ow * p.stride_w - p.pad_left + tap % p.s * p.dilation_w;
                const T y_at = static_cast<T>(row) + moved[o];
                const T x_at = static_cast<T>(column) + moved[pixels + o];
                const i64 top = floor_index(y_at), left = floor_index(x_at);
                const T down = y_at - floor(y_at), along = x_at - floor(x_at);
                T value = 0;
                for (i64 i = 0; i < 4; i++) {
                    const i64 yy = top + i / 2, xx = left + i % 2;
                    if (yy >= 0 && yy < p.h && xx >= 0 && xx < p.w) {
                        const T weight = (i / 2 == 0 ? 1 - down : down) * (i % 2 == 0 ? 1 - along : along);
                        value = fma(weight, image[yy * p.w + xx], value);
                    }
                }
                if (mask != nullptr) {
                    value = value * mask[(group * taps + tap) * pixels + o];
                }
                y[(plane * taps + tap) * pixels + o] = value;
            }
        }
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
