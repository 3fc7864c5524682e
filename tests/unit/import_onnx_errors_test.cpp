// What is said about models that cannot be imported: whole messages.
#include "import_onnx_writer.hpp"
#include "import_testing.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace cuvil {
namespace {

using namespace onnx_writer;
namespace fs = std::filesystem;

std::string one(const std::string& node, const std::vector<Size>& shape = {2, 3}, const Names& initializers = {},
                int64_t opset = 17) {
    return refusal(model({{node}, {value_info("x", F32, shape)}, {untyped("y")}, initializers}, opset));
}

TEST(OnnxErrors, UnsupportedOperatorsAllAtOnce) {
    Graph g{{node("Foo", {"x"}, {"a"}, {}, "x.y"), node("TfIdfVectorizer", {"a"}, {"b"}),
             node("Foo", {"b"}, {"c"}, {}, "x.y"), node("Foo", {"c"}, {"d"}, {}, "x.y"),
             node("Foo", {"d"}, {"e"}, {}, "x.y"), node("SoftMax", {"e"}, {"y"}),
             node("LessOrEqual", {"x", "x"}, {"z"})},
            {value_info("x", F32, {2})},
            {untyped("y"), untyped("z")}};
    EXPECT_EQ(refusal(model(g, 11)), R"(
error[unsupported-op]: operator "Foo" (domain "x.y", not imported) is not supported
  --> model.onnx, node "make_a"
note: also "make_c", "make_d" and 1 more
help: `cuvil ops` lists the operators that there are: replace it by some of them before the export
error[unsupported-op]: operator "TfIdfVectorizer" (domain "ai.onnx", opset 11) is not supported
  --> model.onnx, node "make_b"
help: `cuvil ops` lists the operators that there are: replace it by some of them before the export
error[unsupported-op]: operator "SoftMax" (domain "ai.onnx", opset 11) is not supported
  --> model.onnx, node "make_y"
help: did you mean "Softmax"?
error[unsupported-op]: operator "LessOrEqual" (domain "ai.onnx", opset 11) is not supported
  --> model.onnx, node "make_z"
help: it is supported in opset 12 and newer
)");
}

TEST(OnnxErrors, IndependentFaultsAreAllFoundAndDependentOnesAreNot) {
    Graph g{{node("MatMul", {"x", "w"}, {"a"}), node("Relu", {"a"}, {"b"}), node("Add", {"a", "b"}, {"y"}),
             node("Concat", {"x", "x"}, {"z"}, {integer("axis", 7)})},
            {value_info("x", F32, {2, 3})},
            {untyped("y"), untyped("z")},
            {floats("w", {4, 5})}};
    EXPECT_EQ(refusal(model(g)), R"(
error[shape-mismatch]: matmul: inner dimensions differ, 3 and 4
  --> model.onnx, node "make_a"
   |  "a" = MatMul "x", "w" : f32[2,3] x f32[4,5]
note: "w" is an initializer
error[bad-attribute]: Concat: axis 7 is out of range for rank 2
  --> model.onnx, node "make_z"
   |  "z" = Concat "x", "x" : f32[2,3] x f32[2,3]
)");
}

TEST(OnnxErrors, Attributes) {
    EXPECT_EQ(one(node("Concat", {"x", "x"}, {"y"})), R"(
error[bad-attribute]: Concat: attribute "axis" is missing
  --> model.onnx, node "make_y"
   |  "y" = Concat "x", "x" : f32[2,3] x f32[2,3]
)");
    EXPECT_EQ(one(node("Softmax", {"x"}, {"y"}, {real("axis", 1)})), R"(
error[bad-attribute]: Softmax: attribute "axis" is a float, expected an integer
  --> model.onnx, node "make_y"
   |  "y" = Softmax "x" : f32[2,3]
)");
    EXPECT_EQ(one(node("Relu", {"x"}, {"y"}, {integer("slope", 1)})), R"(
error[bad-attribute]: Relu: it has no attribute "slope" in opset 17
  --> model.onnx, node "make_y"
   |  "y" = Relu "x" : f32[2,3]
)");
    EXPECT_EQ(
        one(node("Pad", {"x", "p"}, {"y"}, {text_attribute("mode", "mirror")}), {2, 3}, {ints("p", {1, 1, 1, 1})}), R"(
error[unsupported-op]: operator "Pad" (domain "ai.onnx", opset 17) is not supported: mode "mirror"
  --> model.onnx, node "make_y"
   |  "y" = Pad "x", "p" : f32[2,3] x i64[4]
)");
    EXPECT_EQ(one(node("Relu", {"x", "x"}, {"y"})), R"(
error[bad-node]: Relu: it has 2 inputs, expected 1
  --> model.onnx, node "make_y"
   |  "y" = Relu "x", "x" : f32[2,3] x f32[2,3]
)");
}

TEST(OnnxErrors, ShapesThatDependOnData) {
    Graph g{
        {node("Reshape", {"x", "s"}, {"y"})}, {value_info("x", F32, {6}), value_info("s", I64, {"K"})}, {untyped("y")}};
    EXPECT_EQ(refusal(model(g)), R"(
error[data-dependent-shape]: Reshape: the rank of the result depends on the size of i64[K]
  --> model.onnx, node "make_y"
   |  "y" = Reshape "x", "s" : f32[6] x i64[K]
help: fix the sizes of the inputs when compiling
)");
}

TEST(OnnxErrors, ContradictoryShapes) {
    Graph g{{node("Relu", {"x"}, {"y"})}, {value_info("x", F32, {"N", 3})}, {value_info("y", F32, {"N", 4})}};
    EXPECT_EQ(refusal(model(g)), R"(
error[contradictory-shapes]: output "y" is declared with shape [N,4], but is f32[N,3]
  --> model.onnx, node "make_y"
)");
    g.outputs = {value_info("y", I64, {"N", 3})};
    EXPECT_EQ(refusal(model(g)), R"(
error[contradictory-types]: output "y" is declared as a tensor of i64, but is f32[N,3]
  --> model.onnx, node "make_y"
)");
    g.nodes.clear();
    g.outputs = {value_info("x", F32, {"N", 4})};
    EXPECT_EQ(refusal(model(g)), R"(
error[contradictory-shapes]: output "x" is declared with shape [N,4], but is f32[N,3]
  --> model.onnx
)");
}

TEST(OnnxErrors, ContradictoryShapesBetweenNodes) {
    Graph g{{node("Relu", {"x"}, {"h"}), node("Relu", {"h"}, {"y"})}, {value_info("x", F32, {"N", 3})}, {untyped("y")}};
    g.values = {value_info("h", F32, {"N", 4})};
    EXPECT_EQ(refusal(model(g)), R"(
error[contradictory-shapes]: "h" is declared with shape [N,4], but is f32[N,3]
  --> model.onnx, node "make_h"
)");
    // What may be so is not taken for granted either.
    g.values = {value_info("h", F32, {1, ""})};
    Program program = import_bytes(model(g));
    EXPECT_EQ(program.main().body().terminator()->operand(0)->type().text(), "f32[N,3]");
}

TEST(OnnxErrors, BroadcastMismatch) {
    Graph g{{node("Add", {"a", "b"}, {"y"})},
            {value_info("a", F32, {"N", 3}), value_info("b", F32, {2, "N", 4})},
            {untyped("y")}};
    EXPECT_EQ(refusal(model(g)), R"(
error[shape-mismatch]: Add: Broadcast mismatch at axis -1: [2,N,4] and [N,3]
  --> model.onnx, node "make_y"
   |  "y" = Add "a", "b" : f32[N,3] x f32[2,N,4]
)");
    g.nodes = {node("PRelu", {"a", "b"}, {"y"})};
    g.inputs[1] = value_info("b", F32, {4});
    EXPECT_EQ(refusal(model(g)), R"(
error[shape-mismatch]: PRelu: Broadcast mismatch at axis -1: [4] and [N,3]
  --> model.onnx, node "make_y"
   |  "y" = PRelu "a", "b" : f32[N,3] x f32[4]
)");
}

TEST(OnnxErrors, Names) {
    Graph g{{node("Relu", {"x"}, {"y"}), node("Neg", {"x"}, {"y"}), node("Abs", {"nowhere"}, {"z"})},
            {value_info("x", F32, {2}), value_info("x", F32, {2})},
            {untyped("y"), untyped("z"), untyped("q")}};
    EXPECT_EQ(refusal(model(g)), R"(
error[duplicate-name]: two inputs have the name "x"
  --> model.onnx
error[duplicate-name]: "y" is defined twice
  --> model.onnx, node "make_y"
error[undefined-value]: "nowhere" is not defined: no input, initializer or node output has this name
  --> model.onnx, node "make_z"
error[undefined-value]: "q" is not defined: no input, initializer or node output has this name
  --> model.onnx
)");
    EXPECT_EQ(refusal(model({{}, {value_info("x", F32, {2})}, {}})), R"(
error[no-outputs]: the model has no outputs
  --> model.onnx
)");
}

TEST(OnnxErrors, InputsAndOutputsWithoutNames) {
    Graph g{{node("Relu", {"x"}, {"y"})},
            {value_info("", F32, {2}), value_info("x", F32, {2})},
            {untyped("y"), untyped("")}};
    EXPECT_EQ(refusal(model(g)), R"(
error[malformed-model]: input 0 of the model has no name
  --> model.onnx
error[malformed-model]: output 1 of the model has no name
  --> model.onnx
)");
}

TEST(OnnxErrors, Cycles) {
    Graph g{{node("Add", {"x", "c"}, {"a"}), node("Relu", {"a"}, {"b"}), node("Neg", {"b"}, {"c"}),
             node("Abs", {"c"}, {"y"})},
            {value_info("x", F32, {2})},
            {untyped("y")}};
    EXPECT_EQ(refusal(model(g)), R"(
error[cycle]: the graph has a cycle of 3 nodes
  --> model.onnx, node "make_b"
note: the cycle is "make_b" -> "make_c" -> "make_a"
)");
}

TEST(OnnxErrors, Opsets) {
    EXPECT_EQ(one(node("Relu", {"x"}, {"y"}), {2}, {}, 0), R"(
error[unsupported-opset]: operator set 0 is older than 1
  --> model.onnx
help: onnx.version_converter can convert the model
)");
    EXPECT_EQ(one(node("Relu", {"x"}, {"y"}), {2}, {}, 5), R"(
error[unsupported-op]: operator "Relu" (domain "ai.onnx", opset 5) is not supported
  --> model.onnx, node "make_y"
help: it is supported in opset 6 and newer
)");
    EXPECT_EQ(one(node("Relu", {"x"}, {"y"}), {2}, {}, 99), R"(
error[unsupported-opset]: operator set 99 is newer than 28
  --> model.onnx
help: export the model for an older operator set, or use a newer Cuvil
)");
}

TEST(OnnxErrors, InputShapes) {
    std::string bytes = model({{node("Relu", {"x"}, {"y"})}, {value_info("x", F32, {"N", 3})}, {untyped("y")}});
    EXPECT_EQ(refusal(bytes, {.input_shapes = {{"X", {1}}}}), R"(
error[input-shape]: the model has no input "X"
  --> model.onnx
)");
    EXPECT_EQ(refusal(bytes, {.input_shapes = {{"x", {1, 4}}}}), R"(
error[input-shape]: axis 1 of input "x" has size 3, not 4
  --> model.onnx
)");
}

TEST(OnnxErrors, WordsForSizes) {
    std::string bytes = model({{node("Relu", {"x"}, {"y"})}, {value_info("x", F32, {"N", "M"})}, {untyped("y")}});
    EXPECT_EQ(refusal(bytes, {.dynamic_shapes = {{"x", {"batch", "4"}}}}), "");
    for (std::string word : {"-1", "99999999999999999999", "", "4.5", "a b", "N+1", "1x"})
        EXPECT_EQ(refusal(bytes, {.dynamic_shapes = {{"x", {"batch", word}}}}),
                  "\nerror[input-shape]: axis 1 of input \"x\": \"" + word +
                      "\" is no name for a size\n  --> model.onnx\nhelp: give a number, or a word for a size that is "
                      "open\n");
}

TEST(OnnxErrors, InputsWhoseRankNobodySays) {
    std::string unknown, tensor_type, type;
    Writer(tensor_type).add_int32(1, F32);
    Writer(type).add_message(1, tensor_type);
    Writer(unknown).add_string(1, "u");
    Writer(unknown).add_message(2, type);
    std::string expected = R"(
error[unknown-rank]: the shape of input "u" is not known
  --> model.onnx
help: give its sizes: --input-shape u:2x3 or --dynamic u:N,3 with as many as it has, in Python input_shapes or dynamic_shapes
)";
    EXPECT_EQ(refusal(model({{}, {unknown}, {untyped("u")}})), expected);
    std::string unused = model({{node("Relu", {"x"}, {"y"})}, {value_info("x", F32, {2}), unknown}, {untyped("y")}});
    EXPECT_EQ(refusal(unused), expected);
    EXPECT_EQ(refusal(unused, {.input_shapes = {{"u", {2, 3}}}}), "");
}

