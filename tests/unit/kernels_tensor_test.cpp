// Expressions, reductions, pooling and movement over tensors of odd shapes, against loops that say what they mean.
#include "kernels_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace {

const std::vector<long> odd_sizes = {0, 1, 7, 15, 16, 17, 33, 100};

float relu_of(float x) { return x < 0 ? 0 : x; }

TEST(KernelMap, BroadcastsOperands) {
    for (long n : odd_sizes) {
        for (long parts : {1, 2, 5}) {
            const long a = 3, b = 5;
            const auto x = random_values(static_cast<size_t>(a * b * n + 1), 1), y = random_values(1000, 2);
            for (const std::vector<long>& strides : {std::vector<long>{b * n, n, 1, 0, 1, 0},
                                                     {b * n, n, 1, 0, 0, 1},
                                                     {1, a, a * b, 100, 3, 2},
                                                     {n, 0, 1, 0, n, 1}}) {
                std::vector<long> p = {a, b, n};
                p.insert(p.end(), strides.begin(), strides.end());
                p.push_back(parts);
                run_levels("map3", p, {x.data(), y.data()}, {static_cast<size_t>(a * b * n) * 4},
                           [&](const KernelLevel&, const std::vector<Buffer>& out) {
                               for (long i = 0; i < a * b * n; i++) {
                                   const long index[] = {i / n / b, i / n % b, i % n};
                                   long at_x = 0, at_y = 0;
                                   for (int d = 0; d < 3; d++) {
                                       at_x += index[d] * strides[d];
                                       at_y += index[d] * strides[3 + d];
                                   }
                                   ASSERT_EQ(out[0].as<float>()[i], relu_of(x[at_x] + y[at_y]));
                               }
                           });
            }
        }
    }
}

TEST(KernelMap, MixesElementTypes) {
    for (long n : odd_sizes) {
        const auto a = random_values(static_cast<size_t>(n + 1), 1), b = random_values(static_cast<size_t>(n + 1), 2);
        std::vector<unsigned char> c(static_cast<size_t>(n));
        for (long i = 0; i < n; i++) {
            c[i] = i % 3 == 0;
        }
        for (long stride : {0, 1}) {
            for (long parts : {1, 3}) {
                run_levels(
                    "map1", {n, stride, parts}, {a.data(), b.data(), c.data()},
                    {static_cast<size_t>(n), static_cast<size_t>(n) * 8},
                    [&](const KernelLevel&, const std::vector<Buffer>& out) {
                        for (long i = 0; i < n; i++) {
                            ASSERT_EQ(out[0].as<unsigned char>()[i], a[i] < b[i * stride] && !c[i]);
                            ASSERT_EQ(out[1].as<std::int64_t>()[i],
                                      static_cast<std::int64_t>(c[i] ? a[i] : b[i * stride]));
                        }
                    },
                    2);
            }
        }
    }
}

TEST(KernelMap, BlockedTensorsWriteTheirBorder) {
    for (long channels : {1, 16, 19}) {
        const long n = 2, h = 3, w = 5, blocks = (channels + 15) / 16;
        const long plane = (2 + h) * (1 + w + 1) * 16;
        const auto x = random_values(static_cast<size_t>(n * channels * h * w), 1);
        const auto scale = random_values(static_cast<size_t>(blocks * 16), 2);
        const auto size = static_cast<size_t>(n * blocks * plane) * 4;
        run_levels(
            "map_blocked", {n, channels, h, w}, {x.data(), scale.data()}, {x.size() * 4, size, size},
            [&](const KernelLevel& level, const std::vector<Buffer>& out) {
                for (size_t i = 0; i < x.size(); i++) {
                    const float s = scale[i / (h * w) % channels];
                    const float expected = level.has_fma ? std::fma(x[i], s, 1.0f) : x[i] * s + 1.0f;
                    ASSERT_EQ(out[0].as<float>()[i], expected);
                }
                for (long i = 0; i < n * blocks * plane; i++) {
                    const long column = i / 16 % (w + 2) - 1, row = i / 16 / (w + 2) % (h + 2) - 2;
                    const long channel = i / plane % blocks * 16 + i % 16;
                    if (channel >= channels || row < 0 || column < 0 || column >= w) {
                        ASSERT_EQ(out[1].as<float>()[i], 0.0f);
                    }
                }
            },
            2);
    }
}

