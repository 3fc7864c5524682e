// Which convolutions are computed by fewer multiplications (see kernels/winograd.hpp). The choice decides bits, so it
// is one for all levels of a file, and knows nothing of the machine that compiles.
#pragma once

#include "ir/dim.hpp"

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

// The outputs of a tile in each direction, 4 or 2; 0 if the kernel is another one.
int64_t winograd_tile(std::string_view kernel);

} // namespace cuvil