TEST(OnnxErrors, Equations) {
    for (const char* equation : {"......->", "...i...->", "......", "i...->......"})
        EXPECT_NE(one(node("Einsum", {"x"}, {"y"}, {text_attribute("equation", equation)}), {2, 2, 2, 2, 2, 2})
                      .find("bad-attribute"),
                  std::string::npos)
            << equation;
}

TEST(OnnxErrors, Files) {
    Diagnostics diag;
    auto open = [&](const fs::path& path) {
        Diagnostics own;
        try {
            import_model({.path = path}, {}, builtin_op_table(), own);
            return std::string();
        } catch (const Refused& refused) {
            return std::string(refused.what());
        }
    };
    EXPECT_EQ(open("/nowhere/model.onnx"), "error[file-not-found]: there is no file \"/nowhere/model.onnx\"\n");
    EXPECT_EQ(open("/"), "error[is-a-directory]: \"/\" is a directory\n");
    EXPECT_EQ(refusal("import torch\n"), R"(
error[not-a-model]: this is a text file, not an ONNX model
  --> model.onnx
)");
    EXPECT_EQ(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), R"(
error[not-a-model]: this is a Git LFS pointer, not the model
  --> model.onnx
help: fetch the file itself with `git lfs pull`
)");
    std::string bytes = model({{node("Relu", {"x"}, {"y"})}, {value_info("x", F32, {2})}, {untyped("y")}});
    EXPECT_EQ(refusal(bytes.substr(0, 40)), R"(
error[truncated-model]: the model is cut off after 40 bytes: it ends in the middle of a field
  --> model.onnx
help: copy or download the file again
)");
}

