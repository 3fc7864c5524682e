// Ops on images.
#include "eval/compute.hpp"

#include <algorithm>

namespace cuvil::evaluation {
namespace {

using Ints = std::vector<int64_t>;

Window window_of(const Computation& c) {
    Window window;
    const AttributeDef* kernel = c.node.def().find_attribute("kernel");
    if (kernel && kernel->kind == AttributeKind::Ints) window.kernel = c.get<Ints>("kernel");
    window.strides = c.get<Ints>("strides");
    window.dilations = c.get<Ints>("dilations");
    window.pads = c.get<Ints>("pads");
    return window;
}

bool conv(const Computation& c) {
    return conv(c.x[0], c.x[1], c.optional(2), window_of(c), c.get<int64_t>("groups"), c.y[0]);
}

bool conv_transpose(const Computation& c) {
    return conv_transpose(c.x[0], c.x[1], c.optional(2), window_of(c), c.get<int64_t>("groups"), c.y[0]);
}

bool col2im(const Computation& c) {
    auto kernel = c.sizes("kernel");
    if (!kernel) return false;
    Window w = window_of(c);
    w.kernel = *kernel;
    Ints counts;
    for (size_t i = 0; i < w.kernel.size(); i++) {
        int64_t padded = c.y[0].shape[2 + i] + w.pads[i] + w.pads[w.kernel.size() + i];
        int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
        counts.push_back(padded < reach ? 0 : (padded - reach) / w.strides[i] + 1);
    }
    return col2im(c.x[0], w, counts, c.y[0]);
}

bool pool_indices(const Computation& c) { return pool_indices(c.x[0], window_of(c), c.flag("column_major"), c.y[0]); }

bool avg_pool2d(const Computation& c) { return avg_pool2d(c.x[0], window_of(c), c.flag("count_include_pad"), c.y[0]); }

bool resize(const Computation& c) {
    auto numerators = c.sizes("numerators"), offsets = c.sizes("offsets"), denominators = c.sizes("denominators");
    if (!numerators || !offsets || !denominators) return false;
    const Ints& axes = c.get<Ints>("axes");
    const auto& scales = c.get<std::vector<double>>("scales");
    const auto* regions = c.optional(1) ? reinterpret_cast<const double*>(c.optional(1)->data) : nullptr;
    Resize how{.axes = std::vector<Resampling>(c.x[0].shape.size()),
               .mode = c.get<std::string>("mode"),
               .nearest = c.get<std::string>("nearest"),
               .cubic = c.get<double>("cubic"),
               .outside = c.get<double>("outside"),
               .exclude_outside = c.flag("exclude_outside"),
               .antialias = c.flag("antialias"),
               .extrapolate = c.flag("extrapolate")};
    for (size_t i = 0; i < axes.size(); i++) {
        Resampling& r = how.axes[static_cast<size_t>(axes[i])];
        r.numerator = static_cast<double>((*numerators)[i]);
        r.offset = static_cast<double>((*offsets)[i]);
        r.denominator = static_cast<double>((*denominators)[i]);
        if (regions) {
            r.start = regions[i];
            r.end = regions[axes.size() + i];
        }
        double scale = scales.empty() ? 0 : scales[i];
        r.scale = scale != 0 ? scale : r.denominator / r.numerator;
        r.is_resized = true;
    }
    return resize(c.x[0], how, c.y[0]);
}

bool grid_sample(const Computation& c) {
    return grid_sample(c.x[0], c.x[1], c.get<std::string>("mode"), c.get<std::string>("outside"),
                       c.flag("aligns_corners"), c.y[0]);
}

bool roi_align(const Computation& c) {
    const RegionSampling how{c.get<double>("scale"), c.get<double>("shift"), c.get<int64_t>("samples"),
                             c.flag("takes_max"), c.flag("is_enlarged")};
    return sample_regions(c.x[0], c.x[1], &c.x[2], how, c.y[0]);
}

bool roi_max_pool(const Computation& c) {
    return sample_regions(c.x[0], c.x[1], nullptr, {c.get<double>("scale"), 0, 0, true, false}, c.y[0]);
}

bool deformed_windows(const Computation& c) {
    return deformed_windows(c.x[0], c.x[1], c.optional(2), window_of(c), c.get<int64_t>("groups"), c.y[0]);
}

constexpr Row rows[] = {
    {"avg_pool2d", avg_pool2d, true},
    {"col2im2d", col2im},
    {"col2im3d", col2im},
    {"conv2d", conv, true},
    {"conv3d", conv},
    {"conv_transpose2d", conv_transpose},
    {"conv_transpose3d", conv_transpose},
    {"deformed_windows", deformed_windows},
    {"grid_sample", grid_sample},
    {"max_pool2d", [](const Computation& c) { return max_pool2d(c.x[0], window_of(c), c.y[0]); }, true},
    {"max_pool2d_indices", pool_indices},
    {"max_pool3d_indices", pool_indices},
    {"resize", resize},
    {"roi_align", roi_align},
    {"roi_max_pool", roi_max_pool},
    {"simplest_fractions", [](const Computation& c) { return simplest_fractions(c.x[0], c.y[0]); }},
    {"sum_pool2d", [](const Computation& c) { return sum_pool2d(c.x[0], window_of(c), c.y[0]); }},
};

} // namespace

std::span<const Row> window_rows() { return rows; }

} // namespace cuvil::evaluation
