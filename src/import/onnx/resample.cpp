#include "import/onnx/resample.hpp"

#include <cmath>

namespace cuvil::onnx {

Fraction simplest_fraction(double value) {
    // Continued fractions; their numerators and denominators grow at least as the Fibonacci numbers do.
    int64_t h0 = 0, h1 = 1, k0 = 1, k1 = 0;
    double rest = value;
    while (true) {
        double whole = std::floor(rest);
        auto a = static_cast<int64_t>(whole);
        int64_t h2 = a * h1 + h0, k2 = a * k1 + k0;
        h0 = h1, h1 = h2, k0 = k1, k1 = k2;
        bool is_hit =
            static_cast<float>(static_cast<double>(h1) / static_cast<double>(k1)) == static_cast<float>(value);
        if (is_hit || rest == whole || h1 > most_of_scale || k1 > most_of_scale) return {h1, k1};
        rest = 1 / (rest - whole);
    }
}

namespace {

Dim is_positive(const Dim& d) { return Dim::min(Dim::max(d, 0), 1); }

} // namespace

void set_coordinates(ResampledAxis& a, std::string_view mode) {
    Dim is_longer = is_positive(a.out - 1);
    if (mode == "asymmetric") {
        a.numerator = a.below, a.offset = 0, a.denominator = a.above;
    } else if (mode == "one_neighbor") {
        a.numerator = a.below, a.offset = (a.above - 1) * is_positive(a.below - a.above), a.denominator = a.above;
    } else if (mode == "align_corners") {
        bool by_size = a.above == a.out && a.below == a.in;
        a.numerator = by_size ? a.in - 1 : (a.in - 1) * a.below, a.offset = 0;
        a.denominator = by_size ? a.out - 1 : a.in * a.above - a.below;
    } else if (mode == "tf_crop_and_resize") {
        a.numerator = 2 * (a.in - 1), a.offset = (a.in - 1) * (1 - is_longer);
        a.denominator = Dim::max(2 * (a.out - 1), 2);
    } else {
        a.numerator = 2 * a.below, a.denominator = 2 * a.above, a.offset = a.below - a.above;
        if (mode == "pytorch_half_pixel") a.offset = a.offset * is_longer;
        if (mode == "half_pixel_symmetric") a.offset = a.offset + a.in * a.above - a.out * a.below;
        if (mode == "tf_half_pixel_for_nn") a.offset = a.below;
    }
    // A coordinate is asked for only if there are elements.
    a.denominator = Dim::max(a.denominator, 1);
}

} // namespace cuvil::onnx
