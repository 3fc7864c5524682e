// The functions of math.hpp against libm in the next wider type, over all kinds of values, and the integer functions
// against their definitions.
#include "kernels_math_functions.hpp"
#include "kernels_run.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace {

const std::vector<double> special = {
    0.0,    -0.0,   1.0,     -1.0,    0.5,      -0.5,       2.0,       3.0,      -2.0,      -3.0,    1e-45,
    -1e-45, 1e-40,  -1e-40,  1.2e-38, -1.2e-38, 3.4e38,     -3.4e38,   88.72,    88.73,     -87.3,   -87.4,
    -103.9, -104.0, -103.97, 100.0,   -100.0,   0.875,      1e10,      -1e10,    5e-324,    -5e-324, 1e-310,
    709.7,  709.8,  -745.1,  -745.2,  -708.4,   1.7e308,    -1.7e308,  INFINITY, -INFINITY, NAN,     2.5,
    3.5,    -2.5,   1e6,     4.0,     6.0,      0.70710678, 1.41421356};

// Values of every size and sign, those in -20 .. 20 closely, and the special ones.
std::vector<float> values_f32() {
    std::vector<float> values(special.begin(), special.end());
    for (std::uint64_t bits = 0; bits < 0x100000000ull; bits += 8209) {
        values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    }
    for (int i = -100000; i <= 100000; i++) {
        values.push_back(static_cast<float>(i) * 2.02e-4f);
    }
    return values;
}

std::vector<double> values_f64() {
    std::vector<double> values(special.begin(), special.end());
    std::mt19937_64 generator(7);
    for (int i = 0; i < 50000; i++) {
        values.push_back(std::bit_cast<double>(generator()));
    }
    for (int i = -50000; i <= 50000; i++) {
        values.push_back(static_cast<double>(i) * 4.04e-4);
    }
    return values;
}

// The reference is computed by `exact` in long double; the error may not exceed `limit` ulps on levels with fma.
template <class T>
void check_function(const std::string& name, const std::vector<T>& x, long double (*exact)(long double), double limit,
                    bool (*in_domain)(double) = nullptr) {
    std::vector<long double> expected;
    for (T v : x) {
        expected.push_back(exact(v));
    }
    for (long one_by_one : {0, 1}) {
        double worst[2] = {0, 0};
        run_levels(name + type_name<T>, {static_cast<long>(x.size()), one_by_one}, {x.data()}, {x.size() * sizeof(T)},
                   [&](const KernelLevel& level, const std::vector<Buffer>& out) {
                       for (size_t i = 0; i < x.size(); i++) {
                           if (in_domain != nullptr && !in_domain(static_cast<double>(x[i]))) {
                               continue;
                           }
                           const double error = ulps(out[0].as<T>()[i], expected[i]);
                           worst[level.has_fma] = std::max(worst[level.has_fma], error);
                           const double allowed = level.has_fma ? limit : 2 * limit + 1;
                           ASSERT_LE(error, allowed)
                               << name << "(" << x[i] << ") = " << out[0].as<T>()[i] << ", not " << (double)expected[i];
                       }
                   });
        ::testing::Test::RecordProperty(name + type_name<T> + "_ulp", std::to_string(worst[1]));
        std::printf("%s%s: %.2f ulp with fma, %.2f without\n", name.c_str(), type_name<T>, worst[1], worst[0]);
    }
}

template <class T> void check_functions(const std::vector<T>& x) {
    for (const Function& f : functions) {
        check_function<T>(f.name, x, f.exact, std::is_same_v<T, float> ? f.limit_f32 : f.limit_f64, f.in_domain);
    }
}

TEST(KernelMath, FunctionsOfF32) { check_functions(values_f32()); }

TEST(KernelMath, FunctionsOfF64) { check_functions(values_f64()); }

