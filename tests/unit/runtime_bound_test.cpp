// Calls whose memory stays where it is.
#include "runtime_fixture.hpp"

#include <memory>

namespace cuvil::test {
namespace {

struct Unbind {
    void operator()(cuvil_bound* bound) const { cuvil_unbind(bound); }
};
using BoundPointer = std::unique_ptr<cuvil_bound, Unbind>;

BoundPointer bind(cuvil_module* module, const cuvil_value* in, cuvil_value* out) {
    cuvil_bound* bound = nullptr;
    EXPECT_EQ(cuvil_bind(module, in, out, &bound), CUVIL_OK) << cuvil_error_message();
    return BoundPointer(bound);
}

std::string bind_error(cuvil_module* module, const cuvil_value* in, cuvil_value* out, int32_t status) {
    auto* bound = reinterpret_cast<cuvil_bound*>(out);
    EXPECT_EQ(cuvil_bind(module, in, out, &bound), status);
    EXPECT_EQ(bound, nullptr);
    return cuvil_error_message();
}

TEST(BoundCall, ReadsAndWritesTheSameMemoryAgain) {
    const ModulePointer module = load(module_bytes("scale"));
    auto x = counting<float>({1, 4});
    Tensor<float> y{{1, 4}, std::vector<float>(4, -1)};
    BoundPointer bound;
    cuvil_value out[2] = {y.value(), {}};
    {
        std::vector<int64_t> shape = {1, 4}; // only the numbers stay
        cuvil_value in = x.value();
        in.as.tensor.shape = shape.data();
        bound = bind(module.get(), &in, out);
        shape.assign(2, -7);
    }
    ASSERT_EQ(out[1].tag, CUVIL_TENSOR) << "what is not given is allocated at once";
    for (float first : {0.0f, 10.0f}) {
        x.data[0] = first;
        ASSERT_EQ(cuvil_run_bound(bound.get(), nullptr), CUVIL_OK) << cuvil_error_message();
        EXPECT_EQ(y.data, (std::vector<float>{2 * first, 2, 4, 6}));
        EXPECT_EQ("v" + std::to_string(elements<int32_t>(out[1])[0]), cuvil_level_name(module.get()));
    }
    bound.reset();
    cuvil_value_release(&out[1]);
}

TEST(BoundCall, AFailedRunLeavesItBound) {
    const ModulePointer module = load(module_bytes("pick"));
    Tensor<float> table{{4}, {0, 10, 20, 30}};
    Tensor<int64_t> index{{1}, {3}};
    Tensor<float> y{{1}, {-1}};
    cuvil_value in[4] = {table.value(), index.value(), {}, {}}, out = y.value();
    const BoundPointer bound = bind(module.get(), in, &out);
    index.data[0] = 9;
    EXPECT_NE(cuvil_run_bound(bound.get(), nullptr), CUVIL_OK);
    EXPECT_STREQ(cuvil_error_message(), "index 9 is out of range for axis 0 of size 4 (in 'gather_1')");
    index.data[0] = 2;
    EXPECT_EQ(cuvil_run_bound(bound.get(), nullptr), CUVIL_OK);
    EXPECT_EQ(y.data[0], 20);
}

TEST(BoundCall, WhatCannotStayIsRefused) {
    const ModulePointer scale = load(module_bytes("scale"));
    auto x = counting<float>({4, 4});
    cuvil_value out[2] = {};
    Tensor<float> columns{{4, 4}, {}, {1, 4}};
    cuvil_value in = columns.value();
    in.as.tensor.data = x.data.data();
    EXPECT_EQ(
        bind_error(scale.get(), &in, out, CUVIL_ERROR_SHAPE),
        "input 'x' cannot be bound: it must be row-major without gaps, start at a multiple of its element's size, "
        "and overlap no output");
    EXPECT_EQ(out[0].tag, CUVIL_NONE);
    in = x.value();
    out[0] = x.value(); // over the input
    EXPECT_NE(bind_error(scale.get(), &in, out, CUVIL_ERROR_SHAPE), "");
    Tensor<float> narrow{{4, 3}, std::vector<float>(12)};
    in = narrow.value();
    EXPECT_EQ(bind_error(scale.get(), &in, out, CUVIL_ERROR_SHAPE), "input 'x' has shape [4,3], expected [N,4]");

    const ModulePointer nonzero = load(module_bytes("nonzero"));
    auto numbers = counting<int64_t>({3});
    cuvil_value found[2] = {};
    in = numbers.value();
    EXPECT_EQ(bind_error(nonzero.get(), &in, found, CUVIL_ERROR_TYPE),
              "output 'y' has a size that is known only after the run: it cannot be bound");
    EXPECT_EQ(cuvil_bind(scale.get(), &in, out, nullptr), CUVIL_ERROR_NAME);
}

} // namespace
} // namespace cuvil::test
