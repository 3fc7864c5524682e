// Matrices in narrower types: how numbers are rounded, and products at every level with what src/plan packs.
#include "kernels_run.hpp"
#include "plan/pack.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace cuvil {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// b[k][1] as it is packed.
template <class T> std::vector<T> packed_column(const std::vector<float>& b, DType dtype) {
    const std::vector<std::byte> bytes = pack_matrix(static_cast<long>(b.size()), 1, b, dtype);
    std::vector<T> column(b.size());
    for (size_t i = 0; i < b.size(); i++) std::memcpy(&column[i], bytes.data() + i * 64, sizeof(T));
    return column;
}

TEST(PackMatrix, BfloatsAreRoundedToNearestEven) {
    const std::vector<float> b = {1.0f, 0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, -0x1.00fffep0f, 0x1p-133f, -0.0f};
    EXPECT_EQ(packed_column<uint16_t>(b, DType::BF16),
              (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xbf80, 0x0001, 0x8000}));
}

TEST(PackMatrix, HalvesAreRoundedToNearestEven) {
    const std::vector<float> b = {1.0f,           0x1.002p0f, 0x1.006p0f, 0x1.002002p0f,
                                  -0x1.001ffep0f, 0x1p-24f,   0x1p-25f,   65519};
    EXPECT_EQ(packed_column<uint16_t>(b, DType::F16),
              (std::vector<uint16_t>{0x3c00, 0x3c00, 0x3c02, 0x3c01, 0xbc00, 0x0001, 0x0000, 0x7bff}));
}

TEST(PackMatrix, BytesHaveAScalePerColumn) {
    // Columns 0.5, -127 and 63.5; and zeros.
    const std::vector<float> b = {0.5f, 0, -127, 0, 63.5f, 0};
    const std::vector<std::byte> packed = pack_matrix(3, 2, b, DType::I8);
    ASSERT_EQ(packed.size(), 4 * 64 + 3 * 64);
    float scales[64];
    std::memcpy(scales, packed.data(), sizeof scales);
    EXPECT_EQ(scales[0], 1);
    EXPECT_EQ(scales[1], 0);
    const auto* values = reinterpret_cast<const int8_t*>(packed.data()) + sizeof scales;
    EXPECT_EQ(values[0], 0); // 0.5 to even
    EXPECT_EQ(values[64], -127);
    EXPECT_EQ(values[128], 64);
    EXPECT_EQ(values[1] | values[65] | values[129], 0);
    EXPECT_EQ(packed_matrix_type(3, 2, DType::I8).text(), "i8[1,7,64]");
}

TEST(PackMatrix, NumbersBeyondTheRangeAreFound) {
    const std::vector<float> b = {1, -65520, 0x1.ffp127f, infinity};
    EXPECT_EQ(beyond_range(b, DType::F32), std::nullopt);
    EXPECT_EQ(beyond_range(b, DType::F16), -65520);
    EXPECT_EQ(beyond_range(b, DType::BF16), 0x1.ffp127f);
    EXPECT_EQ(beyond_range(b, DType::I8), infinity);
    EXPECT_EQ(beyond_range(std::vector<float>{65519, -0x1.fep127f}, DType::BF16), std::nullopt);
    EXPECT_EQ(beyond_range(std::vector<float>{65519}, DType::F16), std::nullopt);
    EXPECT_TRUE(beyond_range(std::vector<float>{0, NAN}, DType::I8).has_value());
}

TEST(LoadWeights, EveryFiniteHalf) {
    std::vector<uint16_t> halves;
    for (uint32_t bits = 0; bits < 0x10000; bits++)
        if ((bits & 0x7c00) != 0x7c00) halves.push_back(static_cast<uint16_t>(bits));
    run_levels("load f16", {static_cast<long>(halves.size())}, {halves.data()}, {halves.size() * 4},
               [&](const KernelLevel&, const std::vector<::Buffer>& out) {
                   for (size_t i = 0; i < halves.size(); i++)
                       ASSERT_EQ(out[0].as<uint32_t>()[i],
                                 std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<_Float16>(halves[i]))))
                           << halves[i];
               });
}

// What a level computes is as far from the product with f32 as the rounding of weights below 1 can make it, and v3, v4
// and the interpreter's kernels agree to the bit.
void check_products(DType dtype, const std::string& name, double rounding) {
    for (long m : {0, 1, 2, 7, 15, 29}) {
        for (long n : {0, 1, 15, 16, 33, 200}) {
            for (long k : {0, 1, 3, 4, 17, 700}) {
                SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
                const auto a = random_values(static_cast<size_t>(m * k), 1);
                const auto b = random_values(static_cast<size_t>(k * n), 2);
                const auto bias = random_values(static_cast<size_t>(n), 3);
                const std::vector<std::byte> packed = pack_matrix(k, n, b, dtype);
                run_levels(name, {m, n, k, n}, {a.data(), packed.data(), bias.data()}, {static_cast<size_t>(m * n * 4)},
                           [&](const KernelLevel&, const std::vector<::Buffer>& out) {
                               for (long i = 0; i < m * n; i++) {
                                   double sum = bias[static_cast<size_t>(i % n)], off = 0;
                                   for (long l = 0; l < k; l++) {
                                       const double x = a[static_cast<size_t>(i / n * k + l)];
                                       sum += x * b[static_cast<size_t>(l * n + i % n)];
                                       off += std::abs(x) * rounding;
                                   }
                                   ASSERT_NEAR(out[0].as<float>()[i], sum,
                                               off + 6e-8 * (4 + static_cast<double>(k) + std::abs(sum)));
                               }
                           });
            }
        }
    }
}

// Rows of a table of numbers that each type holds, packed as its transpose.
TEST(GatherPacked, RowsOfNarrowTables) {
    const long rows = 70, width = 19;
    std::vector<float> table(rows * width);
    for (long i = 0; i < rows * width; i++) table[i] = i % width == 0 ? 127.0f : static_cast<float>(i * 7 % 255 - 127);
    const std::vector<std::int64_t> indices = {69, 0, -1, 15, 16, 33};
    for (auto [dtype, name] : {std::pair(DType::BF16, "gather_packed bf16"), std::pair(DType::F16, "gather_packed f16"),
                               std::pair(DType::I8, "gather_packed i8")}) {
        const std::vector<std::byte> packed = pack_transposed(rows, width, table, dtype);
        run_levels(name, {rows, width, static_cast<long>(indices.size())}, {packed.data(), indices.data()},
                   {indices.size() * width * 4}, [&](const KernelLevel&, const std::vector<::Buffer>& out) {
                       for (size_t i = 0; i < indices.size() * width; i++) {
                           const long row = (indices[i / width] + rows) % rows;
                           ASSERT_EQ(out[0].as<float>()[i], table[row * width + i % width]) << i;
                       }
                   });
    }
}

TEST(KernelGemm, WithBfloats) { check_products(DType::BF16, "gemm bf16", 0x1p-9); }
TEST(KernelGemm, WithHalves) { check_products(DType::F16, "gemm f16", 0x1p-12); }
TEST(KernelGemm, WithBytes) { check_products(DType::I8, "gemm i8", 0.5 / 127); }

} // namespace
} // namespace cuvil
