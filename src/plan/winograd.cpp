#include "plan/winograd.hpp"

#include "plan/cost.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// Of an image whose size a run decides: networks have 64 channels at 56 x 56 pixels, and twice as many at half the
// size.
int64_t usual_size(int64_t channels) { return std::clamp(int64_t{64} * 56 / channels, int64_t{7}, int64_t{56}); }

double time_of(const Work& work) { return estimate(work)->nanoseconds; }

} // namespace

bool has_winograd(int64_t c, int64_t k) { return c >= 16 && k >= 16; }

std::string_view winograd_kernel(int64_t stride, int64_t c, int64_t k, const Dim& oh, const Dim& ow) {
    if (!has_winograd(c, k)) return convolution_kernels[0];
    int64_t usual = usual_size(std::max(c, k));
    int64_t rows = oh.constant().value_or(usual), columns = ow.constant().value_or(usual);
    double direct = time_of(direct_convolution_work(1, c, k, rows, columns, 9));
    double by_4 = time_of(winograd_work(4, stride, 1, c, k, rows, columns));
    double by_2 = time_of(winograd_work(2, stride, 1, c, k, rows, columns));
    if (std::min(by_4, by_2) > direct) return convolution_kernels[0];
    return convolution_kernels[by_4 <= by_2 ? 2 : 1];
}

int64_t winograd_tile(std::string_view kernel) {
    return kernel == "conv2d_winograd4" ? 4 : kernel == "conv2d_winograd2" ? 2 : 0;
}

} // namespace cuvil
