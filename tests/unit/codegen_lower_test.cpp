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
        for (const PlacedConstant& c : plan_.constants) std::memcpy(weights() + c.offset, c.bytes.data(), c.bytes.size());
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
        cuvil_call call{sizeof(cuvil_call), &host, weights(), workspace.data() + ((64 - at % 64) % 64), dims.data(), in.data(),
                        out.data(), nullptr, nullptr, &failure, 1};
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
    v.as.tensor = {data.data(), 1, 0, static_cast<int32_t>(shape.size()), {code, sizeof(T) * 8, 1}, shape.data(), nullptr, 0};
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
    EXPECT_EQ(m.failure.values[1], 4);
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

} // namespace
} // namespace cuvil
