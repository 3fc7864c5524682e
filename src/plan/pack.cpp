#include "plan/pack.hpp"

#include "kernels/conv.hpp"
#include "kernels/conv_depthwise.hpp"
#include "kernels/conv_transpose.hpp"
#include "kernels/depthwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/winograd.hpp"

#include "support/diagnostics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace cuvil {
namespace {

// To nearest, of two the even one; beyond the range infinity.
void narrow(float x, bf16& to) {
    auto bits = std::bit_cast<uint32_t>(x);
    to.bits = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
void narrow(float x, f16& to) { to.bits = std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }

// A stripe of columns from [k][stripe_columns<W>].
template <class W> void narrow_stripe(std::span<const float> from, W* to) {
    for (size_t i = 0; i < from.size(); i++) narrow(from[i], to[i]);
}
// A column of zeros has the scale 0.
void narrow_stripe(std::span<const float> from, i8* to) {
    constexpr size_t columns = stripe_columns<i8>;
    float scales[columns] = {};
    for (size_t i = 0; i < from.size(); i++) scales[i % columns] = std::max(scales[i % columns], std::abs(from[i]));
    for (float& scale : scales) scale /= 127;
    std::memcpy(to, scales, sizeof scales);
    to += stripe_head<i8>;
    for (size_t i = 0; i < from.size(); i++) {
        float scale = scales[i % columns];
        // A scale without all its digits, next to zero, would let the largest number grow.
        float steps = scale > 0 ? std::clamp(std::nearbyint(from[i] / scale), -127.0f, 127.0f) : 0;
        to[i] = static_cast<i8>(steps);
    }
}

// A matrix of k x n.
struct Matrix {
    int64_t k, n;
    const float* data;
    int64_t row_stride, column_stride;
};

std::vector<std::byte> panels_of(const Matrix& b) {
    std::vector<std::byte> packed(static_cast<size_t>(packed_size(b.k, b.n)) * sizeof(float));
    pack_b(b.k, b.n, b.data, b.row_stride, b.column_stride, reinterpret_cast<float*>(packed.data()));
    return packed;
}

template <class W> std::vector<std::byte> stripes_of(const Matrix& b) {
    constexpr int64_t columns = stripe_columns<W>;
    int64_t stripes = ceil_div(b.n, columns);
    std::vector<std::byte> packed(static_cast<size_t>(stripes * stripe_size<W>(b.k)) * sizeof(W));
    std::vector<float> wide(static_cast<size_t>(b.k * columns));
    for (int64_t stripe = 0; stripe < stripes; stripe++) {
        int64_t first = stripe * columns;
        for (int64_t i = 0; i < b.k; i++)
            for (int64_t j = 0; j < columns; j++)
                wide[static_cast<size_t>(i * columns + j)] =
                    first + j < b.n ? b.data[i * b.row_stride + (first + j) * b.column_stride] : 0;
        narrow_stripe(wide, reinterpret_cast<W*>(packed.data()) + stripe * stripe_size<W>(b.k));
    }
    return packed;
}

std::vector<std::byte> packed(const Matrix& b, DType dtype) {
    switch (dtype) {
    case DType::F32: return panels_of(b);
    case DType::BF16: return stripes_of<bf16>(b);
    case DType::F16: return stripes_of<f16>(b);
    case DType::I8: return stripes_of<i8>(b);
    default: CUVIL_ASSERT(false, "no packed matrix is of " + std::string(name(dtype)));
    }
    return {};
}

} // namespace

std::vector<std::byte> pack_matrix(int64_t k, int64_t n, std::span<const float> b, DType dtype) {
    return packed({k, n, b.data(), n, 1}, dtype);
}

std::vector<std::byte> pack_transposed(int64_t n, int64_t k, std::span<const float> b, DType dtype) {
    return packed({k, n, b.data(), 1, k}, dtype);
}

Type packed_matrix_type(int64_t k, int64_t n, DType dtype) {
    int64_t columns = 64 / static_cast<int64_t>(size_of(dtype));
    int64_t rows = dtype == DType::I8 ? stripe_size<i8>(k) / columns : k;
    return Type::tensor(dtype, {ceil_div(n, columns), rows, columns});
}

std::optional<float> beyond_range(std::span<const float> b, DType dtype) {
    if (dtype == DType::F32) return std::nullopt;
    // The first numbers that round to infinity.
    const float end = dtype == DType::BF16  ? 0x1.ffp127f
                      : dtype == DType::F16 ? 65520.0f
                                            : std::numeric_limits<float>::infinity();
    auto found = std::ranges::find_if(b, [end](float x) { return !(std::abs(x) < end); });
    return found == b.end() ? std::nullopt : std::optional(*found);
}

std::vector<float> pack_convolution(int64_t k, int64_t c, int64_t r, int64_t s, int64_t block,
                                    std::span<const float> weights) {
    std::vector<float> packed(static_cast<size_t>(packed_conv_size(k, c, r, s, block)));
    pack_conv(k, c, r, s, block, weights.data(), packed.data());
    return packed;
}

std::vector<float> pack_narrow_convolution(int64_t k, int64_t width, int64_t r, int64_t s,
                                           std::span<const float> weights) {
    std::vector<float> packed(static_cast<size_t>(packed_narrow_size(k, width, r, s)));
    pack_narrow(k, width, r, s, weights.data(), packed.data());
    return packed;
}

namespace {

// f.template operator()<scheme>()
template <class F> auto with_scheme(const PointScheme& scheme, F f) {
    if (scheme.taps == 4) return f.template operator()<WinogradScheme{4, 1, 4}>();
    if (scheme.stride == 2)
        return scheme.tile == 4 ? f.template operator()<WinogradScheme{4, 2}>()
                                : f.template operator()<WinogradScheme{2, 2}>();
    return scheme.tile == 4 ? f.template operator()<WinogradScheme{4, 1}>()
                            : f.template operator()<WinogradScheme{2, 1}>();
}

} // namespace

std::vector<float> pack_winograd_convolution(const PointScheme& scheme, int64_t k, int64_t c,
                                             std::span<const float> weights) {
    return with_scheme(scheme, [&]<WinogradScheme W>() {
        std::vector<float> packed(static_cast<size_t>(packed_winograd_size<W>(k, c)));
        pack_winograd<W>(k, c, weights.data(), packed.data());
        return packed;
    });
}

std::vector<float> weights_of_phases(int64_t k, int64_t c, int64_t r, int64_t s, int64_t pad_top, int64_t pad_left,
                                     std::span<const float> weights) {
    const int64_t rows = phase_taps(r, pad_top), columns = phase_taps(s, pad_left);
    std::vector<float> out(static_cast<size_t>(k * c * 4 * rows * columns));
    for (int64_t channel = 0; channel < k * c; channel++) {
        for (int64_t y = 0; y < r; y++) {
            for (int64_t x = 0; x < s; x++) {
                // From the first pixel of the first tap on.
                int64_t row = y - pad_top + 2 * phase_halo(pad_top), column = x - pad_left + 2 * phase_halo(pad_left);
                int64_t phase = channel * 4 + 2 * (row % 2) + column % 2;
                out[static_cast<size_t>((phase * rows + row / 2) * columns + column / 2)] =
                    weights[static_cast<size_t>((channel * r + y) * s + x)];
            }
        }
    }
    return out;
}

int64_t winograd_scratch_bytes(const PointScheme& scheme, int64_t n, int64_t c, int64_t k, int64_t oh, int64_t ow) {
    const Conv2d p = {.n = n, .c = c, .k = k, .oh = oh, .ow = ow};
    return with_scheme(scheme, [&]<WinogradScheme W>() { return winograd_scratch<W>(p); }) *
           static_cast<int64_t>(sizeof(float));
}

namespace {

Conv2d problem_of(const ConvSizes& p) {
    return {.n = 1,
            .c = p.c,
            .h = p.h,
            .w = p.w,
            .k = p.k,
            .oh = p.oh,
            .ow = p.ow,
            .r = p.r,
            .s = p.s,
            .stride_h = p.strides[0],
            .stride_w = p.strides[1],
            .dilation_h = p.dilations[0],
            .dilation_w = p.dilations[1],
            .pad_top = p.pads[0],
            .pad_left = p.pads[1]};
}

} // namespace

int64_t conv_depthwise_scratch_bytes(const ConvSizes& first, const ConvSizes& second) {
    int64_t most = 0, all_panels = ceil_div(first.k, lane_count);
    for (int64_t panels = 1; panels <= std::min(most_conv_depthwise_panels, all_panels); panels++)
        most = std::max(most, cut_conv_depthwise(problem_of(first), problem_of(second), panels).scratch());
    return most * static_cast<int64_t>(sizeof(float));
}

OpenScratch open_conv_depthwise_scratch(const ConvSizes& second) {
    int64_t planes = most_conv_depthwise_tasks * static_cast<int64_t>(sizeof(float));
    return {planes * most_conv_depthwise_panels * window_height(problem_of(second)) * lane_count,
            planes * conv_depthwise_slot};
}

std::vector<float> pack_transposed_convolution(int64_t k, int64_t c, const std::vector<int64_t>& kernel,
                                               const std::vector<int64_t>& strides,
                                               const std::vector<int64_t>& dilations, std::span<const float> weights) {
    Conv2d p{};
    p.k = k, p.c = c, p.r = kernel[0], p.s = kernel[1];
    p.stride_h = strides[0], p.stride_w = strides[1], p.dilation_h = dilations[0], p.dilation_w = dilations[1];
    std::vector<float> packed(static_cast<size_t>(packed_conv_transpose_size(p)));
    pack_conv_transpose(p, weights.data(), packed.data());
    return packed;
}

std::vector<float> pack_gates(int64_t gates, int64_t hidden, std::span<const float> weights) {
    int64_t size = packed_size(hidden, hidden);
    std::vector<float> packed(static_cast<size_t>(gates * size));
    for (int64_t gate = 0; gate < gates; gate++)
        pack_b(hidden, hidden, weights.data() + gate * hidden * hidden, hidden, 1, packed.data() + gate * size);
    return packed;
}

} // namespace cuvil
