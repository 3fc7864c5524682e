// Broken models are refused with a message: nothing crashes, hangs or comes out as a bug of ours.
#include "import_onnx_writer.hpp"
#include "import_testing.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace cuvil {
namespace {

using namespace onnx_writer;

// A model with some of everything.
std::string rich_model() {
    Graph branch{{node("Slice", {"h", "starts", "ends"}, {"t"})},
                 {},
                 {untyped("t")},
                 {ints("starts", {-3}), ints("ends", {INT64_MAX})}};
    Graph other{{node("Expand", {"h", "big"}, {"e"})}, {}, {untyped("e")}, {ints("big", {2, 4, 1, 1})}};
    Graph body{{node("Identity", {"go"}, {"go_on"}), node("Concat", {"acc", "acc"}, {"next"}, {integer("axis", 0)}),
                node("ReduceSum", {"next"}, {"sum"}, {integer("keepdims", 0)})},
               {value_info("i", I64, {}), value_info("go", Bool, {}), value_info("acc", F32, {""})},
               {untyped("go_on"), untyped("next"), untyped("sum")}};
    std::string scale = function("Scale", {"v"}, {"out"}, {"alpha"},
                                 {node("LeakyRelu", {"v"}, {"out"}, {reference("alpha", 1, "alpha")})});
    Graph g{
        {node("Conv", {"x", "w", "bias"}, {"c"},
              {list("pads", {1, 1, 1, 1}), list("strides", {2, 2}), integer("group", 1)}),
         node("BatchNormalization", {"c", "bias", "bias", "bias", "bias"}, {"n"}, {real("epsilon", 0.1f)}),
         node("MaxPool", {"n"}, {"h"},
              {list("kernel_shape", {3, 2}), list("strides", {2, 2}), integer("ceil_mode", 1)}),
         node("AveragePool", {"h"}, {"h2"}, {list("kernel_shape", {2, 2}), text_attribute("auto_pad", "SAME_LOWER")}),
         node("Pad", {"h2", "pads", "value"}, {"padded"}),
         node("Shape", {"padded"}, {"shape"}),
         node("Gather", {"shape", "zero"}, {"batch"}),
         node("Concat", {"batch", "minus"}, {"to"}, {integer("axis", 0)}),
         node("Reshape", {"padded", "to"}, {"flat"}),
         node("Softmax", {"flat"}, {"soft"}),
         node("Tile", {"bias", "four"}, {"tiled"}),
         node("Split", {"tiled"}, {"p", "q"}, {integer("axis", 0)}),
         node("Transpose", {"h"}, {"tr"}, {list("perm", {3, 2, 1, 0})}),
         node("Gemm", {"m", "m"}, {"gm"}, {real("alpha", 2), integer("transB", 1)}),
         node("Scale", {"gm"}, {"sc"}, {real("alpha", 0.5f)}, "local"),
         node("Greater", {"q", "p"}, {"g"}),
         node("NonZero", {"g"}, {"nz"}),
         node("Cast", {"nz"}, {"nzf"}, {integer("to", F32)}),
         node("Squeeze", {"batch"}, {"b0"}),
         node("Equal", {"b0", "b0"}, {"yes"}),
         node("If", {"cond"}, {"branched"},
              {graph_attribute("then_branch", branch.bytes()), graph_attribute("else_branch", other.bytes())}),
         node("Loop", {"b0", "yes", "bias"}, {"grown", "sums"}, {graph_attribute("body", body.bytes())}),
         node("Constant", {}, {"k"}, {tensor_attribute("value", floats("", {2, 2}, 3))}),
         node("Range", {"r0", "r1", "r2"}, {"range"}),
         node("ConstantOfShape", {"four"}, {"cs"}),
         node("Where", {"g", "p", "q"}, {"wh"}),
         node("Dropout", {"wh"}, {"dr", "mask"})},
        {value_info("x", F32, {"N", 3, 16, "W"}), value_info("cond", Bool, {}), value_info("m", F32, {2, 2})},
        {untyped("soft"), untyped("sc"), untyped("nzf"), untyped("branched"), untyped("grown"), untyped("sums"),
         untyped("k"), untyped("range"), untyped("cs"), untyped("dr"), untyped("mask"),
         value_info("tr", F32, {"", "", 4, "N"})},
        {floats("w", {4, 3, 3, 3}), floats("bias", {4}), ints("pads", {0, 0, 1, 0, 0, -1, 0, 1}),
         tensor("value", F32, {}, raw(std::vector<float>{2})), ints("zero", {0}), ints("minus", {-1}),
         ints("four", {4}), tensor("r0", I64, {}, raw(Ints{3})), tensor("r1", I64, {}, raw(Ints{30})),
         tensor("r2", I64, {}, raw(Ints{4}))}};
    return model(g, 17, 8, {scale});
}

// Anything but a program or a refusal fails the test.
bool is_accepted(const std::string& bytes) {
    try {
        import_bytes(bytes);
        return true;
    } catch (const Refused&) {
        return false;
    }
}

TEST(OnnxHostile, TheModelItselfIsFine) { EXPECT_EQ(refusal(rich_model()), ""); }

TEST(OnnxHostile, CutAtEveryByte) {
    std::string whole = rich_model();
    for (size_t size = 0; size < whole.size(); size++) EXPECT_NO_THROW(is_accepted(whole.substr(0, size))) << size;
}

TEST(OnnxHostile, RandomBytes) {
    std::string whole = rich_model();
    std::mt19937 random(7);
    for (int round = 0; round < 6000; round++) {
        std::string broken = whole;
        for (unsigned i = 0; i <= random() % 4; i++) broken[random() % broken.size()] = static_cast<char>(random());
        EXPECT_NO_THROW(is_accepted(broken)) << round;
    }
}

TEST(OnnxHostile, RandomBitsAndMovedParts) {
    std::string whole = rich_model();
    std::mt19937 random(8);
    for (int round = 0; round < 4000; round++) {
        std::string broken = whole;
        size_t at = random() % broken.size(), from = random() % broken.size(), size = random() % 40;
        if (round % 2 == 0)
            broken[at] = static_cast<char>(broken[at] ^ (1 << random() % 8));
        else
            broken.replace(at, size, whole.substr(from, size));
        EXPECT_NO_THROW(is_accepted(broken)) << round;
    }
}

TEST(OnnxHostile, DeeplyNestedGraphs) {
    std::string inner = Graph{{node("Relu", {"x"}, {"y"})}, {}, {untyped("y")}}.bytes();
    for (int depth = 0; depth < 3000; depth++)
        inner = Graph{{node("If", {"c"}, {"y"},
                            {graph_attribute("then_branch", inner), graph_attribute("else_branch", "")})},
                      {},
                      {untyped("y")}}
                    .bytes();
    Graph g{{node("If", {"c"}, {"y"}, {graph_attribute("then_branch", inner)})},
            {value_info("c", Bool, {}), value_info("x", F32, {1})},
            {untyped("y")}};
    EXPECT_NE(refusal(model(g)).find("graphs are nested more than 64 deep"), std::string::npos);
}

// Each loop is built twice, as its value changes: nested, that would take for ever.
TEST(OnnxHostile, LoopsThatUnfoldWithoutEnd) {
    std::string body = Graph{
        {node("Concat", {"a", "a"}, {"b"}, {integer("axis", 0)}), node("Identity", {"go"}, {"on"})},
        {untyped("i"), untyped("go"), untyped("a")},
        {untyped("on"),
         untyped("b")}}.bytes();
    for (int depth = 0; depth < 40; depth++)
        body = Graph{{node("Loop", {"", "", "a"}, {"b"}, {graph_attribute("body", body)}),
                      node("Identity", {"go"}, {"on"})},
                     {untyped("i"), untyped("go"), untyped("a")},
                     {untyped("on"), untyped("b")}}
                   .bytes();
    Graph g{{node("Loop", {"", "", "x"}, {"y"}, {graph_attribute("body", body)})},
            {value_info("x", F32, {2})},
            {untyped("y")}};
    EXPECT_NO_THROW(is_accepted(model(g)));
}

TEST(OnnxHostile, FunctionsThatCallThemselves) {
    std::string f = function("F", {"v"}, {"out"}, {},
                             {node("F", {"v"}, {"a"}, {}, "local"), node("F", {"a"}, {"out"}, {}, "local")});
    Graph g{{node("F", {"x"}, {"y"}, {}, "local")}, {value_info("x", F32, {2})}, {untyped("y")}};
    EXPECT_NE(refusal(model(g, 17, 8, {f})).find("too-complex"), std::string::npos);
}

// Inputs and outputs have sizes that 64 bits hold; what an operator is made of has not.
TEST(OnnxHostile, TensorsInBetweenThatAreTooLarge) {
    const int64_t length = int64_t{1} << 24;
    Graph g{{node("Attention", {"q", "k", "q"}, {"y"})},
            {value_info("q", F32, {16385, 2, length, 4}), value_info("k", F32, {16385, 2, length, 4})},
            {untyped("y")}};
    EXPECT_NE(refusal(model(g, 23)).find("Attention: a size exceeds 64 bits"), std::string::npos);
}

// Shape arithmetic that doubles with each node.
TEST(OnnxHostile, SizesThatGrowWithoutEnd) {
    Graph doubling{{node("Shape", {"x"}, {"s0"})}, {value_info("x", F32, {"N", "M"})}, {untyped("s200")}};
    Graph powers{{node("Shape", {"x"}, {"q0"}), node("ReduceSum", {"q0"}, {"s0"})},
                 {value_info("x", F32, {"N", "M"})},
                 {untyped("s200")}};
    for (int i = 0; i < 200; i++) {
        std::string from = "s" + std::to_string(i), to = "s" + std::to_string(i + 1);
        doubling.nodes.push_back(node("Concat", {from, from}, {to}, {integer("axis", 0)}));
        powers.nodes.push_back(node("Mul", {from, from}, {to}));
    }
    EXPECT_NO_THROW(is_accepted(model(doubling)));
    EXPECT_NO_THROW(is_accepted(model(powers)));
    Graph squares{{node("Shape", {"x"}, {"s0"})}, {value_info("x", F32, {"N", "M"})}, {untyped("s100")}};
    for (int i = 0; i < 100; i++)
        squares.nodes.push_back(
            node("Mul", {"s" + std::to_string(i), "s" + std::to_string(i)}, {"s" + std::to_string(i + 1)}));
    EXPECT_NO_THROW(is_accepted(model(squares)));
}

TEST(OnnxHostile, HugeSizes) {
    int64_t huge = int64_t{1} << 62;
    auto with = [](const std::string& n, const Names& initializers, const std::vector<Size>& shape) {
        return model({{n}, {value_info("x", F32, shape)}, {untyped("y")}, initializers});
    };
    EXPECT_FALSE(is_accepted(with(node("Relu", {"x"}, {"y"}), {}, {huge, huge, huge})));
    EXPECT_FALSE(is_accepted(with(node("ConstantOfShape", {"s"}, {"y"}), {ints("s", {huge, huge})}, {1})));
    EXPECT_FALSE(is_accepted(with(node("Tile", {"x", "s"}, {"y"}), {ints("s", {huge})}, {8})));
    EXPECT_FALSE(is_accepted(with(node("Range", {"a", "b", "c"}, {"y"}),
                                  {tensor("a", I64, {}, raw(Ints{INT64_MIN})),
                                   tensor("b", I64, {}, raw(Ints{INT64_MAX})), tensor("c", I64, {}, raw(Ints{1}))},
                                  {1})));
    EXPECT_FALSE(is_accepted(with(node("Add", {"x", "w"}, {"y"}), {tensor("w", F32, {huge, 4, 4}, "")}, {1})));
    EXPECT_FALSE(is_accepted(with(node("Add", {"x", "w"}, {"y"}), {tensor("w", F32, {-1, 4}, "")}, {1})));
    EXPECT_FALSE(is_accepted(
        with(node("MaxPool", {"x"}, {"y"}, {list("kernel_shape", {huge, huge}), list("dilations", {huge, huge})}), {},
             {1, 1, 8, 8})));
    EXPECT_FALSE(is_accepted(with(node("SplitToSequence", {"x"}, {"y"}), {}, {int64_t{1000000000000}})));
    EXPECT_FALSE(is_accepted(with(node("Unsqueeze", {"x"}, {"y"}, {list("axes", Ints(100000, 0))}), {}, {1})));
}

TEST(OnnxHostile, HugeWeights) {
    int64_t huge = int64_t{1} << 40;
    Graph g{{node("DeformConv", {"x", "w", "offset"}, {"y"})},
            {value_info("x", F32, {1, 1, 8, 8}), value_info("w", F32, {1, 0, huge, huge}),
             value_info("offset", F32, {1, "", 8, 8})},
            {untyped("y")}};
    EXPECT_NE(refusal(model(g, 19)).find("weights whose sizes are not fixed"), std::string::npos);
    Graph loss{{node("NegativeLogLikelihoodLoss", {"x", "target"}, {"y"})},
               {value_info("x", F32, {1, int64_t{1000000000000}}), value_info("target", I64, {1})},
               {untyped("y")}};
    EXPECT_NO_THROW(is_accepted(model(loss)));
}

TEST(OnnxHostile, NumbersThatNoIntegerHolds) {
    auto refused = [](const std::string& n, const std::string& x, int64_t opset) {
        return refusal(model({{n}, {x, value_info("values", F32, {2})}, {untyped("y")}}, opset));
    };
    for (float value : {1e30f, std::numeric_limits<float>::quiet_NaN()})
        EXPECT_NE(refused(node("Pad", {"x"}, {"y"}, {list("pads", {1, 1}), real("value", value)}),
                          value_info("x", I64, {3}), 10)
                      .find("is not a value of type i64"),
                  std::string::npos);
    EXPECT_EQ(refused(node("Pad", {"x"}, {"y"}, {list("pads", {1, 1}), real("value", 1e30f)}),
                      value_info("x", Bool, {3}), 10),
              "");
    Graph g{{node("OneHot", {"x", "depth", "values"}, {"y"})},
            {value_info("x", I64, {3}), value_info("values", F32, {2})},
            {untyped("y")},
            {tensor("depth", F32, {}, raw(std::vector<float>{1e30f}))}};
    EXPECT_NO_THROW(is_accepted(model(g)));
}

} // namespace
} // namespace cuvil