template <class T> void check_pow(double limit) {
    std::vector<T> bases, exponents;
    for (double x : special) {
        for (double y : special) {
            bases.push_back(static_cast<T>(x));
            exponents.push_back(static_cast<T>(y));
        }
    }
    std::mt19937_64 generator(3);
    std::uniform_real_distribution<double> exponent(-20, 20), scale(-6, 6);
    for (int i = 0; i < 50000; i++) {
        const double y = exponent(generator);
        bases.push_back(static_cast<T>((i % 4 == 0 ? -1 : 1) * std::exp(scale(generator))));
        exponents.push_back(static_cast<T>(i % 2 == 0 ? std::round(y) : y));
        bases.push_back(static_cast<T>(1 + scale(generator) * 1e-3));
        exponents.push_back(static_cast<T>(1000 * y));
    }
    double worst = 0;
    for (long one_by_one : {0, 1}) {
        run_levels(std::string("pow") + type_name<T>, {static_cast<long>(bases.size()), one_by_one},
                   {bases.data(), exponents.data()}, {bases.size() * sizeof(T)},
                   [&](const KernelLevel& level, const std::vector<Buffer>& out) {
                       for (size_t i = 0; i < bases.size(); i++) {
                           const long double exact = std::pow((long double)bases[i], (long double)exponents[i]);
                           const double error = ulps(out[0].as<T>()[i], exact);
                           worst = std::max(worst, error);
                           ASSERT_LE(error, level.has_fma ? limit : limit + 1)
                               << "pow(" << bases[i] << ", " << exponents[i] << ") = " << out[0].as<T>()[i] << ", not "
                               << (double)exact;
                       }
                   });
    }
    std::printf("pow%s: %.3f ulp\n", type_name<T>, worst);
}

TEST(KernelMath, WholePowersOfWholeNumbersAreWhole) {
    std::vector<double> bases, exponents, expected;
    for (int base = -40; base <= 40; base++) {
        double power = 1;
        for (int exponent = 0; std::abs(power) < 0x1p53 && exponent < 60; exponent++) {
            bases.push_back(base);
            exponents.push_back(exponent);
            expected.push_back(power);
            power *= base;
        }
    }
    const auto n = static_cast<long>(bases.size());
    run_levels("pow f64", {n, 0}, {bases.data(), exponents.data()}, {bases.size() * 8},
               [&](const KernelLevel&, const std::vector<Buffer>& out) {
                   for (size_t i = 0; i < bases.size(); i++) {
                       ASSERT_EQ(out[0].as<double>()[i], expected[i]) << bases[i] << " to the power " << exponents[i];
                   }
               });
}

TEST(KernelMath, PowHasTheSpecialCasesOfC) {
    check_pow<float>(0.501);
    check_pow<double>(0.7);
}

template <class T> void check_float_remainders() {
    std::vector<T> a, b;
    for (double x : special) {
        for (double y : special) {
            a.push_back(static_cast<T>(x));
            b.push_back(static_cast<T>(y));
        }
    }
    std::mt19937_64 generator(5);
    for (int i = 0; i < 20000; i++) {
        const std::uint64_t bits[2] = {generator(), generator()};
        a.push_back(sizeof(T) == 4 ? static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(bits[0])))
                                   : static_cast<T>(std::bit_cast<double>(bits[0])));
        b.push_back(sizeof(T) == 4 ? static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(bits[1])))
                                   : static_cast<T>(std::bit_cast<double>(bits[1])));
    }
    for (const bool floored : {false, true}) {
        for (long one_by_one : {0, 1}) {
            run_levels(
                std::string(floored ? "mod" : "rem") + type_name<T>, {static_cast<long>(a.size()), one_by_one},
                {a.data(), b.data()}, {a.size() * sizeof(T)}, [&](const KernelLevel&, const std::vector<Buffer>& out) {
                    for (size_t i = 0; i < a.size(); i++) {
                        T expected = std::fmod(a[i], b[i]);
                        if (floored && expected != 0 && std::signbit(expected) != std::signbit(b[i])) {
                            expected += b[i];
                        } else if (floored && expected == 0) {
                            expected = std::copysign(expected, b[i]);
                        }
                        const T y = out[0].as<T>()[i];
                        ASSERT_TRUE(std::isnan(expected) ? std::isnan(y)
                                                         : y == expected && std::signbit(y) == std::signbit(expected))
                            << a[i] << " by " << b[i] << " leaves " << y << ", not " << expected;
                    }
                });
        }
    }
}

