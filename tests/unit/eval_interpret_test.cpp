#include "eval/compute.hpp"
#include "eval/interpret.hpp"
#include "ir/parser.hpp"
#include "ops/op_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>

namespace cuvil::evaluation {
namespace {

template <class T> Tensor tensor(DType dtype, std::vector<int64_t> shape, const std::vector<T>& elements) {
    auto [x, data] = new_tensor(dtype, std::move(shape));
    std::ranges::copy(std::as_bytes(std::span(elements)), data);
    return x;
}
Tensor floats(std::vector<int64_t> shape, const std::vector<float>& elements) {
    return tensor(DType::F32, std::move(shape), elements);
}

template <class T> std::vector<T> elements(const Tensor& x) {
    std::vector<T> out(static_cast<size_t>(x.count()));
    if (!out.empty()) std::memcpy(out.data(), x.data, out.size() * sizeof(T));
    return out;
}

Program parsed(const std::string& text) {
    Diagnostics diag;
    auto program = parse(text, "test", builtin_op_table(), diag);
    EXPECT_FALSE(diag.has_errors()) << diag.render();
    return std::move(*program);
}

std::vector<Tensor> run(const std::string& text, const std::vector<std::optional<Tensor>>& inputs) {
    Program program = parsed(text);
    return interpret(program, inputs);
}

std::string failure(const std::string& text, const std::vector<std::optional<Tensor>>& inputs) {
    try {
        run(text, inputs);
    } catch (const InterpretError& error) {
        return error.what();
    }
    return "";
}

TEST(Interpret, RunsNodesAndBindsSizes) {
    auto y = run(R"(
weight "w" : f32[4,2] = [0.5, -1, 2, 1, 0, -0.25, 3, 1]
func @main(%x: f32[N,4]) -> (f32[N,2], i64[1]) {
  %w = weight "w" : f32[4,2]
  %1 = matmul %x, %w
  %2 = relu %1
  %3 = dims {values = [2*N]}
  return %2, %3
}
)",
                 {floats({1, 4}, {1, 2, 3, -1})});
    EXPECT_EQ(y[0].shape, (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{1.5, 0}));
    EXPECT_EQ(elements<int64_t>(y[1]), (std::vector<int64_t>{2}));
}

TEST(Interpret, EmptyTensors) {
    auto y =
        run("func @main(%x: f32[N]) -> f32[1] {\n  %1 = relu %x\n  %2 = reduce_sum %1 {axes = [0]}\n  return %2\n}",
            {floats({0}, {})});
    EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{0}));
}

TEST(Interpret, ListsThatNothingReadsAreNoTensors) {
    auto y = run("func @main(%x: f32[1]) -> f32[1] {\n  %1 = list %x, %x\n  %2 = neg %x\n  return %2\n}",
                 {floats({1}, {1})});
    EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{-1}));
}

TEST(Interpret, DefaultsStandInForInputs) {
    const char* text = "weight \"d\" : f32[2] = [3, 4]\n"
                       "func @main(%x: f32[2], %d: f32[2] default \"d\") -> f32[2] {\n"
                       "  %1 = add %x, %d\n  return %1\n}";
    EXPECT_EQ(elements<float>(run(text, {floats({2}, {1, 1}), std::nullopt})[0]), (std::vector<float>{4, 5}));
    EXPECT_EQ(elements<float>(run(text, {floats({2}, {1, 1}), floats({2}, {0, 0})})[0]), (std::vector<float>{1, 1}));
}

TEST(Interpret, BranchesSeeTheValuesAround) {
    const char* text = R"(
func @main(%c: bool[], %x: f32[2]) -> f32[K] {
  %y = if %c : f32[K] then {
    %1 = neg %x
    return %1
  } else {
    %2 = concat %x, %x {axis = 0}
    return %2
  }
  %3 = relu %y
  return %3
}
)";
    Tensor x = floats({2}, {1, -2});
    EXPECT_EQ(elements<float>(run(text, {tensor<uint8_t>(DType::Bool, {}, {1}), x})[0]), (std::vector<float>{0, 2}));
    EXPECT_EQ(elements<float>(run(text, {tensor<uint8_t>(DType::Bool, {}, {0}), x})[0]),
              (std::vector<float>{1, 0, 1, 0}));
}

constexpr const char* loop = R"(
func @main(%n: i64[], %x: f32[2]) -> (f32[2], f32[K,2]) {
  %go = constant true : bool[]
  %y, %all = loop %n, %go, %x {count = "K"} : f32[2], f32[K,2] body (%i: i64[], %c: bool[], %v: f32[2]) {
    %w = add %v, %x : f32[2]
    return %c, %w, %v
  }
  return %y, %all
}
)";