template <class T>
void check_reduction(const std::string& name, const std::vector<T>& values, double neutral,
                     double (*enter)(double, double), double (*finish)(double, long), double tolerance) {
    for (long outer : {0, 1, 3}) {
        for (long n : {0, 1, 7, 15, 16, 17, 33, 100}) {
            for (long inner : {1, 2, 16, 17, 33}) {
                for (long parts : {1, 4}) {
                    const auto outputs = static_cast<size_t>(outer * inner);
                    run_levels(name, {outer, n, inner, parts}, {values.data()}, {outputs * sizeof(T)},
                               [&](const KernelLevel&, const std::vector<Buffer>& out) {
                                   for (long i = 0; i < outer * inner; i++) {
                                       double exact = neutral;
                                       for (long j = 0; j < n; j++) {
                                           exact = enter(exact, values[(i / inner * n + j) * inner + i % inner]);
                                       }
                                       exact = finish(exact, n);
                                       const double y = out[0].as<T>()[i];
                                       ASSERT_TRUE(y == exact || std::abs(y - exact) <= tolerance ||
                                                   (std::isnan(y) && std::isnan(exact)))
                                           << name << " of " << n << " values: " << y << ", not " << exact;
                                   }
                               });
                }
            }
        }
    }
}

double as_is(double x, long) { return x; }

TEST(KernelMove, PhasesOfTwoPixelsAreChannels) {
    for (const auto& [n, c, h, w] : std::vector<std::array<long, 4>>{{2, 3, 8, 6}, {1, 4, 7, 5}, {1, 1, 1, 1}}) {
        SCOPED_TRACE(testing::Message() << c << " channels, " << h << " x " << w);
        const auto x = random_values(static_cast<size_t>(n * c * h * w), 1);
        const long rows = 2 + (h + 1) / 2 + 1, columns = 1 + (w + 1) / 2;
        run_levels(
            "relayout_to_phased", {n, c, h, w, 2, 1, 1, 0}, {x.data()}, {static_cast<size_t>(n * rows * columns) * 64},
            [&, n = n, c = c, h = h, w = w](const KernelLevel&, const std::vector<Buffer>& out) {
                for (long i = 0; i < n * rows * columns * 16; i++) {
                    const long lane = i % 16, column = i / 16 % columns, row = i / 16 / columns % rows;
                    const long yy = 2 * (row - 2) + lane / 2 % 2, xx = 2 * (column - 1) + lane % 2;
                    const bool is_real = lane < 4 * c && yy >= 0 && yy < h && xx >= 0 && xx < w;
                    const long at = ((i / 16 / columns / rows * c + lane / 4) * h + yy) * w + xx;
                    ASSERT_EQ(out[0].as<float>()[i], is_real ? x[static_cast<size_t>(at)] : 0.0f) << i;
                }
            },
            1);
    }
}

TEST(KernelReduce, AllOps) {
    const auto x = random_values(20000, 1);
    const auto add = [](double a, double b) { return a + b; };
    check_reduction<float>("sum f32", x, 0, add, as_is, 1e-5);
    check_reduction<float>(
        "mean f32", x, 0, add, [](double sum, long n) { return sum / static_cast<double>(n); }, 1e-6);
    check_reduction<double>(
        "mean f64", random_values<double>(20000, 1), 0, add,
        [](double sum, long n) { return sum / static_cast<double>(n); }, 1e-14);
    check_reduction<float>("max f32", x, -INFINITY, [](double a, double b) { return std::max(a, b); }, as_is, 0);
    check_reduction<float>("prod f32", x, 1, [](double a, double b) { return a * b; }, as_is, 1e-6);
    check_reduction<float>("sum_square f32", x, 0, [](double a, double b) { return a + b * b; }, as_is, 4e-5);
    std::vector<std::int32_t> integers(20000);
    for (size_t i = 0; i < integers.size(); i++) {
        integers[i] = static_cast<std::int32_t>(x[i] * 1000);
    }
    check_reduction<std::int32_t>("sum i32", integers, 0, add, as_is, 0);
    check_reduction<std::int32_t>(
        "min i32", integers, 2147483647.0, [](double a, double b) { return std::min(a, b); }, as_is, 0);
}

