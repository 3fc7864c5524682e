// From IR text to running code: the plan, the emitted C++ and the compiled module.
#include "codegen/lower_to_cxx.hpp"
#include "cuvil/cuvil.h"
#include "ir/parser.hpp"
#include "ops/op_table.hpp"
#include "plan/plan.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

namespace cuvil {
namespace {

// A module that was built from IR text and loaded as the shared object that CXXModule::compile made.
class Built {
public:
    explicit Built(std::string_view text) : program_(parsed(text)), plan_(choose_algorithms(program_)) {
        choose_layouts(program_, plan_);
        fuse_loops(program_, plan_);
        plan_memory(program_, plan_);
        cxx = lower_to_cxx(program_, plan_, {"v2", "v3"});
        Diagnostics diag;
        std::string object = cxx.compile({}, diag);
        char name[] = "/tmp/cuvil-lower-XXXXXX";
        int fd = mkstemp(name);
        EXPECT_EQ(write(fd, object.data(), object.size()), static_cast<ssize_t>(object.size()));
        close(fd);
        library_ = dlopen(name, RTLD_NOW);
        unlink(name);
        EXPECT_NE(library_, nullptr) << dlerror();
        entry_ = static_cast<const cuvil_program*>(dlsym(library_, "cuvil_program_1"));
        weights_.resize(static_cast<size_t>(plan_.constant_bytes) + 64);
        for (const PlacedConstant& c : plan_.constants)
            std::memcpy(weights() + c.offset, c.bytes.data(), c.bytes.size());
    }
    ~Built() { dlclose(library_); }
    Built(const Built&) = delete;

    std::byte* weights() {
        auto at = reinterpret_cast<uintptr_t>(weights_.data());
        return weights_.data() + ((64 - at % 64) % 64);
    }

    // Runs with f32 inputs; returns the status.
    int32_t run(std::vector<cuvil_value> in, std::vector<cuvil_value>& out, const char* level = "v3") {
        std::vector<int64_t> dims(entry_->dim_count + 1);
        if (int32_t status = entry_->bind(in.data(), dims.data(), &failure)) return status;
        std::vector<std::byte> workspace(entry_->workspace_size(dims.data(), 1) + 64, std::byte{0xff});
        auto at = reinterpret_cast<uintptr_t>(workspace.data());
        cuvil_host host{};
        host.size = sizeof host;
        host.alloc = [](const cuvil_host*, uint64_t bytes) { return aligned_alloc(64, (bytes + 127) / 64 * 64); };
        host.free = [](const cuvil_host*, void* block) { free(block); };
        cuvil_call call{sizeof(cuvil_call),
                        &host,
                        weights(),
                        workspace.data() + ((64 - at % 64) % 64),
                        dims.data(),
                        in.data(),
                        out.data(),
                        nullptr,
                        nullptr,
                        &failure,
                        1};
        for (uint32_t i = 0; i < entry_->level_count; i++)
            if (std::string_view(entry_->levels[i].name) == level) return entry_->levels[i].run(&call);
        ADD_FAILURE() << "no level " << level;
        return -1;
    }

    CXXModule cxx;
    cuvil_failure failure{};
    const Plan& plan() const { return plan_; }

private:
    static Program parsed(std::string_view text) {
        Diagnostics diag;
        auto program = parse(text, "test.cuir", builtin_op_table(), diag);
        EXPECT_TRUE(program) << diag.render();
        return std::move(*program);
    }

    Program program_;
    Plan plan_;
    void* library_ = nullptr;
    const cuvil_program* entry_ = nullptr;
    std::vector<std::byte> weights_;
};

template <class T> cuvil_value tensor(std::vector<T>& data, std::vector<int64_t>& shape) {
    uint8_t code = std::is_same_v<T, float> ? 2 : std::is_same_v<T, uint8_t> ? 6 : 0;
    cuvil_value v{};
    v.tag = CUVIL_TENSOR;
    v.as.tensor = {data.data(),  1,       0, static_cast<int32_t>(shape.size()), {code, sizeof(T) * 8, 1},
                   shape.data(), nullptr, 0};
    return v;
}

TEST(Lower, ElementwiseChainBecomesOneLoop) {
    Built m(R"(func @main(%x: f32[N,5], %b: f32[5]) -> f32[N,5] {
  %1 = broadcast %b {shape = [N,5]} : f32[N,5]
  %2 = add %x, %1 : f32[N,5]
  %3 = relu %2 : f32[N,5]
  return %3
})");
    EXPECT_EQ(m.plan().main.steps.size(), 1u);
    for (int64_t n : {0, 1, 7}) {
        std::vector<float> x(static_cast<size_t>(n * 5)), y(x.size(), -1), b = {1, -2, 3, -4, 5};
        for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i) - 10;
        std::vector<int64_t> shape = {n, 5}, bias_shape = {5};
        std::vector<cuvil_value> out = {tensor(y, shape)};
        ASSERT_EQ(m.run({tensor(x, shape), tensor(b, bias_shape)}, out), CUVIL_OK);
        for (size_t i = 0; i < x.size(); i++) EXPECT_EQ(y[i], std::fmax(0, x[i] + b[i % 5]));
    }
}

