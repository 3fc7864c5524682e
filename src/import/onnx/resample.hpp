// Where the elements of a resized axis lie: as fractions of integers, so that a coordinate which should be an integer
// is one.
#pragma once

#include "ir/dim.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace cuvil::onnx {

constexpr int64_t most_of_scale = int64_t{1} << 24; // what scales hold exactly

struct Fraction {
    int64_t above = 1, below = 1;
};

// The simplest fraction that rounds to the given float; for scales from data kernels/resize.hpp finds the same.
Fraction simplest_fraction(double value);

// How one axis is resampled.
struct ResampledAxis {
    int64_t axis;
    int64_t place = axis; // among the entries of scales, sizes and regions
    Dim in, out;
    Dim above, below;                         // the scale
    double scale = 0;                         // the same where it is given as a number
    std::optional<double> start = 0, end = 1; // of the region, where known
    Dim numerator, offset, denominator;

    bool is_whole() const { return start == 0 && end == 1; }
};

// Sets the coordinate of element o, (o * numerator + offset) / denominator, for a coordinate_transformation_mode of the
// definition or "one_neighbor": the element before x / scale, or where the axis becomes shorter the one behind it.
// Where a scale is given, the definition's length_resized is length_original times the scale, in corners that are
// aligned too: docs/decisions/006.
void set_coordinates(ResampledAxis& a, std::string_view mode);

} // namespace cuvil::onnx
