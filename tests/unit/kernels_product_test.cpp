// Matrix products and convolutions of odd sizes against sums in f64.
#include "kernels_run.hpp"

#include <algorithm>
#include <cmath>

namespace {

// |y - exact| within what a chain of `terms` additions loses: partial sums of products below 1 grow like the root of
// their number, and their roundings add up like the root of it again.
void expect_near(float y, double exact, long terms) {
    ASSERT_NEAR(y, exact, 6e-8 * (4 + static_cast<double>(terms) + std::abs(exact)));
}

constexpr long most_panels = 8;

// What a level answers to "choose_tiles".
struct Chosen {
    long rows, panels, row_counts, panel_counts;
    long rows_that_fit[most_panels + 1];

    std::pair<long, long> size() const { return {rows, panels}; }
};

Chosen chosen(const KernelLevel& level, long m, long n, long k, long stripe = 1) {
    long y[4 + most_panels];
    const long p[] = {m, n, k, stripe};
    void* out[] = {y};
    find_case(level, "choose_tiles")(p, nullptr, out);
    Chosen c{y[0], y[1], y[2], y[3], {}};
    std::copy(y + 4, std::end(y), c.rows_that_fit + 1);
    return c;
}

TEST(KernelGemm, AllSizes) {
    for (long m : {0, 1, 2, 3, 7, 13, 14, 15, 17, 29, 33}) {
        for (long n : {0, 1, 7, 15, 16, 17, 33, 100}) {
            for (long k : {0, 1, 3, 4, 17, 64}) {
                const long ldc = n + 3;
                const auto a = random_values(static_cast<size_t>(m * k), 1);
                const auto b = random_values(static_cast<size_t>(k * n), 2);
                const auto bias = random_values(static_cast<size_t>(n), 3);
                std::vector<double> exact(static_cast<size_t>(m * n));
                for (long i = 0; i < m; i++) {
                    for (long j = 0; j < n; j++) {
                        double sum = bias[j];
                        for (long l = 0; l < k; l++) {
                            sum += static_cast<double>(a[i * k + l]) * b[l * n + j];
                        }
                        exact[i * n + j] = sum;
                    }
                }
                SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
                const auto size = static_cast<size_t>(m * ldc * 4);
                const auto packed = static_cast<size_t>((n + 15) / 16 * 16 * k * 4);
                run_levels(
                    "gemm", {m, n, k, ldc}, {a.data(), b.data(), bias.data()}, {size, packed},
                    [&](const KernelLevel&, const std::vector<Buffer>& out) {
                        for (long i = 0; i < m; i++) {
                            for (long j = 0; j < ldc; j++) {
                                const float y = out[0].as<float>()[i * ldc + j];
                                if (j < n) {
                                    expect_near(y, exact[i * n + j], k);
                                } else {
                                    ASSERT_EQ(out[0].as<std::uint32_t>()[i * ldc + j], 0xa5a5a5a5u);
                                }
                            }
                        }
                    },
                    2);
            }
        }
    }
}

TEST(KernelGemm, ManyTasks) {
    const long m = 300, n = 530, k = 700;
    const auto a = random_values(m * k, 1), b = random_values(k * n, 2), bias = random_values(n, 3);
    run_levels("gemm", {m, n, k, n}, {a.data(), b.data(), bias.data()}, {m * n * 4, (n + 15) / 16 * 16 * k * 4},
               [&](const KernelLevel&, const std::vector<Buffer>& out) {
                   for (long i = 0; i < m; i += 13) {
                       for (long j = 0; j < n; j += 7) {
                           double sum = bias[j];
                           for (long l = 0; l < k; l++) {
                               sum += static_cast<double>(a[i * k + l]) * b[l * n + j];
                           }
                           expect_near(out[0].as<float>()[i * n + j], sum, k);
                       }
                   }
               });
}

// One row reads as many weights panel by panel; other rows do not.
TEST(KernelGemm, WeightsThatFitIntoNoCache) {
    const long n = 777, k = 1031;
    const auto b = random_values(k * n, 2), bias = random_values(n, 3);
    for (const long m : {1, 2, 9}) {
        SCOPED_TRACE(testing::Message() << m << " rows");
        const auto a = random_values(static_cast<size_t>(m * k), 1);
        run_levels("gemm 777 x 1031", {m, n, k, n}, {a.data(), b.data(), bias.data()},
                   {static_cast<size_t>(m * n) * 4, static_cast<size_t>((n + 15) / 16 * 16 * k) * 4},
                   [&](const KernelLevel&, const std::vector<Buffer>& out) {
                       for (long i = 0; i < m * n; i += m == 1 ? 1 : 11) {
                           double sum = bias[static_cast<size_t>(i % n)];
                           for (long l = 0; l < k; l++) {
                               sum += static_cast<double>(a[static_cast<size_t>(i / n * k + l)]) *
                                      b[static_cast<size_t>(l * n + i % n)];
                           }
                           expect_near(out[0].as<float>()[i], sum, k);
                       }
                   });
    }
}

// Tiles of every size of a level give the bits that the driver gives with its own choice.
TEST(KernelGemm, TilesDoNotMatter) {
    const long n = 16 * 11 - 3, k = 33;
    const std::vector<float> bias(n, 0.0f);
    for (const KernelLevel& level : kernel_levels()) {
        for (long m = 1; m <= 16; m++) {
            const auto a = random_values(static_cast<size_t>(m * k), 1), b = random_values(k * n, 2);
            const void* in[] = {a.data(), b.data(), bias.data()};
            Buffer by_driver(m * n * 4), packed((n + 15) / 16 * 16 * k * 4);
            const long p[] = {m, n, k, n};
            void* out[] = {by_driver.data(), packed.data()};
            find_case(level, "gemm")(p, in, out);
            for (long panels = 1; panels <= most_panels && chosen(level, 1, 1, 1).rows_that_fit[panels] > 0; panels++) {
                Buffer by_tiles(m * n * 4);
                const long q[] = {m, n, k, n, panels};
                void* tiles_out[] = {by_tiles.data(), packed.data()};
                find_case(level, "tiles")(q, in, tiles_out);
                for (long i = 0; i < m * n; i++) {
                    ASSERT_EQ(by_driver.as<float>()[i], by_tiles.as<float>()[i])
                        << level.name << ", " << m << " rows, " << panels << " panels";
                }
            }
        }
    }
}

// What the estimate chooses, where kernel measurements say what is quick: sums that fill the registers for many rows,
// several panels for a single row, and on small maps tiles that leave no row over.
TEST(KernelTiles, FillTheRegisters) {
    for (const KernelLevel& level : kernel_levels()) {
        const std::string name = level.name;
        const Chosen large = chosen(level, 1024, 1024, 256), image = chosen(level, 56, 64, 576);
        const Chosen small = chosen(level, 7, 512, 4608), row = chosen(level, 1, 1000, 512);
        const Chosen symbolic = chosen(level, -1, 1000, 512);
        SCOPED_TRACE(name);
        if (name == "v4") {
            EXPECT_EQ(large.size(), (std::pair<long, long>(14, 2)));
            EXPECT_EQ(image.size(), (std::pair<long, long>(14, 2)));
            EXPECT_EQ(image.row_counts, 1 << 14);
            EXPECT_EQ(small.row_counts, 1 << 7);
            EXPECT_EQ(row.size(), (std::pair<long, long>(2, 8)));
        } else if (name == "v3") {
            EXPECT_EQ(large.size(), (std::pair<long, long>(6, 1)));
            EXPECT_EQ(image.size(), (std::pair<long, long>(6, 1)));
            EXPECT_EQ(image.row_counts, 1 << 5 | 1 << 6);
            EXPECT_EQ(small.row_counts, 1 << 3 | 1 << 4);
            EXPECT_EQ(row.size(), (std::pair<long, long>(1, 4)));
        }
        EXPECT_EQ(row.row_counts, 1 << 1);
        EXPECT_EQ(symbolic.row_counts, (2 << symbolic.rows) - 2);
        EXPECT_EQ(row.panel_counts, 1 << row.panels | ((1 << 63 % row.panels) & ~1));
    }
}

// A tile never begins or ends within a stripe but at an equal part of it.
TEST(KernelTiles, TakeWholeStripes) {
    for (const KernelLevel& level : kernel_levels()) {
        for (long stripe : {1, 2, 4}) {
            for (long m : {-1, 1, 2, 7, 100}) {
                for (long n : {-1, 16, 100, 1000}) {
                    const long panels = chosen(level, m, n, 256, stripe).panels;
                    EXPECT_TRUE(panels % stripe == 0 || stripe % panels == 0) << level.name << ", " << panels;
                }
            }
        }
    }
}

TEST(KernelGemm, AnyType) {
    for (long m : {0, 1, 5}) {
        for (long n : {1, 15, 33}) {
            for (long k : {0, 1, 20}) {
                for (long transposed : {0, 1}) {
                    const auto size = static_cast<size_t>(m * n);
                    const auto a = random_values<double>(static_cast<size_t>(m * k), 1);
                    const auto b = random_values<double>(static_cast<size_t>(k * n), 2);
                    run_levels("matmul f64", {m, n, k, n, transposed}, {a.data(), b.data()}, {size * 8},
                               [&](const KernelLevel&, const std::vector<Buffer>& out) {
                                   for (long i = 0; i < m * n; i++) {
                                       double sum = 0;
                                       for (long l = 0; l < k; l++) {
                                           sum += a[i / n * k + l] * b[transposed ? i % n * k + l : l * n + i % n];
                                       }
                                       ASSERT_NEAR(out[0].as<double>()[i], sum, 1e-14);
                                   }
                               });
                    const auto ai = random_integers<std::int32_t>(static_cast<size_t>(m * k), 1);
                    const auto bi = random_integers<std::int32_t>(static_cast<size_t>(k * n), 2);
                    run_levels("matmul i32", {m, n, k, n, transposed}, {ai.data(), bi.data()}, {size * 4},
                               [&](const KernelLevel&, const std::vector<Buffer>& out) {
                                   for (long i = 0; i < m * n; i++) {
                                       std::uint32_t sum = 0;
                                       for (long l = 0; l < k; l++) {
                                           sum += static_cast<std::uint32_t>(ai[i / n * k + l]) *
                                                  static_cast<std::uint32_t>(
                                                      bi[transposed ? i % n * k + l : l * n + i % n]);
                                       }
                                       ASSERT_EQ(out[0].as<std::uint32_t>()[i], sum);
                                   }
                               });
                }
            }
        }
    }
}

struct Conv {
    long n, c, h, w, k, r, s, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left, pad_bottom, pad_right;