TEST(Lower, EqualLayersShareTheirCode) {
    Built m(R"(
func @main(%x: f32[4,4], %y: f32[4,4]) -> (f32[4,4], f32[4,4], f32[4,4]) {
  %1 = softmax %x {axis = -1} : f32[4,4]
  %2 = softmax %y {axis = -1} : f32[4,4]
  %3 = softmax %y {axis = 0} : f32[4,4]
  return %1, %2, %3
}
)");
    const std::string text = m.cxx.source_text();
    auto count = [&](std::string_view word) {
        size_t found = 0;
        for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) found++;
        return found;
    };
    EXPECT_EQ(count("\nvoid function_"), 2U);
    EXPECT_EQ(count("\nvoid step_"), 3U);
    std::vector<int64_t> shape = {4, 4};
    std::vector<float> x(16, 1.0F), y(16), a(16), b(16), c(16);
    for (size_t i = 0; i < y.size(); i++) y[i] = static_cast<float>(i % 4);
    std::vector<cuvil_value> out = {tensor(a, shape), tensor(b, shape), tensor(c, shape)};
    ASSERT_EQ(m.run({tensor(x, shape), tensor(y, shape)}, out), CUVIL_OK);
    EXPECT_FLOAT_EQ(a[0], 0.25F);
    EXPECT_FLOAT_EQ(b[3], 0.64391426F);
    EXPECT_FLOAT_EQ(c[3], 0.25F);
}

TEST(Lower, BindRefusesSizesThatDoNotFit) {
    Built m(R"(func @main(%x: f32[N,2], %y: f32[N,2]) -> f32[N,2] {
  %1 = add %x, %y : f32[N,2]
  return %1
})");
    std::vector<float> x(6), y(4), z(6);
    std::vector<int64_t> a = {3, 2}, b = {2, 2};
    std::vector<cuvil_value> out = {tensor(z, a)};
    EXPECT_EQ(m.run({tensor(x, a), tensor(y, b)}, out), CUVIL_ERROR_SHAPE);
    EXPECT_EQ(m.failure.values[0], 2);
    EXPECT_EQ(m.failure.values[1], 3);
}

TEST(Lower, GatherReportsTheFirstIndexOutOfRange) {
    Built m(R"(func @main(%x: f32[4], %i: i64[N]) -> f32[N] {
  %1 = gather %x, %i : f32[N]
  return %1
})");
    std::vector<float> x = {1, 2, 3, 4}, y(3);
    std::vector<int64_t> good = {-1, 0, 2}, bad = {0, 9, -5}, x_shape = {4}, shape = {3};
    std::vector<cuvil_value> out = {tensor(y, shape)};
    ASSERT_EQ(m.run({tensor(x, x_shape), tensor(good, shape)}, out), CUVIL_OK);
    EXPECT_EQ(y, (std::vector<float>{4, 1, 3}));
    EXPECT_EQ(m.run({tensor(x, x_shape), tensor(bad, shape)}, out), CUVIL_ERROR_MODEL);
    EXPECT_EQ(m.failure.values[0], 9);
    EXPECT_EQ(m.failure.values[1], 0);
    EXPECT_EQ(m.failure.values[2], 4);
}

TEST(Lower, PaddingMayBeInfinite) {
    Built m(R"(func @main(%x: f32[N]) -> (f32[N+1], f32[N+1]) {
  %1 = pad %x {low = [1], high = [0], value = -inf} : f32[N+1]
  %2 = pad %x {low = [0], high = [1], value = nan} : f32[N+1]
  return %1, %2
})");
    std::vector<float> x = {1}, y(2), z(2);
    std::vector<int64_t> shape = {1}, padded = {2};
    std::vector<cuvil_value> out = {tensor(y, padded), tensor(z, padded)};
    ASSERT_EQ(m.run({tensor(x, shape)}, out), CUVIL_OK);
    EXPECT_EQ(y, (std::vector<float>{-INFINITY, 1}));
    EXPECT_EQ(z[0], 1);
    EXPECT_TRUE(std::isnan(z[1]));
}

