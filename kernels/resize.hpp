#pragma once
// Resampling along any axes. Element o of an axis of the result lies at a coordinate of the axis of x,
//     c(o) = start * (in - 1) + (end - start) * (o * numerator + offset) / denominator,
// in f64, where the fraction is exact if it is an integer. The value there is the nearest element, or a weighted sum of
// those around it: axis by axis, the last one innermost, taps in rising order. Taps outside of x are the element at the
// edge. `resize_any` takes plain tensors, `resize_blocked_task` blocked images, of which a pixel's 16 channels are
// computed side by side.
#include "kernels/layout.hpp"
#include "kernels/math.hpp"
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

enum class Resample { Nearest, Linear, Cubic };
// What is the nearest of two elements; halves go down or up where it matters.
enum class Nearest { Floor, Ceil, HalfDown, HalfUp };

struct ResizeAxis {
    i64 in, out;
    f64 numerator = 1, offset = 0, denominator = 1;
    f64 start = 0, end = 1;
    f64 scale = 1;   // how much longer the result is meant to be; antialiasing stretches the filter by 1 / scale
    bool is_resized; // if not, in and out are equal and nothing else matters
};

struct ResizeMode {
    Resample resample;
    Nearest nearest;
    f64 cubic;            // the coefficient of the cubic filter
    bool exclude_outside; // taps outside of x count nothing; the others are scaled to a sum of 1
    bool extrapolate;     // at coordinates outside of 0 .. in - 1 the result is `outside`
    f64 outside;
};

// The most taps of a filter that is not stretched.
inline constexpr i64 fixed_taps = 4;

// The taps for one element of the result. `Stretched`: any number of them, and weights are computed when asked for.
template <bool Stretched> struct Taps {
    i64 first, count, size; // `size` of the axis
    bool is_outside;
    f64 weights[Stretched ? 1 : fixed_taps]; // stretched: the factor that brings them to a sum of 1
    f64 center, shrink, cubic;               // stretched only
    bool is_cubic, exclude_outside;

    INLINE i64 index(i64 t) const { return larger(0, smaller(first + t, size - 1)); }
    INLINE f64 weight(i64 t) const;
};