class OnnxExternalData : public testing::Test {
protected:
    void SetUp() override {
        outside_ = fs::path(testing::TempDir()) / ("external_" + std::to_string(getpid()));
        folder_ = outside_ / "model";
        fs::create_directories(folder_ / "data");
        std::ofstream(folder_ / "data" / "w.bin", std::ios::binary)
            << std::string(4, 'x') << raw(std::vector<float>(100, 7));
        std::ofstream(outside_ / "secret.bin", std::ios::binary) << std::string(4000, 's');
        fs::create_symlink(outside_ / "secret.bin", folder_ / "link.bin");
    }
    void TearDown() override { fs::remove_all(outside_); }

    static std::string with(const std::vector<std::pair<std::string, std::string>>& entries) {
        return model({{node("Identity", {"w"}, {"y"})}, {}, {untyped("y")}, {external("w", {100}, entries)}});
    }
    std::string refused(const std::vector<std::pair<std::string, std::string>>& entries) {
        std::string text = refusal(with(entries), {}, folder_ / "model.onnx");
        return text.substr(0, text.find("\n  -->"));
    }

    fs::path outside_, folder_;
};

TEST_F(OnnxExternalData, IsMappedFromBesideTheModel) {
    Program program = import_bytes(with({{"location", "data/w.bin"}, {"offset", "4"}, {"length", "400"}}), {},
                                   folder_ / "model.onnx");
    const Weight& weight = program.weights().at("w");
    float first = 0;
    std::memcpy(&first, weight.bytes.data(), sizeof first);
    EXPECT_EQ(first, 7);
    EXPECT_EQ(weight.bytes.size(), 400u);
}