TEST(KernelReduce, NaNWins) {
    for (long n : {1, 5, 16, 40}) {
        for (long inner : {1, 3}) {
            for (long where = 0; where < n; where++) {
                std::vector<float> x(static_cast<size_t>(n * inner), 1.0f);
                x[where * inner] = NAN;
                run_levels("max f32", {1, n, inner, 1}, {x.data()}, {static_cast<size_t>(inner) * 4},
                           [&](const KernelLevel&, const std::vector<Buffer>& out) {
                               ASSERT_TRUE(std::isnan(out[0].as<float>()[0]));
                               ASSERT_TRUE(inner == 1 || out[0].as<float>()[1] == 1.0f);
                           });
                run_levels("argmax", {1, n, inner}, {x.data()}, {static_cast<size_t>(inner) * 8},
                           [&](const KernelLevel&, const std::vector<Buffer>& out) {
                               ASSERT_EQ(out[0].as<std::int64_t>()[0], where);
                           });
            }
        }
    }
}

template <class T> void check_softmax(const std::string& name, bool log, double tolerance) {
    auto x = random_values<T>(20000, 1);
    for (T& v : x) {
        v *= 20;
    }
    for (long outer : {0, 1, 3}) {
        for (long n : {1, 7, 16, 17, 100}) {
            for (long inner : {1, 3, 16, 20}) {
                for (long parts : {1, 3}) {
                    const auto size = static_cast<size_t>(outer * n * inner);
                    run_levels(name, {outer, n, inner, parts}, {x.data()}, {size * sizeof(T)},
                               [&](const KernelLevel&, const std::vector<Buffer>& out) {
                                   for (long i = 0; i < outer * n * inner; i++) {
                                       const long first = i / (n * inner) * n * inner + i % inner;
                                       double sum = 0;
                                       for (long j = 0; j < n; j++) {
                                           sum += std::exp(static_cast<double>(x[first + j * inner]) - x[i]);
                                       }
                                       ASSERT_NEAR(out[0].as<T>()[i], log ? -std::log(sum) : 1 / sum, tolerance);
                                   }
                               });
                }
            }
        }
    }
}

TEST(KernelSoftmax, SumsToOne) {
    check_softmax<float>("softmax f32", false, 1e-6);
    check_softmax<double>("softmax f64", false, 1e-14);
    check_softmax<float>("log_softmax f32", true, 1e-5);
}

template <class T> void check_norm(const std::string& name, bool layer, double tolerance) {
    auto x = random_values<T>(5000, 1);
    const auto scale = random_values<T>(1100, 2), bias = random_values<T>(1100, 3);
    for (T& v : x) {
        v += T(5); // a mean far from 0
    }
    for (long rows : {0, 1, 4}) {
        for (long n : {1, 15, 64, 65, 1100}) {
            for (long parts : {1, 3}) {
                for (long affine : {0, 1}) {
                    const auto size = static_cast<size_t>(rows * n);
                    run_levels(name, {rows, n, parts, affine}, {x.data(), scale.data(), bias.data()},
                               {size * sizeof(T)}, [&](const KernelLevel&, const std::vector<Buffer>& out) {
                                   for (long i = 0; i < rows * n; i++) {
                                       const T* row = x.data() + i / n * n;
                                       double mean = 0, square = 0;
                                       for (long j = 0; layer && j < n; j++) {
                                           mean += static_cast<double>(row[j]) / static_cast<double>(n);
                                       }
                                       for (long j = 0; j < n; j++) {
                                           square += (row[j] - mean) * (row[j] - mean) / static_cast<double>(n);
                                       }
                                       double y = (x[i] - mean) / std::sqrt(square + 1e-5);
                                       if (affine) {
                                           y = y * scale[i % n] + (layer ? bias[i % n] : 0);
                                       }
                                       ASSERT_NEAR(out[0].as<T>()[i], y, tolerance);
                                   }
                               });
                }
            }
        }
    }
}

TEST(KernelNorm, IsTheDefinition) {
    check_norm<float>("layer_norm f32", true, 3e-6);
    check_norm<double>("layer_norm f64", true, 1e-13);
    check_norm<float>("rms_norm f32", false, 1e-6);
    check_norm<double>("rms_norm f64", false, 1e-14);
}

TEST(KernelSoftmax, SurvivesInfinities) {
    const std::vector<float> x = {-INFINITY, 0, 1000, -INFINITY, -1000, 1000};
    run_levels("softmax f32", {1, 6, 1, 1}, {x.data()}, {24}, [](const KernelLevel&, const std::vector<Buffer>& out) {
        const std::vector<float> expected = {0, 0, 0.5f, 0, 0, 0.5f};
        for (size_t i = 0; i < expected.size(); i++) {
            ASSERT_EQ(out[0].as<float>()[i], expected[i]);
        }
    });
}

struct Pool {
    long n, c, h, w, kernel, stride, dilation, pad;
    bool ceil_mode;