TEST(KernelMath, RemaindersOfFloatsAreExact) {
    check_float_remainders<float>();
    check_float_remainders<double>();
}

TEST(KernelMath, MaximumAndMinimumKeepNaN) {
    std::vector<float> a, b;
    for (double x : special) {
        for (double y : special) {
            a.push_back(static_cast<float>(x));
            b.push_back(static_cast<float>(y));
        }
    }
    const long n = static_cast<long>(a.size());
    for (long one_by_one : {0, 1}) {
        for (const char* name : {"maximum f32", "minimum f32", "where f32"}) {
            const bool largest = name[1] != 'i';
            run_levels(name, {n, one_by_one}, {a.data(), b.data()}, {a.size() * 4},
                       [&](const KernelLevel&, const std::vector<Buffer>& out) {
                           for (long i = 0; i < n; i++) {
                               const float y = out[0].as<float>()[i];
                               if (name[0] == 'w') {
                                   const float expected = a[i] >= b[i] ? a[i] : b[i];
                                   ASSERT_TRUE(y == expected || (std::isnan(y) && std::isnan(expected)));
                               } else if (std::isnan(a[i]) || std::isnan(b[i])) {
                                   ASSERT_TRUE(std::isnan(y));
                               } else {
                                   ASSERT_EQ(y, largest ? std::max(a[i], b[i]) : std::min(a[i], b[i]));
                               }
                           }
                       });
        }
        run_levels("less f32", {n, one_by_one}, {a.data(), b.data()}, {a.size()},
                   [&](const KernelLevel&, const std::vector<Buffer>& out) {
                       for (long i = 0; i < n; i++) {
                           ASSERT_EQ(out[0].as<unsigned char>()[i], a[i] < b[i]);
                       }
                   });
    }
}

// Truncated, saturated, 0 for NaN.
template <class To, class From> To saturated(From v) {
    if (std::isnan(v)) {
        return 0;
    }
    const long double low = std::numeric_limits<To>::lowest(), high = std::numeric_limits<To>::max();
    return v <= low    ? std::numeric_limits<To>::lowest()
           : v >= high ? std::numeric_limits<To>::max()
                       : static_cast<To>(v);
}

template <class To, class From> void check_cast(const std::string& to) {
    std::vector<From> x(special.begin(), special.end());
    for (double edge : {127.0, 128.0, 255.0, 256.0, 2147483647.0, 2147483648.0, 4294967295.0, 4294967296.0,
                        9223372036854775807.0, 18446744073709551615.0}) {
        for (double v : {edge, edge - 1, edge + 1, edge - 0.5, edge + 0.5}) {
            x.push_back(static_cast<From>(v));
            x.push_back(static_cast<From>(-v));
        }
    }
    for (long one_by_one : {0, 1}) {
        run_levels("to " + to + type_name<From>, {static_cast<long>(x.size()), one_by_one}, {x.data()},
                   {x.size() * sizeof(To)}, [&](const KernelLevel&, const std::vector<Buffer>& out) {
                       for (size_t i = 0; i < x.size(); i++) {
                           if constexpr (std::is_same_v<To, bool>) {
                               ASSERT_EQ(out[0].as<unsigned char>()[i], x[i] != 0) << x[i];
                           } else {
                               ASSERT_EQ(out[0].as<To>()[i], (saturated<To>(x[i]))) << x[i];
                           }
                       }
                   });
    }
}

TEST(KernelMath, FloatsBecomeIntegersBySaturation) {
    check_cast<std::int32_t, float>("i32");
    check_cast<std::uint8_t, float>("u8");
    check_cast<std::int64_t, float>("i64");
    check_cast<std::uint64_t, float>("u64");
    check_cast<bool, float>("bool");
    check_cast<std::int32_t, double>("i32");
    check_cast<std::uint8_t, double>("u8");
    check_cast<std::int64_t, double>("i64");
    check_cast<std::uint64_t, double>("u64");
    check_cast<bool, double>("bool");
}

