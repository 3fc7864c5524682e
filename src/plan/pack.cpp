#include "plan/pack.hpp"

#include "kernels/conv.hpp"
#include "kernels/gemm.hpp"

namespace cuvil {

std::vector<float> pack_matrix(int64_t k, int64_t n, std::span<const float> b) {
    std::vector<float> packed(static_cast<size_t>(packed_size(k, n)));
    pack_b(k, n, b.data(), n, 1, packed.data());
    return packed;
}

std::vector<float> pack_convolution(int64_t k, int64_t c, int64_t r, int64_t s, int64_t block,
                                    std::span<const float> weights) {
    std::vector<float> packed(static_cast<size_t>(packed_conv_size(k, c, r, s, block)));
    pack_conv(k, c, r, s, block, weights.data(), packed.data());
    return packed;
}

} // namespace cuvil