TEST(Lower, AStepMayBeOfAnySize) {
    Built m(R"(func @main(%x: f32[N,2]) -> f32[1,2] {
  %1 = slice %x {starts = [1,0], sizes = [1,2], steps = [4611686018427387904,1]} : f32[1,2]
  return %1
})");
    std::vector<float> x = {1, 2, 3, 4}, y(2);
    std::vector<int64_t> shape = {2, 2}, row = {1, 2};
    std::vector<cuvil_value> out = {tensor(y, row)};
    ASSERT_EQ(m.run({tensor(x, shape)}, out), CUVIL_OK);
    EXPECT_EQ(y, (std::vector<float>{3, 4}));
}

TEST(Lower, NonZeroAllocatesItsOutput) {
    Built m(R"(func @main(%x: f32[N]) -> i64[1,k] {
  %1 = nonzero %x {count = "k"} : i64[1,k]
  return %1
})");
    std::vector<float> x = {0, 3, 0, 5};
    std::vector<int64_t> shape = {4};
    std::vector<cuvil_value> out(1);
    ASSERT_EQ(m.run({tensor(x, shape)}, out), CUVIL_OK);
    ASSERT_EQ(out[0].tag, CUVIL_TENSOR);
    EXPECT_EQ(out[0].as.tensor.shape[1], 2);
    auto* indices = static_cast<int64_t*>(out[0].as.tensor.data);
    EXPECT_EQ(indices[0], 1);
    EXPECT_EQ(indices[1], 3);
    free(out[0].owner);
}

TEST(Lower, LoopCarriesAndStacks) {
    Built m(R"(func @main(%n: i64[], %x: f32[2]) -> (f32[2], f32[k,2]) {
  %1, %2 = loop %n, _, %x {count = "k"} : f32[2], f32[k,2] body (%i: i64[], %c: bool[], %v: f32[2]) {
    %t = constant true : bool[]
    %two = constant [2.0, 3.0] : f32[2]
    %w = mul %v, %two : f32[2]
    return %t, %w, %v
  }
  return %1, %2
})");
    for (int64_t n : {0, 3}) {
        std::vector<float> x = {1, 2}, y(2);
        std::vector<int64_t> trips = {n}, scalar = {}, shape = {2};
        std::vector<cuvil_value> out = {tensor(y, shape), {}};
        ASSERT_EQ(m.run({tensor(trips, scalar), tensor(x, shape)}, out), CUVIL_OK);
        EXPECT_EQ(y[0], std::pow(2.0f, static_cast<float>(n)));
        EXPECT_EQ(y[1], 2 * std::pow(3.0f, static_cast<float>(n)));
        EXPECT_EQ(out[1].as.tensor.shape[0], n);
        if (n == 3) {
            EXPECT_EQ(static_cast<float*>(out[1].as.tensor.data)[4], 4);
        }
        free(out[1].owner);
    }
}

TEST(Lower, IfTakesOneBranch) {
    Built m(R"(func @main(%c: bool[], %x: f32[N]) -> f32[N] {
  %1 = if %c : f32[N] then {
    %2 = neg %x : f32[N]
    return %2
  } else {
    return %x
  }
  return %1
})");
    for (bool c : {false, true}) {
        std::vector<uint8_t> condition = {c};
        std::vector<float> x = {1, 2, 3}, y(3);
        std::vector<int64_t> scalar = {}, shape = {3};
        std::vector<cuvil_value> out = {tensor(y, shape)};
        ASSERT_EQ(m.run({tensor(condition, scalar), tensor(x, shape)}, out), CUVIL_OK);
        EXPECT_EQ(y[2], c ? -3 : 3);
    }
}

// A constant in IR text, with values that follow a simple sequence.
std::string constant(std::string_view name, std::vector<int64_t> shape, std::vector<float>& values, int seed) {
    int64_t count = 1;
    std::string dims, list;
    for (int64_t d : shape) {
        count *= d;
        dims += (dims.empty() ? "" : ",") + std::to_string(d);
    }
    for (int64_t i = 0; i < count; i++) {
        values.push_back(static_cast<float>((i * 37 + seed * 11) % 17 - 8) / 8);
        list += (i ? ", " : "") + std::to_string(values.back());
    }
    return "  %" + std::string(name) + " = constant [" + list + "] : f32[" + dims + "]\n";
}