template <class T> T divided(T a, T b) {
    using W = __int128;
    return b == 0 ? 0 : static_cast<T>(static_cast<W>(a) / static_cast<W>(b));
}
template <class T> T remainder_of(T a, T b) {
    using W = __int128;
    return b == 0 ? 0 : static_cast<T>(static_cast<W>(a) % static_cast<W>(b));
}
template <class T> T modulo(T a, T b) {
    using W = __int128;
    if (b == 0) {
        return 0;
    }
    const W rest = static_cast<W>(a) % static_cast<W>(b);
    return static_cast<T>(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}
template <class T> T multiplied(T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <class T> T multiplied_and_added(T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) +
                          static_cast<std::uint64_t>(a));
}
template <class T> T power(T a, T b) {
    if (b < 0) {
        return a == 1 ? 1 : a == static_cast<T>(-1) ? (b % 2 == 0 ? 1 : a) : 0;
    }
    T result = 1;
    for (std::uint64_t left = static_cast<std::uint64_t>(b); left > 0; left /= 2) {
        result = left % 2 == 1 ? multiplied(result, a) : result;
        a = multiplied(a, a);
    }
    return result;
}

template <class T> T shifted_left(T a, T b) {
    return b < 0 || b >= T(sizeof(T) * 8) ? 0 : static_cast<T>(static_cast<std::uint64_t>(a) << b);
}
template <class T> T shifted_right(T a, T b) {
    return b < 0 || b >= T(sizeof(T) * 8) ? (a < 0 ? -1 : 0) : static_cast<T>(a >> b);
}

template <class T> void check_integers(const std::string& type) {
    std::vector<T> a, b;
    const std::vector<T> edges = {0,
                                  1,
                                  static_cast<T>(-1),
                                  2,
                                  static_cast<T>(-2),
                                  7,
                                  std::numeric_limits<T>::lowest(),
                                  std::numeric_limits<T>::max()};
    for (T x : edges) {
        for (T y : edges) {
            a.push_back(x);
            b.push_back(y);
        }
    }
    for (T x : random_integers<T>(1000, 1)) {
        a.push_back(x);
    }
    for (T y : random_integers<T>(1000, 2)) {
        b.push_back(y);
    }
    const long n = static_cast<long>(a.size());
    struct Binary {
        const char* name;
        T (*expected)(T, T);
    };
    for (const Binary& f :
         {Binary{"div ", divided<T>}, Binary{"rem ", remainder_of<T>}, Binary{"mod ", modulo<T>},
          Binary{"mul ", multiplied<T>}, Binary{"fma ", multiplied_and_added<T>}, Binary{"pow ", power<T>},
          Binary{"shift_left ", shifted_left<T>}, Binary{"shift_right ", shifted_right<T>}}) {
        for (long one_by_one : {0, 1}) {
            run_levels(f.name + type, {n, one_by_one}, {a.data(), b.data()}, {a.size() * sizeof(T)},
                       [&](const KernelLevel&, const std::vector<Buffer>& out) {
                           for (long i = 0; i < n; i++) {
                               ASSERT_EQ(+out[0].as<T>()[i], +f.expected(a[i], b[i]))
                                   << f.name << " of " << +a[i] << " and " << +b[i];
                           }
                       });
        }
    }
    for (long one_by_one : {0, 1}) {
        run_levels("to f32 " + type, {n, one_by_one}, {a.data()}, {a.size() * 4},
                   [&](const KernelLevel&, const std::vector<Buffer>& out) {
                       for (long i = 0; i < n; i++) {
                           ASSERT_EQ(out[0].as<float>()[i], static_cast<float>(a[i]));
                       }
                   });
        run_levels("to i16 " + type, {n, one_by_one}, {a.data()}, {a.size() * 2},
                   [&](const KernelLevel&, const std::vector<Buffer>& out) {
                       for (long i = 0; i < n; i++) {
                           ASSERT_EQ(out[0].as<std::int16_t>()[i], static_cast<std::int16_t>(a[i]));
                       }
                   });
    }
}

TEST(KernelMath, IntegersWrapAndNeverTrap) {
    check_integers<std::int8_t>("i8");
    check_integers<std::uint8_t>("u8");
    check_integers<std::int32_t>("i32");
    check_integers<std::int64_t>("i64");
    check_integers<std::uint64_t>("u64");
}

} // namespace