    long out(long size) const {
        const long span = size + 2 * pad - dilation * (kernel - 1) - 1;
        long count = (ceil_mode ? span + stride - 1 : span) / stride + 1;
        return ceil_mode && (count - 1) * stride >= size + pad ? count - 1 : count;
    }
};

TEST(KernelPool, LargestAndMean) {
    for (const Pool& p : {Pool{2, 3, 8, 8, 2, 2, 1, 0, false}, Pool{1, 17, 14, 9, 3, 2, 1, 1, false},
                          Pool{1, 32, 7, 7, 3, 1, 2, 1, false}, Pool{1, 5, 10, 11, 3, 2, 1, 1, true},
                          Pool{1, 16, 112, 112, 3, 2, 1, 1, false}, Pool{1, 2, 4, 4, 4, 3, 1, 2, true}}) {
        const long oh = p.out(p.h), ow = p.out(p.w), blocks = (p.c + 15) / 16;
        auto x = random_values(static_cast<size_t>(p.n * p.c * p.h * p.w), 1);
        x[x.size() / 2] = NAN;
        const auto size = static_cast<size_t>(p.n * p.c * oh * ow) * 4;
        const auto blocked = static_cast<size_t>(p.n * blocks * (oh + 1) * (ow + 3) * 16) * 4;
        const auto framed = static_cast<size_t>(p.n * blocks * (p.h + 3) * (p.w + 1) * 16) * 4;
        for (long kind : {0, 1, 2, 10, 11, 12}) {
            run_levels(
                "pool", {p.n, p.c, p.h, p.w, oh, ow, p.kernel, p.stride, p.dilation, p.pad, kind, p.pad}, {x.data()},
                {size, kind < 10 ? blocked : 0, framed}, [&](const KernelLevel&, const std::vector<Buffer>& out) {
                    for (long i = 0; i < p.n * p.c * oh * ow; i++) {
                        double largest = -INFINITY, sum = 0;
                        long count = 0, padded = 0;
                        for (long ky = 0; ky < p.kernel; ky++) {
                            for (long kx = 0; kx < p.kernel; kx++) {
                                const long y = i / ow % oh * p.stride + ky * p.dilation - p.pad;
                                const long xx = i % ow * p.stride + kx * p.dilation - p.pad;
                                padded += y < p.h + p.pad && xx < p.w + p.pad;
                                if (y < 0 || xx < 0 || y >= p.h || xx >= p.w) {
                                    continue;
                                }
                                const double v = x[(i / (oh * ow) * p.h + y) * p.w + xx];
                                largest = std::isnan(v) || std::isnan(largest) ? NAN : std::max(largest, v);
                                sum += v;
                                count++;
                            }
                        }
                        const double exact =
                            kind % 10 == 0 ? largest : sum / static_cast<double>(kind % 10 == 1 ? count : padded);
                        const float v = out[0].as<float>()[i];
                        ASSERT_TRUE((std::isnan(v) && std::isnan(exact)) || v == exact || std::abs(v - exact) < 1e-6)
                            << "kind " << kind << " at " << i << ": " << v << ", not " << exact;
                    }
                });
        }
        x[x.size() / 2] = 1;
        run_levels("pool", {p.n, p.c, p.h, p.w, oh, ow, p.kernel, p.stride, p.dilation, p.pad, 3, p.pad}, {x.data()},
                   {static_cast<size_t>(p.n * p.c) * 4, 0, framed},
                   [&](const KernelLevel&, const std::vector<Buffer>& out) {
                       for (long i = 0; i < p.n * p.c; i++) {
                           const float* plane = x.data() + i * p.h * p.w;
                           const double mean = std::accumulate(plane, plane + p.h * p.w, 0.0) / (p.h * p.w);
                           ASSERT_NEAR(out[0].as<float>()[i], mean, 1e-6);
                       }
                   });
    }
}