TEST_F(OnnxExternalData, StaysInTheModelsFolder) {
    std::string escape = "\nerror[external-data]: the file of external data ";
    EXPECT_EQ(refused({{"location", "../secret.bin"}}),
              escape + "\"../secret.bin\" is not a path inside the model's folder");
    EXPECT_EQ(refused({{"location", "data/../../secret.bin"}}),
              escape + "\"data/../../secret.bin\" is not a path inside the model's folder");
    EXPECT_EQ(refused({{"location", "/etc/passwd"}}),
              escape + "\"/etc/passwd\" is not a path inside the model's folder");
    EXPECT_EQ(refused({{"location", ""}}), escape + "\"\" is not a path inside the model's folder");
    EXPECT_EQ(refused({{"location", "link.bin"}}),
              escape + "\"link.bin\" is a link that leads out of the model's folder");
    EXPECT_EQ(refused({{"location", "data"}}), escape + "\"data\" cannot be read: Is a directory");
    EXPECT_EQ(refused({{"location", "nothing.bin"}}),
              escape + "\"nothing.bin\" cannot be read: No such file or directory");
}

TEST_F(OnnxExternalData, AFileThatIsMissingIsOneError) {
    Graph g{{}, {}, {untyped("v3")}, {}};
    for (int i = 0; i < 4; i++) {
        std::string w = "w" + std::to_string(i), v = "v" + std::to_string(i);
        g.initializers.push_back(external(w, {100}, {{"location", "nothing.bin"}}));
        g.nodes.push_back(node("Add", {w, i == 0 ? w : "v" + std::to_string(i - 1)}, {v}));
    }
    EXPECT_EQ(refusal(model(g), {}, folder_ / "model.onnx"), R"(
error[external-data]: the file of external data "nothing.bin" cannot be read: No such file or directory
  --> model.onnx
note: it is needed for "w0", "w1" and 2 more
help: the file with the weights must lie beside the model
)");
}