template <class T> INLINE T cubic_filter(T x, T a) {
    x = abs(x);
    if (x <= 1) {
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : T(0);
}

template <bool Stretched> INLINE f64 Taps<Stretched>::weight(i64 t) const {
    if constexpr (Stretched) {
        const i64 at = first + t;
        if (exclude_outside && (at < 0 || at >= size)) {
            return 0;
        }
        const f64 x = (static_cast<f64>(at) - center) * shrink;
        const f64 w = is_cubic ? cubic_filter(x, cubic) : maximum(f64(0), 1 - abs(x));
        return w * weights[0];
    } else {
        return weights[t];
    }
}

INLINE f64 nearest_of(f64 c, Nearest mode) {
    switch (mode) {
    case Nearest::Floor: return floor(c);
    case Nearest::Ceil: return ceil(c);
    case Nearest::HalfDown: return ceil(c - 0.5);
    default: return floor(c + 0.5);
    }
}

// `weights` from the coordinate's distance to the first tap in the middle.
INLINE void weigh_taps(Taps<false>& taps, f64 fraction, const ResizeMode& mode) {
    if (mode.resample == Resample::Linear) {
        taps.weights[0] = 1 - fraction;
        taps.weights[1] = fraction;
    } else {
        for (i64 t = 0; t < 4; t++) {
            taps.weights[t] = cubic_filter(static_cast<f64>(t - 1) - fraction, mode.cubic);
        }
    }
    if (mode.exclude_outside) {
        f64 sum = 0;
        for (i64 t = 0; t < taps.count; t++) {
            if (taps.first + t < 0 || taps.first + t >= taps.size) {
                taps.weights[t] = 0;
            }
            sum = sum + taps.weights[t];
        }
        for (i64 t = 0; t < taps.count; t++) {
            taps.weights[t] = taps.weights[t] / sum;
        }
    }
}

template <bool Stretched> INLINE Taps<Stretched> taps_of(const ResizeAxis& axis, const ResizeMode& mode, i64 o) {
    Taps<Stretched> taps{};
    taps.size = axis.in;
    taps.count = 1;
    taps.weights[0] = 1;
    if (!axis.is_resized) {
        taps.first = o;
        taps.shrink = 0;
        return taps;
    }
    const f64 fraction = (static_cast<f64>(o) * axis.numerator + axis.offset) / axis.denominator;
    const f64 last = static_cast<f64>(axis.in - 1);
    // Far outside all elements are those of the edge.
    f64 c = axis.start * last + (axis.end - axis.start) * fraction;
    taps.is_outside = mode.extrapolate && (c < 0 || c > last);
    c = minimum(maximum(c, f64(-0x1p40)), f64(0x1p40));
    if (mode.resample == Resample::Nearest) {
        taps.first = static_cast<i64>(nearest_of(c, mode.nearest));
        return taps;
    }
    const bool is_cubic = mode.resample == Resample::Cubic;
    if constexpr (Stretched) {
        taps.shrink = minimum(axis.scale, f64(1));
        taps.center = c;
        taps.is_cubic = is_cubic;
        taps.cubic = mode.cubic;
        taps.exclude_outside = mode.exclude_outside;
        const f64 reach = (is_cubic ? 2 : 1) / taps.shrink;
        taps.first = static_cast<i64>(floor(c - reach)) + 1;
        taps.count = static_cast<i64>(ceil(c + reach)) - taps.first;
        f64 sum = 0;
        for (i64 t = 0; t < taps.count; t++) {
            sum = sum + taps.weight(t);
        }
        taps.weights[0] = 1 / sum;
    } else {
        const f64 below = floor(c);
        taps.first = static_cast<i64>(below) - (is_cubic ? 1 : 0);
        taps.count = is_cubic ? 4 : 2;
        weigh_taps(taps, c - below, mode);
    }
    return taps;
}

// The value under the taps of axes D, D + 1, ...; f(offset) gives the elements, one or 16 at once.
template <int D, int Rank, bool Stretched, class F>
INLINE auto value_under(const Taps<Stretched> (&taps)[Rank], const i64 (&strides)[Rank], i64 offset, F f) {
    if constexpr (D == Rank) {
        return f(offset);
    } else {
        using V = decltype(f(offset));
        using T = element_of<V>;
        const Taps<Stretched>& axis = taps[D];
        V sum = value_under<D + 1>(taps, strides, offset + axis.index(0) * strides[D], f);
        if constexpr (is_float<T>) {
            if (axis.count > 1) {
                sum = sum * V(static_cast<T>(axis.weight(0)));
            }
            for (i64 t = 1; t < axis.count; t++) {
                const V next = value_under<D + 1>(taps, strides, offset + axis.index(t) * strides[D], f);
                sum = fma(V(static_cast<T>(axis.weight(t))), next, sum);
            }
        }
        return sum;
    }
}

// ---- Any element type; plain tensors

// Rows of the result: all axes but the last.
template <int Rank> constexpr i64 resize_rows(const ResizeAxis (&axes)[Rank]) {
    i64 rows = 1;
    for (int d = 0; d < Rank - 1; d++) {
        rows *= axes[d].out;
    }
    return rows;
}

// Computes the given rows of y. Other elements than floats have the mode Nearest. From an empty x come zeros.
template <bool Stretched, class T, int Rank>
INLINE void resize_any(const ResizeAxis (&axes)[Rank], const ResizeMode& mode, Range rows, const T* x, T* y) {
    constexpr int last = Rank - 1;
    i64 strides[Rank];
    i64 elements = 1;
    for (int d = last; d >= 0; d--) {
        strides[d] = elements;
        elements *= axes[d].in;
    }
    const i64 width = axes[last].out;
    // The taps of a piece of the row serve all rows, which are walked piece by piece.
    constexpr i64 piece = 64;
    Taps<Stretched> columns[piece];
    for (i64 begin = 0; begin < width; begin += piece) {
        const i64 size = smaller(piece, width - begin);
        for (i64 i = 0; i < size && axes[last].is_resized; i++) {
            columns[i] = taps_of<Stretched>(axes[last], mode, begin + i);
        }
        for (i64 row = rows.begin; row < rows.end; row++) {
            Taps<Stretched> taps[Rank] = {};
            bool is_outside = false;
            i64 left = row;
            for (int d = last - 1; d >= 0; d--) {
                taps[d] = taps_of<Stretched>(axes[d], mode, left % axes[d].out);
                is_outside |= taps[d].is_outside;
                left /= axes[d].out;
            }
            T* out = y + row * width + begin;
            if (elements == 0) {
                for (i64 i = 0; i < size; i++) {
                    out[i] = T(0);
                }
            } else if (!axes[last].is_resized) {
                taps[last].count = 1;
                taps[last].size = 1;
                for (i64 i = 0; i < size; i += lane_count) {
                    const i64 lanes = smaller(lane_count, size - i);
                    const lanes_of<T> v = value_under<0>(taps, strides, begin + i,
                                                         [&](i64 offset) { return load_lanes(x + offset, lanes); });
                    store_lanes(out + i, is_outside ? splat(static_cast<T>(mode.outside)) : v, lanes);
                }
            } else {
                for (i64 i = 0; i < size; i++) {
                    taps[last] = columns[i];
                    out[i] = is_outside || columns[i].is_outside
                                 ? static_cast<T>(mode.outside)
                                 : value_under<0>(taps, strides, 0, [&](i64 offset) { return x[offset]; });
                }
            }
        }
    }
}

// ---- Blocked images

// How the work is cut; `taps` is about what a pixel takes.
constexpr ImageCut cut_resize(const Blocked& yl, i64 taps) {
    return cut_blocks(yl.blocks(), yl.h, yl.w, yl.w * taps * lane_count);
}

constexpr i64 resize_tasks(i64 n, const Blocked& yl, i64 taps) { return cut_resize(yl, taps).tasks(n); }

// Computes a band of rows of one block of channels of image n, with their part of the border. Rows and Columns are the
// exact numbers of taps along each axis, 0 where the filter is stretched.
template <i64 Rows, i64 Columns>
INLINE void resize_blocked_rows(const ResizeAxis& vertical, const ResizeAxis& horizontal, const ResizeMode& mode, i64 n,
                                i64 block, Range band, const f32* x, const Blocked& xl, f32* y, const Blocked& yl) {
    constexpr bool stretched = Rows == 0 || Columns == 0;
    const i64 channels = yl.channels_in(block);
    constexpr i64 piece = 64;
    Taps<stretched> columns[piece];
    const i64 strides[2] = {xl.row(), lane_count};
    const f32* image = x + xl.offset(n, block, 0, 0);
    for (i64 begin = 0; begin < yl.w; begin += piece) {
        const i64 size = smaller(piece, yl.w - begin);
        for (i64 i = 0; i < size; i++) {
            columns[i] = taps_of<stretched>(horizontal, mode, begin + i);
        }
        for (i64 oy = band.begin; oy < band.end; oy++) {
            f32* out = y + yl.offset(n, block, oy, begin);
            Taps<stretched> window[2];
            window[0] = taps_of<stretched>(vertical, mode, oy);
            for (i64 i = 0; i < size; i++, out += lane_count) {
                window[1] = columns[i];
                if constexpr (!stretched) {
                    window[0].count = Rows;
                    window[1].count = Columns;
                }
                vec<f32> v = splat(0.0f);
                if (xl.h > 0 && xl.w > 0) {
                    v = value_under<0>(window, strides, 0, [&](i64 offset) { return load(image + offset); });
                }
                if (window[0].is_outside || window[1].is_outside) {
                    v = splat(static_cast<f32>(mode.outside));
                }
                store(out, with_real_channels(channels, v));
            }
        }
    }
    write_halo(yl, band, y + n * yl.image() + block * yl.plane());
}

// Computes the part of y that belongs to the task.
template <i64 Rows, i64 Columns>
INLINE void resize_blocked_task(const ResizeAxis& vertical, const ResizeAxis& horizontal, const ResizeMode& mode,
                                i64 taps, i64 task, const f32* x, const Blocked& xl, f32* y, const Blocked& yl) {
    const ImageCut cut = cut_resize(yl, taps);
    const ImageCut::Piece piece = cut.piece(task);
    const Range blocks = chunk(yl.blocks(), cut.parts, piece.part);
    for (i64 block = blocks.begin; block < blocks.end; block++) {
        resize_blocked_rows<Rows, Columns>(vertical, horizontal, mode, piece.image, block,
                                           chunk(yl.h, cut.bands, piece.band), x, xl, y, yl);
    }
}

// A scale as a fraction: the first convergent of its continued fraction that rounds to it, and 0 / 1 for what is not
// between 2^-24 and 2^24.
INLINE void simplest_fraction(f32 scale, i64& above, i64& below) {
    constexpr i64 most = i64(1) << 24;
    above = 0;
    below = 1;
    if (!(scale >= 1 / f32(most) && scale <= f32(most))) {
        return;
    }
    i64 above_before = 1, below_before = 0;
    f64 rest = scale;
    while (true) {
        const i64 whole = static_cast<i64>(rest);
        const i64 next_above = whole * above_before + above, next_below = whole * below_before + below;
        above = above_before;
        below = below_before;
        above_before = next_above;
        below_before = next_below;
        const bool is_hit = static_cast<f32>(f64(next_above) / f64(next_below)) == scale;
        if (is_hit || rest == f64(whole) || next_above > most || next_below > most) {
            above = next_above;
            below = next_below;
            return;
        }
        rest = 1 / (rest - f64(whole));
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