TEST(Interpret, LoopsCarryAndStack) {
    auto y = run(loop, {tensor<int64_t>(DType::I64, {}, {3}), floats({2}, {1, 2})});
    EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{4, 8}));
    EXPECT_EQ(y[1].shape, (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(elements<float>(y[1]), (std::vector<float>{1, 2, 2, 4, 3, 6}));
}

TEST(Interpret, LoopsThatDoNotTurn) {
    auto y = run(loop, {tensor<int64_t>(DType::I64, {}, {0}), floats({2}, {1, 2})});
    EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{1, 2}));
    EXPECT_EQ(y[1].shape, (std::vector<int64_t>{0, 2}));
}

TEST(Interpret, SizesFromData) {
    auto y = run("func @main(%x: f32[N]) -> i64[1,C] {\n  %1 = nonzero %x {count = \"C\"}\n  return %1\n}",
                 {floats({4}, {0, 1, 0, 2})});
    EXPECT_EQ(y[0].shape, (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(elements<int64_t>(y[0]), (std::vector<int64_t>{1, 3}));
}

TEST(Interpret, FailuresAreSentences) {
    EXPECT_EQ(failure("func @main(%x: f32[2]) -> f32[2] {\n  %1 = relu %x\n  return %1\n}", {floats({3}, {1, 2, 3})}),
              "input 'x' does not have the type f32[2]");
    EXPECT_EQ(
        failure("func @main(%x: f32[N], %y: f32[M]) -> f32[N] {\n"
                "  require {left = [N], right = [M], message = \"sizes {0} and {1} differ\"} loc \"m\" \"the_add\"\n"
                "  %1 = relu %x\n  return %1\n}",
                {floats({1}, {1}), floats({2}, {1, 2})}),
        "the_add: sizes 1 and 2 differ");
    EXPECT_EQ(failure("func @main(%x: f32[2], %i: i64[1]) -> f32[1] {\n  %1 = gather %x, %i\n  return %1\n}",
                      {floats({2}, {1, 2}), tensor<int64_t>(DType::I64, {1}, {2})}),
              "gather: gather does not take these elements, sizes or indices");
}

TEST(Interpret, ShowsResultsAsTheyCome) {
    Program program = parsed("func @main(%x: f32[1]) -> f32[1] {\n  %a = neg %x\n  %b = relu %a\n  return %b\n}");
    std::vector<std::string> seen;
    InterpretOptions options;
    options.seen = [&](const Value& value, const Tensor&) { seen.push_back(value.name()); };
    interpret(program, {floats({1}, {1})}, options);
    EXPECT_EQ(seen, (std::vector<std::string>{"a", "b"}));
}

// What the interpreter runs itself, and what only planning makes.
TEST(Interpret, KnowsAllOps) {
    const std::set<std::string_view> others = {"bitcast", "constant", "dims",   "if",        "identity",
                                               "list",    "loop",     "pack",   "read_size", "relayout",
                                               "require", "reshape",  "return", "view",      "weight"};
    for (const OpDef& op : builtin_ops())
        EXPECT_TRUE(others.contains(op.name) || row_of(op)) << "there is no row for " << op.name;
}

// A list only holds values together: its results have no elements.
TEST(Interpret, PassesOverLists) {
    auto y = run("func @main(%x: f32[1], %y: f32[1]) -> f32[1] {\n  %l = list %x, %y : list<f32[1]>\n"
                 "  %1 = add %x, %y\n  return %1\n}",
                 {floats({1}, {1}), floats({1}, {2})});
    EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{3}));
}

TEST(Interpret, AttentionByItsDefinition) {
    auto y = run("func @main(%q: f32[1,1], %k: f32[1,2], %v: f32[2,1], %m: bool[1,2]) -> f32[1,1] {\n"
                 "  %1 = attention %q, %k, %v, %m\n  return %1\n}",
                 {floats({1, 1}, {1}), floats({1, 2}, {1, 1}), floats({2, 1}, {2, 4}),
                  tensor<uint8_t>(DType::Bool, {1, 2}, {1, 1})});
    EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{3}));
}

TEST(Interpret, Stops) {
    std::atomic<bool> cancel = true;
    InterpretOptions options;
    options.cancel = &cancel;
    Program program = parsed("func @main(%x: f32[1]) -> f32[1] {\n  %a = neg %x\n  return %a\n}");
    EXPECT_THROW(interpret(program, {floats({1}, {1})}, options), Cancelled);
}

} // namespace
} // namespace cuvil::evaluation
