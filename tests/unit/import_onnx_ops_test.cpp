// Operators whose meaning depends on version, attributes or sizes: the IR that they become.
#include "import/onnx/onnx.hpp"
#include "import_onnx_writer.hpp"
#include "import_testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <set>

namespace cuvil {
namespace {

using namespace onnx_writer;

// The body for one node that makes "y" from "x" of this shape and, as constants, from further inputs.
std::string built(const std::string& node, const std::vector<Size>& shape, int64_t opset = 17,
                  const Names& initializers = {}, int32_t type = F32) {
    return main_of(model({{node}, {value_info("x", type, shape)}, {untyped("y")}, initializers}, opset));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(OnnxOps, SoftmaxBefore13IsOverAllAxesFromOneOn) {
    EXPECT_EQ(built(node("Softmax", {"x"}, {"y"}), {"N", 3, 4}, 12), R"(
func @main(%x: f32[N,3,4]) -> (f32[N,3,4] "y") {
  %1 = reshape %x {shape = [N,12]} : f32[N,12]
  %2 = softmax %1 {axis = 1} : f32[N,12]
  %y = reshape %2 {shape = [N,3,4]} : f32[N,3,4]
  return %y
}
)");
    EXPECT_EQ(built(node("Softmax", {"x"}, {"y"}), {"N", 3, 4}, 13), R"(
func @main(%x: f32[N,3,4]) -> (f32[N,3,4] "y") {
  %y = softmax %x {axis = 2} : f32[N,3,4]
  return %y
}
)");
}

TEST(OnnxOps, ReshapeTakesSizesFromTheGraph) {
    // x.reshape(x.shape[0], -1), as exporters write it.
    Graph g{{node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
             node("Unsqueeze", {"n", "axes"}, {"n1"}), node("Concat", {"n1", "rest"}, {"shape"}, {integer("axis", 0)}),
             node("Reshape", {"x", "shape"}, {"y"})},
            {value_info("x", F32, {"N", 3, "H", "W"})},
            {untyped("y")},
            {tensor("zero", I64, {}, raw(Ints{0})), ints("axes", {0}), ints("rest", {-1})}};
    EXPECT_TRUE(contains(main_of(model(g)), "%y = reshape %x {shape = [N,3*H*W]} : f32[N,3*H*W]"));
}

TEST(OnnxOps, ReshapeCopiesOnZeroUnlessToldOtherwise) {
    EXPECT_TRUE(
        contains(built(node("Reshape", {"x", "s"}, {"y"}), {0, "N", 4}, 17, {ints("s", {0, -1})}), "f32[0,4*N]"));
    std::string keep = node("Reshape", {"x", "s"}, {"y"}, {integer("allowzero", 1)});
    EXPECT_TRUE(contains(built(keep, {0, 3}, 17, {ints("s", {3, 0})}), "f32[3,0]"));
}

TEST(OnnxOps, SizesThatMustBeEqualAreRequired) {
    EXPECT_EQ(built(node("Reshape", {"x", "s"}, {"y"}), {"N", 6}, 17, {ints("s", {-1, 4})}), R"(
func @main(%x: f32[N,6]) -> (f32[floordiv(6*N, 4),4] "y") {
  %s = constant [-1, 4] : i64[2]
  require {left = [6*N], message = "sizes 6*N and 4*floordiv(6*N, 4) must be equal, but are {0} and {1}", right = [4*floordiv(6*N, 4)]}
  %y = reshape %x {shape = [floordiv(6*N, 4),4]} : f32[floordiv(6*N, 4),4]
  return %y
}
)");
}

TEST(OnnxOps, SliceClampsAndCountsBackwards) {
    auto slice = [](const std::vector<Size>& shape, int64_t start, int64_t end, int64_t step) {
        std::string text = built(node("Slice", {"x", "starts", "ends", "", "steps"}, {"y"}), shape, 13,
                                 {ints("starts", {start}), ints("ends", {end}), ints("steps", {step})});
        size_t from = text.find("= slice %x ");
        return from == std::string::npos ? "" : text.substr(from + 11, text.find('\n', from) - from - 11);
    };
    EXPECT_EQ(slice({5}, -1, INT64_MIN, -1), "{sizes = [5], starts = [4], steps = [-1]} : f32[5]");
    EXPECT_EQ(slice({5}, INT64_MAX, INT64_MIN, -2), "{sizes = [3], starts = [4], steps = [-2]} : f32[3]");
    EXPECT_EQ(slice({5}, -1, INT64_MAX, -1), "{sizes = [0], starts = [4], steps = [-1]} : f32[0]");
    EXPECT_EQ(slice({5}, 3, 1, 1), "{sizes = [0], starts = [3], steps = [1]} : f32[0]");
    EXPECT_EQ(slice({5}, 0, INT32_MAX, int64_t{1} << 40),
              "{sizes = [1], starts = [0], steps = [1099511627776]} : f32[1]");
    // On an axis that is longer the largest number of 32 bits is a place as any other.
    const int64_t longer = 3000000000;
    EXPECT_EQ(slice({longer}, 0, int64_t{INT32_MAX} + 1, 1),
              "{sizes = [2147483648], starts = [0], steps = [1]} : f32[2147483648]");
    EXPECT_EQ(slice({longer}, INT32_MAX, INT64_MAX, 1),
              "{sizes = [852516353], starts = [2147483647], steps = [1]} : f32[852516353]");
    EXPECT_EQ(slice({longer}, -1, -int64_t{INT32_MAX} - 2, -1),
              "{sizes = [2147483648], starts = [2999999999], steps = [-1]} : f32[2147483648]");
    EXPECT_EQ(slice({longer}, INT64_MIN, longer, 1), "");
    EXPECT_EQ(slice({"N"}, 0, INT64_MAX, 1), "");
    EXPECT_EQ(slice({"N"}, 1, INT64_MAX, 1),
              "{sizes = [max(0, N - 1)], starts = [min(1, N)], steps = [1]} : f32[max(0, N - 1)]");
    EXPECT_EQ(slice({"N"}, -1, INT64_MIN, -1), "{sizes = [N], starts = [max(0, N - 1)], steps = [-1]} : f32[N]");
}

TEST(OnnxOps, PoolsRoundUpByPaddingMore) {
    Names window{list("kernel_shape", {3, 3}), list("strides", {2, 2}), integer("ceil_mode", 1)};
    EXPECT_TRUE(contains(built(node("MaxPool", {"x"}, {"y"}, window), {1, 2, 6, 7}),
                         "max_pool2d %x {kernel = [3,3], pads = [0,0,1,0], strides = [2,2]} : f32[1,2,3,3]"));
    // A window that would start in the padding behind is dropped.
    Names late{list("kernel_shape", {3, 3}), list("strides", {3, 3}), list("pads", {1, 1, 1, 1}),
               integer("ceil_mode", 1)};
    EXPECT_TRUE(contains(built(node("MaxPool", {"x"}, {"y"}, late), {1, 1, 2, 2}), "f32[1,1,1,1]"));
    // Padding that counts becomes part of the input; what hangs over it does not count.
    window.push_back(list("pads", {1, 1, 1, 1}));
    window.push_back(integer("count_include_pad", 1));
    std::string averaged = built(node("AveragePool", {"x"}, {"y"}, window), {1, 2, 6, 6});
    EXPECT_TRUE(contains(averaged, "pad %x {high = [0,0,1,1], low = [0,0,1,1]} : f32[1,2,8,8]"));
    EXPECT_TRUE(contains(averaged, "avg_pool2d %1 {kernel = [3,3], pads = [0,0,1,1], strides = [2,2]} : f32[1,2,4,4]"));
}

TEST(OnnxOps, ConvolutionsOfSequencesAreTwoDimensional) {
    EXPECT_EQ(built(node("Conv", {"x", "w"}, {"y"}, {list("pads", {2, 2}), integer("group", 2)}), {"N", 4, "L"}, 17,
                    {floats("w", {4, 2, 5})}),
              R"(
func @main(%x: f32[N,4,L]) -> (f32[N,4,L] "y") {
  %w = constant [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] : f32[4,2,5]
  require {left = [min(0, L - 1)], message = "axis 2 with its padding, less the window of 5, is {0}, expected at least 0", right = [0]}
  %1 = reshape %x {shape = [N,4,1,L]} : f32[N,4,1,L]
  %2 = reshape %w {shape = [4,2,1,5]} : f32[4,2,1,5]
  %3 = conv2d %1, %2, _ {groups = 2, pads = [0,2,0,2]} : f32[N,4,1,L]
  %y = reshape %3 {shape = [N,4,L]} : f32[N,4,L]
  return %y
}
)");
}

TEST(OnnxOps, SamePaddingOfAnyWidthIsAnOpOfItsOwn) {
    std::string text =
        built(node("Conv", {"x", "w"}, {"y"}, {text_attribute("auto_pad", "SAME_UPPER"), list("strides", {2, 2})}),
              {1, 1, 7, "W"}, 17, {floats("w", {1, 1, 3, 3})});
    EXPECT_TRUE(contains(text, "pad %x"));
    EXPECT_TRUE(contains(text, "high = [0,0,1,"));
}

TEST(OnnxOps, ReductionsTakeAxesInBothForms) {
    std::string want = "reduce_mean %x {axes = [1]} : f32[2,1]";
    EXPECT_TRUE(contains(built(node("ReduceMean", {"x"}, {"y"}, {list("axes", {-1})}), {2, 3}), want));
    EXPECT_TRUE(contains(built(node("ReduceMean", {"x", "a"}, {"y"}), {2, 3}, 18, {ints("a", {1})}), want));
    EXPECT_TRUE(
        contains(built(node("ReduceMean", {"x"}, {"y"}, {integer("keepdims", 0)}), {2, 3}), "{shape = []} : f32[]"));
    EXPECT_TRUE(
        contains(built(node("ReduceSum", {"x"}, {"y"}, {integer("noop_with_empty_axes", 1)}), {2, 3}), "return %x"));
}

TEST(OnnxOps, ClipLeavesOutWhatIsLeftOut) {
    EXPECT_EQ(
        built(node("Clip", {"x", "", "hi"}, {"y"}), {2}, 13, {tensor("hi", F32, {}, raw(std::vector<float>{2.5f}))}),
        R"(
func @main(%x: f32[2]) -> (f32[2] "y") {
  %hi = constant 2.5 : f32[]
  %1 = broadcast %hi {shape = [2]} : f32[2]
  %y = minimum %x, %1 : f32[2]
  return %y
}
)");
}

TEST(OnnxOps, MatMulStacksAndVectors) {
    auto matmul = [](const std::vector<Size>& a, const std::vector<Size>& b) {
        Program p = import_bytes(model(
            {{node("MatMul", {"a", "b"}, {"y"})}, {value_info("a", F32, a), value_info("b", F32, b)}, {untyped("y")}}));
        return p.main().body().terminator()->operand(0)->type().text();
    };
    EXPECT_EQ(matmul({4}, {4}), "f32[]");
    EXPECT_EQ(matmul({4}, {2, 4, 3}), "f32[2,3]");
    EXPECT_EQ(matmul({2, 4, 3}, {3}), "f32[2,4]");
    EXPECT_EQ(matmul({4, 3}, {"N", 3, 5}), "f32[N,4,5]");
    EXPECT_EQ(matmul({"N", 1, 4, 3}, {6, 3, 5}), "f32[N,6,4,5]");
    EXPECT_EQ(matmul({"N", 6, 4, 3}, {1, 1, 3, 5}), "f32[N,6,4,5]");
}

TEST(OnnxOps, PartsOfUnevenSplits) {
    Graph g{{node("Split", {"x"}, {"a", "b", "c"}, {integer("num_outputs", 3)})},
            {value_info("x", F32, {7})},
            {untyped("a"), untyped("c")}};
    std::string text = main_of(model(g, 18));
    EXPECT_TRUE(contains(text, "%a = slice %x {sizes = [3], starts = [0], steps = [1]} : f32[3]"));
    EXPECT_FALSE(contains(text, "starts = [3]"));
    EXPECT_TRUE(contains(text, "%c = slice %x {sizes = [1], starts = [6], steps = [1]} : f32[1]"));
}

TEST(OnnxOps, TypedDataIsReadLikeRawData) {
    std::string halves; // f16 1.0 and -2.0 as the bits in 32-bit integers, not packed
    Writer w(halves);
    w.add_int64(1, 2);
    w.add_int32(2, F16);
    w.add_int32(5, 0x3c00);
    w.add_int32(5, 0xc000);
    w.add_string(8, "k");
    EXPECT_TRUE(contains(built(node("Add", {"x", "k"}, {"y"}), {2}, 17, {halves}, F16), "constant [1, -2] : f16[2]"));
}

// Each name and version has one row.
TEST(OnnxOps, RowsDoNotOverlap) {
    std::set<std::pair<std::string, int>> seen;
    for (const ImportedOp& op : onnx_rows())
        for (int version = op.since; version <= (op.until == 0 ? 28 : op.until); version++)
            EXPECT_TRUE(seen.emplace(op.name, version).second) << op.name << " " << version;
    EXPECT_GT(seen.size(), 1000u);
}

} // namespace
} // namespace cuvil
