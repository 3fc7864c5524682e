// Passes keep what a program computes: random programs, over values that show every liberty taken with floats.
#include "eval/evaluate.hpp"
#include "ir/printer.hpp"
#include "ir/rewriter.hpp"
#include "ops/op_table.hpp"
#include "optimize/pass.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace cuvil {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const std::vector<float> special = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -2.5f, 3e38f, 1e-40f, infinity, -infinity, NAN};

std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::vector<float> floats_of(std::span<const std::byte> bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

class RandomProgram {
public:
    explicit RandomProgram(unsigned seed)
        : random_(seed), program_(builtin_op_table()), main_(program_.add_function("main")),
          rewriter_(program_, main_) {
        for (const char* name : {"x", "y"}) {
            values_.push_back(&main_.body().add_argument(Type::tensor(DType::F32, {2, 1, 3}), name));
            main_.inputs.push_back({name, {}});
        }
        for (int i = 0; i < 25; i++) values_.push_back(&next());
        std::vector<Value*> outputs(values_.end() - 4, values_.end());
        for (size_t i = 0; i < outputs.size(); i++) main_.outputs.push_back({"output_" + std::to_string(i), {}});
        rewriter_.create("return", outputs);
    }

    Program take() { return std::move(program_); }

private:
    size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
    Value* any() { return values_[values_.size() - 1 - below(std::min<size_t>(values_.size(), 8))]; }

    Value& next() {
        switch (below(7)) {
        case 0: return unary();
        case 1: return binary();
        case 2: return with_constant();
        case 3: return moved_and_back();
        case 4: return nothing();
        case 5: return reduced_to_itself();
        default: return broadcast_and_reduced();
        }
    }

    Value& unary() {
        static constexpr const char* ops[] = {"relu", "neg", "abs", "floor", "round", "tanh"};
        const char* op = ops[below(std::size(ops))];
        Value& once = rewriter_.make(op, {any()});
        return below(2) ? once : rewriter_.make(op, {&once});
    }

    Value& binary() {
        static constexpr const char* ops[] = {"add", "sub", "mul", "div", "minimum", "maximum"};
        return rewriter_.make(ops[below(std::size(ops))], {any(), any()});
    }

    Value& with_constant() {
        static constexpr const char* ops[] = {"add", "sub", "mul", "div"};
        Value& scalar = rewriter_.scalar_constant(DType::F32, special[below(4)]);
        Value& constant = rewriter_.make("broadcast", {&scalar}, {{"shape", Shape{2, 1, 3}}});
        const char* op = ops[below(std::size(ops))];
        return below(2) ? rewriter_.make(op, {any(), &constant}) : rewriter_.make(op, {&constant, any()});
    }

    Value& moved_and_back() {
        std::vector<int64_t> first = {0, 1, 2}, inverse(3);
        std::shuffle(first.begin(), first.end(), random_);
        for (size_t i = 0; i < 3; i++) inverse[static_cast<size_t>(first[i])] = static_cast<int64_t>(i);
        Value* moved = &rewriter_.make("transpose", {any()}, {{"perm", first}});
        if (below(2)) {
            Value& scalar = rewriter_.scalar_constant(DType::F32, special[below(4)]);
            Value& constant = rewriter_.make("broadcast", {&scalar}, {{"shape", moved->type().shape()}});
            moved = &rewriter_.make("add", {moved, &constant});
        }
        if (below(2)) return rewriter_.make("transpose", {moved}, {{"perm", inverse}});
        Value& flat = rewriter_.make("reshape", {moved}, {{"shape", Shape{6}}});
        return rewriter_.make("reshape", {&flat}, {{"shape", Shape{2, 1, 3}}});
    }

    Value& nothing() {
        switch (below(4)) {
        case 0: return rewriter_.make("identity", {any()});
        case 1: return rewriter_.make("cast", {any()}, {{"to", DType::F32}});
        case 2: return rewriter_.make("concat", {any()}, {{"axis", int64_t{0}}});
        default: return rewriter_.make("pad", {any()}, {{"low", Shape{0, 0, 0}}, {"high", Shape{0, 0, 0}}});
        }
    }

    // Axis 1 has one element.
    Value& reduced_to_itself() {
        static constexpr const char* ops[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"};
        size_t i = below(std::size(ops) + 2);
        if (i >= std::size(ops))
            return rewriter_.make(i % 2 ? "softmax" : "log_softmax", {any()}, {{"axis", int64_t{1}}});
        return rewriter_.make(ops[i], {any()}, {{"axes", std::vector<int64_t>{1}}});
    }

    Value& broadcast_and_reduced() {
        Value& more = rewriter_.make("broadcast", {any()}, {{"shape", Shape{2, 2, 3}}});
        Value& even_more = rewriter_.make("broadcast", {&more}, {{"shape", Shape{1, 2, 2, 3}}});
        Value& most = rewriter_.make("reduce_max", {&even_more}, {{"axes", std::vector<int64_t>{2}}});
        return rewriter_.make("reshape", {&most}, {{"shape", Shape{2, 1, 3}}});
    }

    std::mt19937 random_;
    Program program_;
    FuncIR& main_;
    Rewriter rewriter_;
    std::vector<Value*> values_;
};

// The outputs for given inputs, node by node.
std::vector<std::vector<float>> outputs_of(Program& program, const std::vector<std::string>& inputs) {
    FuncIR& main = program.main();
    Rewriter rewriter(program, main);
    rewriter.insert_before(*main.body().nodes().front());
    for (size_t i = 0; i < inputs.size(); i++) {
        Value& input = *main.body().arguments()[i];
        rewriter.replace_all_uses(input, rewriter.constant(input.type(), inputs[i]));
    }
    for (auto at = main.body().nodes().begin(); at != main.body().nodes().end();) {
        OpNode& node = **at++;
        if (node.op() == "return" || node.def().has(source)) continue;
        auto result = evaluate(program, node);
        EXPECT_TRUE(result) << print(node);
        rewriter.insert_before(node);
        rewriter.replace(node, rewriter.constant(node.result().type(), std::move(result->at(0))));
    }
    std::vector<std::vector<float>> outputs;
    for (const Value* value : main.body().terminator()->operands())
        outputs.push_back(floats_of(*constant_bytes(program, *value)));
    return outputs;
}

// A NaN is as good as another.
bool same_bits(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0; }

TEST(Passes, KeepEveryBitOfRandomPrograms) {
    for (unsigned seed = 0; seed < 300; seed++) {
        std::mt19937 random(seed);
        std::vector<std::string> inputs;
        for (int i = 0; i < 2; i++) {
            std::vector<float> values(6);
            for (float& v : values) v = special[std::uniform_int_distribution<size_t>(0, special.size() - 1)(random)];
            inputs.push_back(bytes_of(values));
        }
        Program plain = RandomProgram(seed).take(), optimized = RandomProgram(seed).take();
        std::string before = print(plain);
        Diagnostics diag;
        run_passes(optimized, {}, evaluate, diag);
        std::string after = print(optimized);
        auto expected = outputs_of(plain, inputs), actual = outputs_of(optimized, inputs);
        ASSERT_EQ(expected.size(), actual.size());
        for (size_t i = 0; i < expected.size(); i++)
            for (size_t k = 0; k < 6; k++)
                ASSERT_TRUE(same_bits(expected[i][k], actual[i][k]))
                    << "seed " << seed << ", output " << i << ": " << expected[i][k] << " became " << actual[i][k]
                    << "\n"
                    << before << after;
    }
}

std::vector<float> random_floats(size_t count, std::mt19937& random, float low, float high) {
    std::vector<float> values(count);
    for (float& v : values) v = std::uniform_real_distribution<float>(low, high)(random);
    return values;
}

// conv + batch_norm of weights that lie in the table, as an importer makes them.
Program convolution_with_batch_norm(std::mt19937& random) {
    Program program(builtin_op_table());
    FuncIR& main = program.add_function("main");
    Value& x = main.body().add_argument(Type::tensor(DType::F32, {1, 3, 5, 7}), "x");
    main.inputs.push_back({"x", {}});
    main.outputs.push_back({"y", {}});
    Rewriter rewriter(program, main);
    auto weight = [&](const char* name, Shape shape, float low, float high) -> Value& {
        auto count = static_cast<size_t>(*element_count(shape).constant());
        std::string bytes = bytes_of(random_floats(count, random, low, high));
        return rewriter.weight(program.add_weight(name, Type::tensor(DType::F32, std::move(shape)), std::move(bytes)));
    };
    Value& conv = rewriter.make("conv2d", {&x, &weight("conv1.weight", {66, 3, 3, 3}, -1, 1), nullptr});
    Value& norm =
        rewriter.make("batch_norm", {&conv, &weight("bn1.weight", {66}, -2, 2), &weight("bn1.bias", {66}, -1, 1),
                                     &weight("bn1.mean", {66}, -1, 1), &weight("bn1.var", {66}, 0.1f, 2)});
    rewriter.create("return", {&norm});
    return program;
}

TEST(FuseOperators, FoldsBatchNormToWithinRounding) {
    std::mt19937 first(1), second(1), random(2);
    Program decomposed = convolution_with_batch_norm(first), fused = convolution_with_batch_norm(second);
    Diagnostics diag;
    run_passes(decomposed, {.disabled_passes = {"FuseOperatorsPass"}}, evaluate, diag);
    run_passes(fused, {}, evaluate, diag);

    std::vector<std::string> names;
    for (const auto& [name, weight] : fused.weights()) names.push_back(name);
    EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight/folded", "conv1.weight/folded_bias"}));
    EXPECT_EQ(fused.main().body().nodes().size(), 4u);

    std::vector<std::string> inputs = {bytes_of(random_floats(3 * 5 * 7, random, -1, 1))};
    auto expected = outputs_of(decomposed, inputs)[0], actual = outputs_of(fused, inputs)[0];
    for (size_t i = 0; i < expected.size(); i++) ASSERT_NEAR(expected[i], actual[i], 5e-5);
}

} // namespace
} // namespace cuvil