TEST_F(OnnxExternalData, SizesAreThoseOfTheFile) {
    EXPECT_EQ(refused({{"location", "data/w.bin"}, {"offset", "8"}}),
              "\nerror[external-data]: initializer \"w\": \"data/w.bin\" has 404 bytes, its data would be 400 bytes "
              "from 8 on");
    EXPECT_EQ(
        refused({{"location", "data/w.bin"}, {"offset", "18446744073709551615"}}),
        "\nerror[external-data]: initializer \"w\": \"data/w.bin\" has 404 bytes, its data would be 400 bytes from "
        "18446744073709551615 on");
    EXPECT_EQ(refused({{"location", "data/w.bin"}, {"length", "40"}}),
              "\nerror[external-data]: initializer \"w\" has 40 bytes of external data, f32[100] takes 400");
    EXPECT_EQ(refused({{"location", "data/w.bin"}, {"offset", "-1"}}),
              "\nerror[external-data]: initializer \"w\": offset \"-1\" of its external data is not a number");
}

TEST_F(OnnxExternalData, BytesAloneHaveNoFolder) {
    EXPECT_EQ(refusal(with({{"location", "data/w.bin"}})), R"(
error[external-data]: the file of external data "data/w.bin" cannot be found: a model given as bytes has no folder
  --> model.onnx
note: it is needed for "w"
help: give the model as a file, or the file's path beside the bytes
)");
}

} // namespace
} // namespace cuvil
