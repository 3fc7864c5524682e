#include "plan/winograd.hpp"

#include "plan/cost.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// Of an image whose size a run decides: networks have 64 channels at 56 x 56 pixels, and twice as many at half the
// size.
int64_t usual_size(int64_t channels) { return std::clamp(int64_t{64} * 56 / channels, int64_t{7}, int64_t{56}); }

// Nanoseconds that are worth larger weights and scratch memory.
constexpr double least_gain = 2000;

double time_of(const Work& work) { return estimate(work)->nanoseconds; }

} // namespace

bool has_winograd(int64_t c, int64_t k) { return c >= 16 && k >= 16; }

std::string_view winograd_kernel(int64_t stride, int64_t c, int64_t k, const Dim& oh, const Dim& ow) {
    if (!has_winograd(c, k)) return convolution_kernels[0];
    int64_t usual = usual_size(std::max(c, k));
    int64_t rows = oh.constant().value_or(usual), columns = ow.constant().value_or(usual);
    double direct = time_of(direct_convolution_work(1, c, k, rows, columns, 9));
    double by_4 = time_of(winograd_work({4, stride}, 1, c, k, rows, columns));
    double by_2 = time_of(winograd_work({2, stride}, 1, c, k, rows, columns));
    if (std::min(by_4, by_2) > direct - least_gain) return convolution_kernels[0];
    return convolution_kernels[by_4 <= by_2 ? 2 : 1];
}

PointScheme point_scheme(const OpNode& conv, std::string_view kernel) {
    // Packed weights: [panel][point][channel][16].
    if (kernel == "conv2d_phased") return {4, 1, conv.operand(1)->type().dim(1).is(49) ? 4 : 3};
    const int64_t tile = kernel == "conv2d_winograd4" ? 4 : kernel == "conv2d_winograd2" ? 2 : 0;
    return tile > 0 ? PointScheme{tile, conv.get<std::vector<int64_t>>("strides").at(0)} : PointScheme{};
}

Dim channels_at_points(const OpNode& conv, std::string_view kernel) {
    const Dim& channels = conv.operand(0)->type().dim(1);
    return kernel == "conv2d_phased" ? channels * 4 : channels;
}

} // namespace cuvil