template <class T> void check_copy(const std::string& name) {
    for (long n : {0, 1, 7, 17, 40}) {
        for (long m : {1, 15, 33}) {
            const long a = 3;
            const auto x = random_integers<T>(static_cast<size_t>(a * m * n * 2 + 1), 1);
            const auto size = static_cast<size_t>(a * m * n);
            // Straight, transposed, backwards, broadcast.
            for (const std::vector<long>& strides : {std::vector<long>{m * n, n, 1},
                                                     {m * n, 1, m},
                                                     {n, a * n, 1},
                                                     {1, a, a * m},
                                                     {2 * m * n, 2 * n, 2},
                                                     {0, 0, 1}}) {
                for (long parts : {1, 4}) {
                    run_levels(name, {a, m, n, m * n, n, 1, strides[0], strides[1], strides[2], parts}, {x.data()},
                               {size * sizeof(T)}, [&](const KernelLevel&, const std::vector<Buffer>& out) {
                                   for (long i = 0; i < a * m * n; i++) {
                                       const long from =
                                           i / n / m * strides[0] + i / n % m * strides[1] + i % n * strides[2];
                                       ASSERT_EQ(out[0].as<T>()[i], x[from]);
                                   }
                               });
                }
            }
        }
    }
}

TEST(KernelMove, CopiesWithAnyStrides) {
    check_copy<std::uint32_t>("copy f32");
    check_copy<std::uint8_t>("copy u8");
}

TEST(KernelMove, GatherReportsTheFirstWrongIndex) {
    for (long inner : {1, 3, 20}) {
        const long outer = 2, axis = 5, count = 7;
        const auto x = random_values(static_cast<size_t>(outer * axis * inner), 1);
        for (const std::vector<std::int64_t>& indices : {std::vector<std::int64_t>{0, 4, -1, -5, 2, 2, 3},
                                                         {0, 1, 5, 2, -6, 0, 0},
                                                         {1ll << 62, 0, 0, 0, 0, 0, 0}}) {
            std::int64_t wrong = -1;
            for (long j = count - 1; j >= 0; j--) {
                wrong = indices[j] < -axis || indices[j] >= axis ? j : wrong;
            }
            run_levels(
                "gather", {outer, axis, inner, count}, {x.data(), indices.data()},
                {static_cast<size_t>(outer * count * inner) * 4, 8},
                [&](const KernelLevel&, const std::vector<Buffer>& out) {
                    ASSERT_EQ(*out[1].as<std::int64_t>(), wrong);
                    for (long i = 0; i < outer * count * inner; i++) {
                        const std::int64_t index = indices[i / inner % count];
                        const std::int64_t at = index < 0 ? index + axis : index;
                        const bool right = at >= 0 && at < axis;
                        ASSERT_EQ(out[0].as<float>()[i],
                                  right ? x[(i / inner / count * axis + at) * inner + i % inner] : 0.0f);
                    }
                },
                2);
        }
    }
}

TEST(KernelMove, GatherReadsRowsOfPackedWeights) {
    for (long axis : {5, 16, 37}) {
        const long inner = 20, count = 4;
        const auto x = random_values(static_cast<size_t>(axis * inner), 1);
        for (const std::vector<std::int64_t>& indices :
             {std::vector<std::int64_t>{0, axis - 1, -1, -axis}, {2, axis, 1, -axis - 1}, {1ll << 62, 0, 0, -1}}) {
            const auto is_wrong = [&](std::int64_t index) { return index < -axis || index >= axis; };
            const auto first = std::find_if(indices.begin(), indices.end(), is_wrong);
            run_levels(
                "gather_packed", {axis, inner, count}, {x.data(), indices.data()},
                {static_cast<size_t>(count * inner) * 4, 8, static_cast<size_t>((axis + 15) / 16 * 16 * inner) * 4},
                [&](const KernelLevel&, const std::vector<Buffer>& out) {
                    ASSERT_EQ(*out[1].as<std::int64_t>(), first == indices.end() ? -1 : first - indices.begin());
                    for (long i = 0; i < count * inner; i++) {
                        const std::int64_t index = indices[i / inner];
                        const std::int64_t at = index < 0 ? index + axis : index;
                        ASSERT_EQ(out[0].as<float>()[i], is_wrong(index) ? 0.0f : x[at * inner + i % inner]);
                    }
                },
                2);
        }
    }
}

TEST(KernelMove, NonzeroGivesIndicesInOrder) {
    const std::vector<float> x = {0, 1, 0, NAN, -0.0f, 2, 0, 0, 3};
    run_levels("nonzero", {3, 3}, {x.data()}, {64, 8}, [](const KernelLevel&, const std::vector<Buffer>& out) {
        ASSERT_EQ(*out[1].as<std::int64_t>(), 4);
        const std::vector<std::int64_t> expected = {0, 1, 1, 2, 1, 0, 2, 2};
        for (size_t i = 0; i < expected.size(); i++) {
            ASSERT_EQ(out[0].as<std::int64_t>()[i], expected[i]);
        }
    });
}

} // namespace
