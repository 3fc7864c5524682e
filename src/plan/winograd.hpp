// Which convolutions are computed by fewer multiplications (see kernels/winograd.hpp). The choice decides bits, so it
// is one for all levels of a file, and knows nothing of the machine that compiles.
#pragma once

#include "ir/program.hpp"

#include <cstdint>
#include <string_view>

namespace cuvil {

// The kernels for such a window, the direct one first.
inline constexpr std::string_view convolution_kernels[] = {"conv2d_blocked", "conv2d_winograd2", "conv2d_winograd4"};
// Whether all of them can compute it.
bool has_winograd(int64_t c, int64_t k);

// The kernel for a window of 3 x 3 with a stride of 1 or 2 from c to k channels and oh x ow pixels: the quickest by an
// estimate of the time for arithmetic and for weights from memory.
std::string_view winograd_kernel(int64_t stride, int64_t c, int64_t k, const Dim& oh, const Dim& ow);

// What a kernel computes in each direction: tiles of so many outputs, 4 or 2, for a window of `taps` that moves by
// `stride`. tile = 0: another method.
struct PointScheme {
    int64_t tile = 0, stride = 1, taps = 3;

    int64_t points() const { return stride == 1 ? tile + taps - 1 : 2 * tile + 1; } // with those that share a weight
    int64_t weights() const { return tile + taps - 1; }
};
// Of a convolution; one over phases has packed weights.
PointScheme point_scheme(const OpNode& conv, std::string_view kernel);
Dim channels_at_points(const OpNode& conv, std::string_view kernel);

// A large window that moves by two pixels over an image of few channels can be one of 3 or 4 taps over its phases (see
// Layout::Phased); kernel "conv2d_phased". So far its first tap lies before the image, and so many taps it has, for a
// window of `size` that begins `pad` pixels before it.
constexpr int64_t phase_halo(int64_t pad) { return (pad + 1) / 2; }
constexpr int64_t phase_taps(int64_t size, int64_t pad) { return phase_halo(pad) + ((size - 1 - pad) >> 1) + 1; }

} // namespace cuvil
