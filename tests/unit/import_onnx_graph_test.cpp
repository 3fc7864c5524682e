// Structure: names, inputs and outputs, order, initialisers, subgraphs and functions.
#include "import_onnx_writer.hpp"
#include "import_testing.hpp"

#include <gtest/gtest.h>

namespace cuvil {
namespace {

using namespace onnx_writer;

TEST(OnnxGraph, BuildsNodesInDependencyOrder) {
    Graph g{{node("Relu", {"h"}, {"y"}), node("Add", {"x", "x"}, {"h"})},
            {value_info("x", F32, {"N", 3})},
            {value_info("y", F32, {"N", 3})}};
    EXPECT_EQ(main_of(model(g)), R"(
func @main(%x: f32[N,3]) -> (f32[N,3] "y") {
  %h = add %x, %x : f32[N,3]
  %y = relu %h : f32[N,3]
  return %y
}
)");
}

TEST(OnnxGraph, LeavesOutWhatNoOutputNeeds) {
    Graph g{{node("Relu", {"x"}, {"y"}), node("NoSuchOperator", {"x"}, {"z"})},
            {value_info("x", F32, {2})},
            {value_info("y", F32, {2})},
            {floats("unused", {1000})}};
    Program program = import_bytes(model(g));
    EXPECT_EQ(program.main().body().nodes().size(), 2u);
    EXPECT_TRUE(program.weights().empty());
}

TEST(OnnxGraph, KeepsNamesAndPlaces) {
    std::string odd = "a/b \"c\"\n*/";
    Graph g{
        {node("Relu", {odd}, {"out:\xc3\xa9"})}, {value_info(odd, F32, {2})}, {value_info("out:\xc3\xa9", F32, {2})}};
    Program program = import_bytes(model(g), {}, "folder/net.onnx");
    EXPECT_EQ(program.name, "net");
    EXPECT_EQ(program.metadata.at("opset"), "17");
    EXPECT_EQ(program.main().inputs[0].name, odd);
    EXPECT_EQ(program.main().outputs[0].name, "out:\xc3\xa9");
    const OpNode& relu = *program.main().body().nodes().front();
    EXPECT_EQ(relu.location(), (Location{"net.onnx", "make_out:\xc3\xa9"}));
    EXPECT_EQ(relu.result().name(), "out:\xc3\xa9");
}

TEST(OnnxGraph, PassesInputsAndConstantsThrough) {
    Graph g{{node("Identity", {"x"}, {"x2"})},
            {value_info("x", F32, {2}), value_info("unused", F32, {"M"})},
            {value_info("k", F32, {1}), value_info("x2", F32, {2}), value_info("x", F32, {2})},
            {floats("k", {1}, 1.5f)}};
    EXPECT_EQ(main_of(model(g)), R"(
func @main(%x: f32[2], %unused: f32[M]) -> (f32[1] "k", f32[2] "x2", f32[2] "x") {
  %k = constant [1.5] : f32[1]
  return %k, %x, %x
}
)");
}

TEST(OnnxGraph, SymbolsAreSharedByName) {
    Graph g{{node("Add", {"x", "y"}, {"z"})},
            {value_info("x", F32, {"batch size", ""}), value_info("y", F32, {"batch size", 1})},
            {untyped("z")}};
    EXPECT_EQ(main_of(model(g)), R"(
func @main(%x: f32[batch_size,x_1], %y: f32[batch_size,1]) -> (f32[batch_size,x_1] "z") {
  %1 = broadcast %y {shape = [batch_size,x_1]} : f32[batch_size,x_1]
  %z = add %x, %1 : f32[batch_size,x_1]
  return %z
}
)");
    EXPECT_NE(main_of(model(g), {.input_shapes = {{"x", {4, -1}}}}).find("%x: f32[4,x_1], %y: f32[4,1]"),
              std::string::npos);
}

TEST(OnnxGraph, LargeInitializersStayInTheModel) {
    std::string bytes = model(
        {{node("Add", {"x", "w"}, {"y"})}, {value_info("x", F32, {100})}, {untyped("y")}, {floats("w", {100}, 3)}});
    Program program = import_bytes(bytes);
    const Weight& weight = program.weights().at("w");
    EXPECT_EQ(weight.type, Type::tensor(DType::F32, {100}));
    EXPECT_EQ(weight.bytes.size(), 400u);
    EXPECT_NE(weight.storage, nullptr);
}

TEST(OnnxGraph, InitializersThatAreInputsAreDefaults) {
    Graph g{{node("Add", {"x", "d"}, {"y"})},
            {value_info("x", F32, {2}), value_info("d", F32, {2})},
            {untyped("y")},
            {floats("d", {2}, 3)}};
    Program program = import_bytes(model(g));
    ASSERT_EQ(program.main().inputs.size(), 2u);
    EXPECT_EQ(program.main().inputs[1].default_value, "d");
    EXPECT_TRUE(program.weights().contains("d"));
    // Before IR version 4 all initialisers had to be inputs, and are constants.
    EXPECT_EQ(import_bytes(model(g, 8, 3)).main().inputs.size(), 1u);
}

TEST(OnnxGraph, BranchesSeeTheValuesAround) {
    Graph then_branch{{node("Mul", {"h", "w"}, {"t"})}, {}, {untyped("t")}};
    Graph else_branch{
        {node("Concat", {"h", "k"}, {"e"}, {integer("axis", 0)})}, {}, {untyped("e")}, {floats("k", {1})}};
    Graph g{{node("Neg", {"x"}, {"h"}), node("If", {"c"}, {"y"},
                                             {graph_attribute("then_branch", then_branch.bytes()),
                                              graph_attribute("else_branch", else_branch.bytes())})},
            {value_info("x", F32, {3}), value_info("c", Bool, {})},
            {untyped("y")},
            {floats("w", {3}, 2)}};
    EXPECT_EQ(main_of(model(g)), R"(
func @main(%x: f32[3], %c: bool[]) -> (f32[if_size] "y") {
  %w = constant [2, 2, 2] : f32[3]
  %h = neg %x : f32[3]
  %y = if %c : f32[if_size] then {
    %t = mul %h, %w : f32[3]
    return %t
  } else {
    %k = constant [1] : f32[1]
    %e = concat %h, %k {axis = 0} : f32[4]
    return %e
  }
  return %y
}
)");
}

TEST(OnnxGraph, AKnownConditionLeavesOneBranch) {
    Graph then_branch{{node("Relu", {"x"}, {"t"})}, {}, {untyped("t")}};
    Graph else_branch{{node("Unsqueeze", {"x", "axes"}, {"e"})}, {}, {untyped("e")}, {ints("axes", {0})}};
    Graph g{{node("Shape", {"x"}, {"s"}), node("Gather", {"s", "i"}, {"n"}), node("Equal", {"n", "three"}, {"c"}),
             node("If", {"c"}, {"y"},
                  {graph_attribute("then_branch", then_branch.bytes()),
                   graph_attribute("else_branch", else_branch.bytes())})},
            {value_info("x", F32, {"N", 3})},
            {untyped("y")},
            {tensor("i", I64, {}, raw(Ints{1})), tensor("three", I64, {}, raw(Ints{3}))}};
    EXPECT_EQ(main_of(model(g)).find(" if "), std::string::npos);
    EXPECT_NE(main_of(model(g)).find("%t = relu %x : f32[N,3]"), std::string::npos);
}

// acc grows by one element in each round, and each round's sum is stacked.
TEST(OnnxGraph, ALoopCarriesSizesThatChange) {
    Graph body{{node("Identity", {"cond"}, {"go_on"}), node("Concat", {"acc", "x"}, {"next"}, {integer("axis", 0)}),
                node("ReduceSum", {"next"}, {"sum"}, {integer("keepdims", 0)})},
               {value_info("i", I64, {}), value_info("cond", Bool, {}), value_info("acc", F32, {""})},
               {untyped("go_on"), untyped("next"), untyped("sum")}};
    Graph g{{node("Loop", {"trips", "", "start"}, {"all", "sums"}, {graph_attribute("body", body.bytes())})},
            {value_info("x", F32, {1}), value_info("trips", I64, {})},
            {untyped("all"), untyped("sums")},
            {floats("start", {2}, 0)}};
    EXPECT_EQ(main_of(model(g)), R"(
func @main(%x: f32[1], %trips: i64[]) -> (f32[loop_size] "all", f32[trips_1] "sums") {
  %start = constant [0, 0] : f32[2]
  %all, %sums = loop %trips, _, %start {count = "trips_1"} : f32[loop_size], f32[trips_1] body (%i: i64[], %cond: bool[], %acc: f32[carried]) {
    %next = concat %acc, %x {axis = 0} : f32[carried + 1]
    %1 = reduce_sum %next {axes = [0]} : f32[1]
    %sum = reshape %1 {shape = []} : f32[]
    return %cond, %next, %sum
  }
  return %all, %sums
}
)");
}

TEST(OnnxGraph, FunctionsAreBuiltInPlace) {
    std::string scale = function(
        "Scale", {"v", "bias"}, {"out"}, {"alpha"},
        {node("LeakyRelu", {"v"}, {"r"}, {reference("alpha", 1, "alpha")}), node("Clip", {"r", "bias"}, {"out"})});
    Graph g{{node("Scale", {"x"}, {"y"}, {real("alpha", 0.5f)}, "local")}, {value_info("x", F32, {2})}, {untyped("y")}};
    Program program = import_bytes(model(g, 17, 8, {scale}));
    const OpNode& first = *program.main().body().nodes().front();
    EXPECT_EQ(first.location().name, "make_y/make_r");
    EXPECT_NE(print(program.main()).find("constant 0.5 : f32[]"), std::string::npos);
}

} // namespace
} // namespace cuvil
