// Resampling, and values at places that data gives.
#include "kernels/resize.hpp"

#include "eval/element_types.hpp"
#include "kernels/sampling.hpp"

#include <algorithm>

namespace cuvil::evaluation {
namespace {

// Neighbouring axes that keep their sizes are one; there are `Rank` axes then, or fewer.
template <int Rank> bool resize_axes(const Array& x, const Resize& how, const Result& y, ResizeAxis (&axes)[Rank]) {
    std::vector<ResizeAxis> all;
    for (size_t i = 0; i < how.axes.size(); i++) {
        const Resampling& r = how.axes[i];
        if (!r.is_resized && !all.empty() && !all.back().is_resized) {
            all.back().in = all.back().out = all.back().in * x.shape[i];
            continue;
        }
        all.push_back(
            {x.shape[i], y.shape[i], r.numerator, r.offset, r.denominator, r.start, r.end, r.scale, r.is_resized});
    }
    if (all.size() > Rank) return false;
    size_t missing = Rank - all.size();
    for (size_t i = 0; i < Rank; i++)
        axes[i] = i < missing ? ResizeAxis{.in = 1, .out = 1, .is_resized = false} : all[i - missing];
    return true;
}

ResizeMode mode_of(const Resize& how) {
    return {.resample = how.mode == "nearest"  ? Resample::Nearest
                        : how.mode == "linear" ? Resample::Linear
                                               : Resample::Cubic,
            .nearest = how.nearest == "floor"       ? Nearest::Floor
                       : how.nearest == "ceil"      ? Nearest::Ceil
                       : how.nearest == "half_down" ? Nearest::HalfDown
                                                    : Nearest::HalfUp,
            .cubic = how.cubic,
            .exclude_outside = how.exclude_outside,
            .extrapolate = how.extrapolate,
            .outside = how.outside};
}

} // namespace

bool resize(const Array& x, const Resize& how, const Result& y) {
    constexpr int rank = 5;
    ResizeAxis axes[rank];
    if (!resize_axes(x, how, y, axes)) return false;
    const ResizeMode mode = mode_of(how);
    const Range rows{0, resize_rows(axes)};
    if (how.mode == "nearest" && !how.extrapolate)
        return with_size(x.element_size, [&]<class T>() {
            resize_any<false, T, rank>(axes, mode, rows, elements<T>(x), elements<T>(y));
        });
    if (how.mode == "nearest")
        return with_type(x.type, NumberTypes(), [&]<class T>() {
            resize_any<false, T, rank>(axes, mode, rows, elements<T>(x), elements<T>(y));
        });
    return with_type(x.type, FloatingTypes(), [&]<class T>() {
        if (how.antialias)
            resize_any<true, T, rank>(axes, mode, rows, elements<T>(x), elements<T>(y));
        else
            resize_any<false, T, rank>(axes, mode, rows, elements<T>(x), elements<T>(y));
    });
}

bool simplest_fractions(const Array& x, const Result& y) {
    i64 n = x.count();
    for (i64 i = 0; i < n; i++) simplest_fraction(elements<f32>(x)[i], elements<i64>(y)[i], elements<i64>(y)[n + i]);
    return true;
}

namespace {

template <int Rank>
bool grid_sample_of(const Array& x, const Array& grid, GridMode mode, Outside outside, bool aligns_corners,
                    const Result& y) {
    Grid<Rank> p{.channels = x.shape[1],
                 .in = {},
                 .pixels = 1,
                 .mode = mode,
                 .outside = outside,
                 .aligns_corners = aligns_corners};
    for (size_t i = 0; i < Rank; i++) {
        p.in[i] = x.shape[2 + i];
        p.pixels *= y.shape[2 + i];
    }
    return with_type(x.type, FloatingTypes(), [&]<class T>() {
        cuvil::grid_sample<T, Rank>(p, {0, x.shape[0] * p.pixels}, elements<T>(x), elements<T>(grid), elements<T>(y));
    });
}

} // namespace

bool grid_sample(const Array& x, const Array& grid, std::string_view mode, std::string_view outside,
                 bool aligns_corners, const Result& y) {
    GridMode m = mode == "nearest" ? GridMode::Nearest : mode == "linear" ? GridMode::Linear : GridMode::Cubic;
    Outside o = outside == "zeros" ? Outside::Zeros : outside == "border" ? Outside::Border : Outside::Reflection;
    switch (x.shape.size()) {
    case 3: return grid_sample_of<1>(x, grid, m, o, aligns_corners, y);
    case 4: return grid_sample_of<2>(x, grid, m, o, aligns_corners, y);
    case 5: return grid_sample_of<3>(x, grid, m, o, aligns_corners, y);
    default: return false;
    }
}

bool sample_regions(const Array& x, const Array& regions, const Array* images, const RegionSampling& how,
                    const Result& y) {
    const Regions p{x.shape[0], x.shape[1], x.shape[2],  x.shape[3],    y.shape[2],     y.shape[3],
                    how.scale,  how.shift,  how.samples, how.takes_max, how.is_enlarged};
    const Range planes{0, y.shape[0] * y.shape[1]};
    i64 wrong = -1;
    bool known = with_type(x.type, FloatingTypes(), [&]<class T>() {
        wrong = images ? roi_align<T>(p, planes, elements<T>(x), elements<T>(regions), elements<i64>(*images),
                                      elements<T>(y))
                       : roi_max_pool<T>(p, planes, elements<T>(x), elements<T>(regions), elements<T>(y));
    });
    return known && wrong < 0;
}

bool deformed_windows(const Array& x, const Array& offset, const Array* mask, const Window& w, int64_t groups,
                      const Result& y) {
    const Deformed p{x.shape[0],      x.shape[1],     x.shape[2],  x.shape[3],   offset.shape[2],
                     offset.shape[3], w.kernel[0],    w.kernel[1], w.strides[0], w.strides[1],
                     w.dilations[0],  w.dilations[1], w.pads[0],   w.pads[1],    groups};
    return with_type(x.type, FloatingTypes(), [&]<class T>() {
        cuvil::deformed_windows<T>(p, {0, p.n * p.c}, elements<T>(x), elements<T>(offset),
                                   mask ? elements<T>(*mask) : nullptr, elements<T>(y));
    });
}

} // namespace cuvil::evaluation
