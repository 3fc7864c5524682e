// Weights in the order in which the kernels read them; the packing of kernels/, at compile time.
#pragma once

#include "ir/type.hpp"
#include "plan/winograd.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cuvil {

// The bytes of b [k][n], row-major, in stripes of columns, [ceil(n / columns)][k][columns], as kernels/weights.hpp
// reads them: 16 columns of f32, or more of bf16, f16 or i8, to which the numbers are rounded. The steps of i8 are 1 /
// 127 of a column's largest number.
std::vector<std::byte> pack_matrix(int64_t k, int64_t n, std::span<const float> b, DType dtype = DType::F32);
// The same of the transpose of b [n][k].
std::vector<std::byte> pack_transposed(int64_t n, int64_t k, std::span<const float> b, DType dtype = DType::F32);
// Of such a matrix; scales count as rows.
Type packed_matrix_type(int64_t k, int64_t n, DType dtype);
// The first number that would not be finite in another dtype than f32.
std::optional<float> beyond_range(std::span<const float> b, DType dtype);
// Weights [k][c][r][s] in panels of 16 output channels, for an input with `block` (16 or 1) channels in one block.
std::vector<float> pack_convolution(int64_t k, int64_t c, int64_t r, int64_t s, int64_t block,
                                    std::span<const float> weights);
// Weights [k][width][r][s] of a convolution in groups of `width` channels (1, 2, 4 or 8).
std::vector<float> pack_narrow_convolution(int64_t k, int64_t width, int64_t r, int64_t s,
                                           std::span<const float> weights);
// Weights [k][c][taps][taps] at the points of Winograd's method: [panel of 16 output channels][point][c, filled up to a
// multiple of 16][16]. The second function gives such weights for a window [k][c][r][s] over phases, with 4 c channels.
std::vector<float> pack_winograd_convolution(const PointScheme& scheme, int64_t k, int64_t c,
                                             std::span<const float> weights);
std::vector<float> weights_of_phases(int64_t k, int64_t c, int64_t r, int64_t s, int64_t pad_top, int64_t pad_left,
                                     std::span<const float> weights);
// The bytes that this kernel works in, beside its operands, for n images with oh x ow outputs of k channels and c input
// channels; n, oh and ow may be -1, unknown.
int64_t winograd_scratch_bytes(const PointScheme& scheme, int64_t n, int64_t c, int64_t k, int64_t oh, int64_t ow);
// Of a convolution: its sizes, as in kernels/conv.hpp.
struct ConvSizes {
    int64_t c, k, h, w, oh, ow, r, s;
    std::vector<int64_t> strides, dilations, pads;
};
// The bytes that a convolution and the depthwise one behind it work in, if they are one step.
int64_t conv_depthwise_scratch_bytes(const ConvSizes& first, const ConvSizes& second);
// The same if h, w, oh or ow is open: so many for each pixel of a row of the image between them, its halo included, and
// at least so many.
struct OpenScratch {
    int64_t bytes_per_pixel, least_bytes;
};
OpenScratch open_conv_depthwise_scratch(const ConvSizes& second);
// Weights [c][k][r][s] of a transposed convolution.
std::vector<float> pack_transposed_convolution(int64_t k, int64_t c, const std::vector<int64_t>& kernel,
                                               const std::vector<int64_t>& strides,
                                               const std::vector<int64_t>& dilations, std::span<const float> weights);
// Weights [gates][hidden][hidden] of a recurrent layer, each gate in panels of 16 units.
std::vector<float> pack_gates(int64_t gates, int64_t hidden, std::span<const float> weights);

} // namespace cuvil