    long oh() const { return (h + pad_top + pad_bottom - (r - 1) * dilation_h - 1) / stride_h + 1; }
    long ow() const { return (w + pad_left + pad_right - (s - 1) * dilation_w - 1) / stride_w + 1; }
};

template <class T>
double exact_conv(const Conv& c, long groups, const std::vector<T>& x, const std::vector<T>& weights, long n, long k,
                  long oy, long ox) {
    double sum = 0;
    const long channels = c.c / groups;
    for (long i = 0; i < channels; i++) {
        for (long ky = 0; ky < c.r; ky++) {
            for (long kx = 0; kx < c.s; kx++) {
                const long y = oy * c.stride_h + ky * c.dilation_h - c.pad_top;
                const long xx = ox * c.stride_w + kx * c.dilation_w - c.pad_left;
                if (y >= 0 && y < c.h && xx >= 0 && xx < c.w) {
                    const long channel = k / (c.k / groups) * channels + i;
                    sum += static_cast<double>(x[((n * c.c + channel) * c.h + y) * c.w + xx]) *
                           weights[((k * channels + i) * c.r + ky) * c.s + kx];
                }
            }
        }
    }
    return sum;
}

const std::vector<Conv> convolutions = {
    {1, 3, 9, 9, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 16, 7, 7, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 17, 15, 33, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 32, 8, 8, 48, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
    {1, 32, 9, 9, 16, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0},
    {1, 3, 20, 20, 16, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3},
    {3, 1, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 18, 12, 10, 20, 3, 2, 2, 1, 2, 3, 2, 0, 1, 4},
    {1, 4, 1, 1, 4, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
    {0, 4, 5, 5, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 16, 3, 50, 16, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0},
    {1, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    // A single column, and a single row; the last of each is cut into several tasks.
    {2, 20, 45, 1, 40, 5, 1, 2, 1, 1, 1, 2, 0, 2, 0},
    {1, 1, 60, 1, 17, 16, 1, 4, 1, 1, 1, 6, 0, 5, 0},
    {1, 16, 30, 3, 16, 3, 3, 1, 1, 2, 1, 1, 0, 1, 0},
    {1, 64, 600, 1, 64, 9, 1, 1, 1, 1, 1, 4, 0, 4, 0},
    {2, 20, 1, 45, 40, 1, 5, 1, 2, 1, 1, 0, 2, 0, 2},
    {1, 64, 1, 600, 64, 1, 9, 1, 1, 1, 1, 0, 4, 0, 4},
};

// Elements, for the fields of Conv2d; `name` is that of the case that counts them.
long scratch_of(const std::string& name, const std::vector<long>& conv) {
    long size = 0;
    void* out[] = {&size};
    find_case(kernel_levels().front(), name)(conv.data(), nullptr, out);
    return size;
}

// The fields of Conv2d.
std::vector<long> fields_of(const Conv& c) {
    return {c.n, c.c,        c.h,        c.w,          c.k,          c.oh(),    c.ow(),    c.r,
            c.s, c.stride_h, c.stride_w, c.dilation_h, c.dilation_w, c.pad_top, c.pad_left};
}

void check_with_halo(const Conv& c, long groups, const std::vector<std::string>& names) {
    const auto x = random_values(static_cast<size_t>(c.n * c.c * c.h * c.w), 1);
    const auto weights = random_values(static_cast<size_t>(c.k * c.c / groups * c.r * c.s), 2);
    const long blocks = (c.k + 15) / 16;
    auto bias = random_values(static_cast<size_t>(blocks * 16), 3);
    // Light epilogues leave what is no channel at 0.
    const bool is_light = names.front().ends_with(" light");
    std::fill(is_light ? bias.begin() + c.k : bias.end(), bias.end(), 0.0f);
    const long oh = c.oh(), ow = c.ow(), terms = c.c / groups * c.r * c.s;
    std::vector<double> exact(static_cast<size_t>(c.n * c.k * oh * ow));
    const long every = exact.size() > 100000 ? 37 : 1;
    for (size_t i = 0; i < exact.size(); i += every) {
        const long at = static_cast<long>(i);
        const long k = at / (oh * ow) % c.k;
        const double sum = exact_conv(c, groups, x, weights, at / (oh * ow * c.k), k, at / ow % oh, at % ow) + bias[k];
        exact[i] = std::max(sum, 0.0) + (is_light ? 0 : 0.5);
    }
    for (long halo : {0, 2}) {
        for (long extra : {0, 1}) {
            for (const std::string& name : names) {
                SCOPED_TRACE(testing::Message() << name << ", halo " << halo << ", extra " << extra);
                const long plane = (oh + 2 * halo) * (ow + 2 * halo) * 16;
                const auto framed = static_cast<size_t>(c.n * (c.c + 15) / 16 * 16 * (c.h + 40) * (c.w + 40));
                // With the weights at 36 points instead of 9 taps, and with scratch memory.
                // The values at the points of tiles of 4 are larger than the result, and so is their rounding.
                const long growth = name.starts_with("conv winograd 4") ? 4 : 1;
                const bool is_winograd = name.starts_with("conv winograd");
                const auto packed = static_cast<size_t>(blocks * 16 * ((c.c + 15) / 16 * 16) * c.r * c.s);
                std::vector<long> parameters = fields_of(c);
                parameters.insert(parameters.end(), {halo, extra});
                const auto scratch = static_cast<size_t>(is_winograd ? scratch_of("winograd_scratch", parameters) : 0);
                run_levels(
                    name, parameters, {x.data(), weights.data(), bias.data()},
                    {exact.size() * 4, static_cast<size_t>(c.n * blocks * plane) * 4, packed * (is_winograd ? 16 : 4),
                     framed * 4, scratch * 4},
                    [&](const KernelLevel&, const std::vector<Buffer>& out) {
                        for (size_t i = 0; i < exact.size(); i += every) {
                            expect_near(out[0].as<float>()[i], exact[i], terms * growth);
                        }
                        // The border and the channels beyond the last are zeros.
                        for (long i = 0; i < c.n * blocks * plane; i++) {
                            const long lane = i % 16, column = i / 16 % (ow + 2 * halo) - halo;
                            const long row = i / 16 / (ow + 2 * halo) % (oh + 2 * halo) - halo;
                            const long channel = i / plane % blocks * 16 + lane;
                            if (channel >= c.k || row < 0 || row >= oh || column < 0 || column >= ow) {
                                ASSERT_EQ(out[1].as<float>()[i], 0.0f) << "at " << row << ", " << column;
                            }
                        }
                    },
                    2);
            }
        }
    }
}

TEST(KernelConv, OfImagesWithAHalo) {
    for (size_t index = 0; index < convolutions.size(); index++) {
        SCOPED_TRACE(testing::Message() << "convolution " << index);
        check_with_halo(convolutions[index], 1, {"conv 16", "conv 1"});
        check_with_halo(convolutions[index], 1, {"conv 16 light", "conv 1 light"});
    }
}

TEST(KernelConv, ByWinograd) {
    for (Conv c : std::vector<Conv>{
             {2, 16, 7, 7, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
             {1, 17, 15, 34, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
             {1, 16, 3, 50, 16, 3, 3, 1, 1, 1, 1, 0, 0, 0, 0},
             {1, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
             {1, 160, 14, 14, 80, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
             {1, 32, 16, 20, 16, 3, 3, 1, 1, 1, 1, 0, 1, 2, 0},
             {2, 5, 1, 1, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
             {20, 16, 60, 40, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, // more blocks than are under way at once
             {0, 16, 5, 5, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
             {1, 16, 2, 5, 16, 3, 3, 1, 1, 1, 1, 0, 1, 0, 1}, // no rows
         }) {
        SCOPED_TRACE(testing::Message() << c.c << " to " << c.k << " channels, " << c.h << " x " << c.w);
        check_with_halo(c, 1, {"conv winograd 2", "conv winograd 4"});
        c.stride_h = c.stride_w = 2;
        check_with_halo(c, 1, {"conv winograd 2 stride 2", "conv winograd 4 stride 2"});
    }
}

TEST(KernelConv, ByWinogradWithFourTaps) {
    for (Conv c : std::vector<Conv>{
             {1, 12, 20, 20, 64, 4, 4, 1, 1, 1, 1, 2, 2, 1, 1},
             {2, 4, 7, 33, 17, 4, 4, 1, 1, 1, 1, 1, 2, 2, 0},
             {1, 32, 4, 5, 16, 4, 4, 1, 1, 1, 1, 0, 0, 0, 0},
             {0, 16, 5, 5, 16, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1},
         }) {
        SCOPED_TRACE(testing::Message() << c.c << " to " << c.k << " channels, " << c.h << " x " << c.w);
        check_with_halo(c, 1, {"conv winograd 4 of 4 taps"});
    }
}

TEST(KernelConv, InNarrowGroups) {
    for (long width : {1, 2, 4, 8}) {
        for (Conv c :
             {Conv{1, 16, 7, 7, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, Conv{2, 40, 9, 21, 40, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},
              Conv{1, 24, 12, 10, 24, 3, 2, 2, 1, 2, 3, 2, 0, 1, 4}, Conv{1, 8, 1, 1, 8, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
              Conv{0, 16, 5, 5, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
              Conv{1, 32, 30, 29, 32, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
              Conv{1, 16, 20, 33, 16, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2},
              Conv{1, 24, 9, 14, 24, 7, 7, 1, 1, 1, 1, 3, 3, 3, 3}}) {
            SCOPED_TRACE(testing::Message() << c.c << " channels in groups of " << width);
            check_with_halo(c, c.c / width, {"conv narrow " + std::to_string(width)});
            if (width == 1) {
                check_with_halo(c, c.c, {"conv narrow 1 light"});
            }
        }
    }
}

// A convolution and the depthwise one behind it are one step with the bits of two.
TEST(KernelConv, WithTheDepthwiseOneBehindIt) {
    const auto depthwise = [](const Conv& first, long r, long stride, long dilation, long pad) {
        return Conv{first.n, first.k,  first.oh(), first.ow(), first.k, r,   r,  stride,
                    stride,  dilation, dilation,   pad,        pad,     pad, pad};
    };
    const Conv wide = {1, 16, 30, 112, 40, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
    const Conv small = {2, 24, 7, 7, 72, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
    const Conv stem = {1, 3, 40, 41, 20, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1};
    const Conv high = {1, 32, 90, 30, 16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
    const std::vector<std::pair<Conv, Conv>> pairs = {
        {wide, depthwise(wide, 3, 2, 1, 1)},   {wide, depthwise(wide, 5, 1, 1, 2)},
        {small, depthwise(small, 3, 1, 1, 1)}, {small, depthwise(small, 5, 2, 1, 2)},
        {stem, depthwise(stem, 3, 1, 1, 1)},   {stem, depthwise(stem, 3, 1, 2, 3)},
        {high, depthwise(high, 3, 1, 1, 1)},   {high, depthwise(high, 3, 3, 1, 0)},
        {high, depthwise(high, 1, 2, 1, 0)},   {small, depthwise(small, 7, 1, 1, 5)},
    };
    for (const auto& [first, second] : pairs) {
        const auto filled = [](long n, long real, unsigned seed) {
            auto values = random_values(static_cast<size_t>(n), seed);
            std::fill(values.begin() + real, values.end(), 0.0f);
            return values;
        };
        const long blocks = (first.k + 15) / 16 * 16;
        const auto x = random_values(static_cast<size_t>(first.n * first.c * first.h * first.w), 1);
        const auto weights = random_values(static_cast<size_t>(first.k * first.c * first.r * first.s), 2);
        const auto bias = filled(blocks, first.k, 3), second_bias = filled(blocks, first.k, 4);
        const auto second_weights = random_values(static_cast<size_t>(second.k * second.r * second.s), 5);
        for (const auto& [halo, extra] : {std::pair(0L, 0L), std::pair(1L, 1L)}) {
            for (const std::string name : {"16", "16 light", "1", "1 light"}) {
                SCOPED_TRACE(testing::Message() << name << ", " << first.c << " to " << first.k << " channels, "
                                                << second.r << " x " << second.r << ", halo " << halo);
                std::vector<long> parameters = fields_of(first);
                for (long field : fields_of(second)) parameters.push_back(field);
                parameters.insert(parameters.end(), {halo, extra});
                const auto floats = [](long n) { return static_cast<size_t>(n) * sizeof(float); };
                const size_t y = floats(second.n * blocks * (second.oh() + 2 * halo) * (second.ow() + 2 * halo));
                run_levels(
                    "conv depthwise " + name, parameters,
                    {x.data(), weights.data(), bias.data(), second_weights.data(), second_bias.data()},
                    {y, y, floats(blocks * (first.c + 15) / 16 * 16 * first.r * first.s),
                     floats(blocks * second.r * second.s),
                     floats(first.n * (first.c + 15) / 16 * 16 * (first.h + 10) * (first.w + 10)),
                     floats(second.n * blocks * (second.h + 20) * (second.w + 20)),
                     floats(scratch_of("conv_depthwise_scratch", parameters))},
                    [&](const KernelLevel&, const std::vector<Buffer>& out) { EXPECT_TRUE(out[0] == out[1]); }, 2);
            }
        }
    }
}

TEST(KernelConv, OfAnyRankAndGrouping) {
    for (long groups : {1, 2, 6}) {
        for (Conv c :
             {Conv{2, 6, 9, 40, 12, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, Conv{1, 6, 7, 8, 6, 2, 5, 2, 3, 1, 2, 0, 4, 0, 4},
              Conv{1, 6, 1, 33, 6, 1, 7, 1, 1, 1, 1, 0, 3, 0, 3}, Conv{1, 6, 4, 4, 6, 3, 3, 1, 1, 2, 2, 5, 5, 5, 5}}) {
            const long oh = c.oh(), ow = c.ow();
            const auto size = static_cast<size_t>(c.n * c.k * oh * ow);
            const auto check = [&](const auto& x, const auto& weights, const auto& bias, const auto& name, auto rank,
                                   double tolerance) {
                using T = std::decay_t<decltype(x[0])>;
                std::vector<long> p = {c.n, c.c, c.k, groups};
                if constexpr (rank == 1) {
                    p.insert(p.end(), {c.w, ow, c.s, c.stride_w, c.dilation_w, c.pad_left});
                } else if constexpr (rank == 2) {
                    p.insert(p.end(), {c.h, c.w, oh, ow, c.r, c.s, c.stride_h, c.stride_w, c.dilation_h, c.dilation_w,
                                       c.pad_top, c.pad_left});
                } else {
                    p.insert(p.end(), {1, c.h, c.w, 1, oh, ow, 1, c.r, c.s, 1, c.stride_h, c.stride_w, 1, c.dilation_h,
                                       c.dilation_w, 0, c.pad_top, c.pad_left});
                }
                run_levels(name, p, {x.data(), weights.data(), bias.data()}, {size * sizeof(T)},
                           [&](const KernelLevel&, const std::vector<Buffer>& out) {
                               for (size_t i = 0; i < size; i++) {
                                   const long at = static_cast<long>(i);
                                   const long k = at / (oh * ow) % c.k;
                                   const double sum = exact_conv(c, groups, x, weights, at / (oh * ow * c.k), k,
                                                                 at / ow % oh, at % ow);
                                   ASSERT_NEAR(out[0].as<T>()[i], sum + bias[k], tolerance);
                               }
                           });
            };
            const auto inputs = static_cast<size_t>(c.n * c.c * c.h * c.w);
            const auto taps = static_cast<size_t>(c.k * c.c / groups * c.r * c.s);
            const auto channels = static_cast<size_t>(c.k);
            const auto x = random_values(inputs, 1), weights = random_values(taps, 2),
                       bias = random_values(channels, 3);
            check(x, weights, bias, "conv_any 2", std::integral_constant<int, 2>(), 1e-5);
            if (c.h == 1) {
                check(x, weights, bias, "conv_any 1", std::integral_constant<int, 1>(), 1e-5);
            }
            check(random_values<double>(inputs, 1), random_values<double>(taps, 2), random_values<double>(channels, 3),
                  "conv_any 3", std::integral_constant<int, 3>(), 1e-13);
            std::vector<std::int32_t> xi(inputs), wi(taps), bi(channels);
            for (size_t i = 0; i < inputs; i++) {
                xi[i] = static_cast<std::int32_t>(x[i] * 100);
            }
            for (size_t i = 0; i < taps; i++) {
                wi[i] = static_cast<std::int32_t>(weights[i] * 100);
            }
            check(xi, wi, bi, "conv_any i32", std::integral_constant<int, 2>(), 0);
        }
    }
}

} // namespace