// y [k][oh][ow] of one image x [c][h][w], padding 1, window 3.
std::vector<float> convolution(const std::vector<float>& x, int64_t c, int64_t h, int64_t w,
                               const std::vector<float>& weight, const std::vector<float>& bias, int64_t stride) {
    auto k = static_cast<int64_t>(bias.size());
    int64_t oh = (h - 1) / stride + 1, ow = (w - 1) / stride + 1;
    std::vector<float> y;
    for (int64_t o = 0; o < k; o++)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++) {
                double sum = bias[static_cast<size_t>(o)];
                for (int64_t n = 0; n < c * 9; n++) {
                    int64_t a = i * stride + n % 9 / 3 - 1, b = j * stride + n % 3 - 1;
                    if (a < 0 || b < 0 || a >= h || b >= w) continue;
                    sum += static_cast<double>(x[static_cast<size_t>((n / 9 * h + a) * w + b)]) *
                           weight[static_cast<size_t>(o * c * 9 + n)];
                }
                y.push_back(static_cast<float>(sum));
            }
    return y;
}

// The input of three channels, blocked layers with a residual connection, symbolic height: what a ResNet does.
TEST(Lower, ConvolutionsExchangeBlockedImages) {
    std::vector<float> w1, b1, w2, b2;
    Built m("func @main(%x: f32[1,3,H,9]) -> (f32[1,20,floordiv(H + 1, 2),5], f32[1,20,1,1]) {\n" +
            constant("w1", {20, 3, 3, 3}, w1, 1) + constant("b1", {20}, b1, 2) + constant("w2", {20, 20, 3, 3}, w2, 3) +
            constant("b2", {20}, b2, 4) +
            R"(  %1 = conv2d %x, %w1, %b1 {strides = [2,2], pads = [1,1,1,1]} : f32[1,20,floordiv(H + 1, 2),5]
  %2 = relu %1 : f32[1,20,floordiv(H + 1, 2),5]
  %3 = conv2d %2, %w2, %b2 {pads = [1,1,1,1]} : f32[1,20,floordiv(H + 1, 2),5]
  %4 = add %3, %2 : f32[1,20,floordiv(H + 1, 2),5]
  %5 = relu %4 : f32[1,20,floordiv(H + 1, 2),5]
  %6 = reduce_mean %5 {axes = [2,3]} : f32[1,20,1,1]
  return %5, %6
})");
    for (int64_t h : {1, 8}) {
        int64_t oh = (h + 1) / 2;
        std::vector<float> x;
        for (int64_t i = 0; i < 27 * h; i++) x.push_back(static_cast<float>(i * 31 % 23 - 11) / 7);
        std::vector<float> a = convolution(x, 3, h, 9, w1, b1, 2);
        for (float& v : a) v = std::fmax(v, 0.0f);
        std::vector<float> want = convolution(a, 20, oh, 5, w2, b2, 1);
        for (size_t i = 0; i < want.size(); i++) want[i] = std::fmax(want[i] + a[i], 0.0f);
        std::vector<int64_t> x_shape = {1, 3, h, 9}, y_shape = {1, 20, oh, 5}, mean_shape = {1, 20, 1, 1};
        std::vector<float> y(want.size()), mean(20), y2(want.size());
        std::vector<cuvil_value> out = {tensor(y, y_shape), tensor(mean, mean_shape)};
        ASSERT_EQ(m.run({tensor(x, x_shape)}, out), CUVIL_OK);
        double first = 0;
        for (size_t i = 0; i < want.size(); i++) {
            EXPECT_NEAR(y[i], want[i], 1e-4) << i;
            if (i < static_cast<size_t>(oh * 5)) first += want[i];
        }
        EXPECT_NEAR(mean[0], first / static_cast<double>(oh * 5), 1e-4);
        out[0] = tensor(y2, y_shape);
        ASSERT_EQ(m.run({tensor(x, x_shape)}, out, "v2"), CUVIL_OK);
        for (size_t i = 0; i < want.size(); i++) EXPECT_NEAR(y2[i], want[i], 1e-4);
    }
}

// The transpose writes plain memory, the convolution blocks.
TEST(Lower, ABlockedImageMeetsAPlainOne) {
    std::vector<float> w, b;
    Built m("func @main(%x: f32[1,3,4,5], %t: f32[20,1,4,5]) -> f32[1,20,4,5] {\n" +
            constant("w", {20, 3, 3, 3}, w, 1) + constant("b", {20}, b, 2) +
            R"(  %1 = conv2d %x, %w, %b {pads = [1,1,1,1]} : f32[1,20,4,5]
  %2 = transpose %t {perm = [1,0,2,3]} : f32[1,20,4,5]
  %3 = add %1, %2 : f32[1,20,4,5]
  return %3
})");
    std::vector<float> x(60), t(400), y(400);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i % 7) - 3;
    for (size_t i = 0; i < t.size(); i++) t[i] = static_cast<float>(i);
    std::vector<float> want = convolution(x, 3, 4, 5, w, b, 1);
    std::vector<int64_t> x_shape = {1, 3, 4, 5}, t_shape = {20, 1, 4, 5}, y_shape = {1, 20, 4, 5};
    std::vector<cuvil_value> out = {tensor(y, y_shape)};
    ASSERT_EQ(m.run({tensor(x, x_shape), tensor(t, t_shape)}, out), CUVIL_OK);
    for (size_t i = 0; i < want.size(); i++) EXPECT_NEAR(y[i], want[i] + t[i], 1e-4) << i;
}

// 65536 ones make sizes whose product is 2^64 elements.
TEST(Lower, SizesThatDataMakesTooLargeAreAnError) {
    Built m(R"(func @main(%x: f32[N]) -> f32[k,k,k,k] {
  %1 = nonzero %x {count = "k"} : i64[1,k]
  %c = constant 1.0 : f32[]
  %2 = broadcast %c {shape = [k,k,k,k]} : f32[k,k,k,k]
  return %2
})");
    std::vector<float> x(65536, 1);
    std::vector<int64_t> shape = {65536};
    std::vector<cuvil_value> out(1);
    EXPECT_EQ(m.run({tensor(x, shape)}, out), CUVIL_ERROR_MEMORY);
}

TEST(Lower, MatrixProductsWithEpilogue) {
    std::vector<float> w, b;
    Built m("func @main(%x: f32[M,6], %s: f32[M,20], %v: f32[2,20,3]) -> (f32[M,20], f32[2,M,3]) {\n" +
            constant("w", {6, 20}, w, 1) + constant("b", {20}, b, 2) + R"(  %1 = matmul %x, %w : f32[M,20]
  %2 = broadcast %b {shape = [M,20]} : f32[M,20]
  %3 = add %1, %2 : f32[M,20]
  %4 = mul %3, %s : f32[M,20]
  %5 = broadcast %4 {shape = [2,M,20]} : f32[2,M,20]
  %6 = matmul %5, %v : f32[2,M,3]
  %7 = neg %6 : f32[2,M,3]
  return %4, %7
})");
    for (int64_t rows : {0, 1, 5}) {
        auto n = static_cast<size_t>(rows);
        std::vector<float> x(n * 6), s(n * 20), v(120), y(n * 20), z(n * 6);
        for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i % 5) - 2;
        for (size_t i = 0; i < s.size(); i++) s[i] = static_cast<float>(i % 3);
        for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<float>(i % 7) - 3;
        std::vector<int64_t> x_shape = {rows, 6}, s_shape = {rows, 20}, v_shape = {2, 20, 3}, z_shape = {2, rows, 3};
        std::vector<cuvil_value> out = {tensor(y, s_shape), tensor(z, z_shape)};
        ASSERT_EQ(m.run({tensor(x, x_shape), tensor(s, s_shape), tensor(v, v_shape)}, out), CUVIL_OK);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < 20; j++) {
                float sum = b[j];
                for (size_t k = 0; k < 6; k++) sum += x[i * 6 + k] * w[k * 20 + j];
                EXPECT_NEAR(y[i * 20 + j], sum * s[i * 20 + j], 1e-4);
            }
        for (size_t i = 0; i < 2 * n * 3; i++) {
            float sum = 0;
            for (size_t k = 0; k < 20; k++) sum += y[i / 3 % n * 20 + k] * v[i / 3 / n * 60 + k * 3 + i % 3];
            EXPECT_NEAR(z[i], -sum, 1e-3);
        }
    }
}

} // namespace
} // namespace cuvil
