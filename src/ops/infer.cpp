#include "ops/infer.hpp"

#include <algorithm>
#include <string>

namespace cuvil {

void same_as_first(Inference& in) { in.result(in.type(0)); }

namespace {

void expect_same_for_all(Inference& in) {
    for (size_t i = 1; i < in.operand_count(); i++) {
        const Type &a = in.type(0), &b = in.type(i);
        if (a.is_tensor() && b.is_tensor() && a.dtype() != b.dtype())
            in.fail("operands have different dtypes, " + a.text() + " and " + b.text());
        if (a.has_rank() && b.has_rank())
            for (int64_t k = 1; k <= std::min(a.rank(), b.rank()); k++)
                if (!a.dim(-k).is(1) && !b.dim(-k).is(1) && compare(a.dim(-k), b.dim(-k)) == Equality::Different)
                    in.fail("Broadcast mismatch at axis -" + std::to_string(k) + ": " + a.text() + " and " + b.text());
        if (a.with_layout({}) != b.with_layout({}))
            in.fail("operands have different shapes, " + a.text() + " and " + b.text());
    }
}

} // namespace

void same_for_all(Inference& in) {
    expect_same_for_all(in);
    in.result(in.type(0));
}

void bool_for_all(Inference& in) {
    expect_same_for_all(in);
    in.result(in.type(0).with_dtype(DType::Bool));
}

int64_t normal_axis(const Inference& in, int64_t axis, int64_t rank) {
    if (axis < -rank || axis >= rank)
        in.fail("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
    return axis < 0 ? axis + rank : axis;
}

Dim window_output(const Dim& size, const Dim& kernel, int64_t stride, int64_t dilation, const Dim& padding) {
    Dim reach = Dim(dilation) * (kernel - 1) + Dim(1); // in dims, as these are checked
    return Dim::max(Dim::floordiv(size + padding - reach, Dim(stride)) + Dim(1), Dim(0));
}

void expect_ints(const Inference& in, std::string_view attribute, size_t count, int64_t least) {
    const auto& values = in.node().get<std::vector<int64_t>>(attribute);
    bool good = values.size() == count;
    for (int64_t v : values) good = good && v >= least;
    if (!good)
        in.fail("attribute '" + std::string(attribute) + "' needs " + std::to_string(count) + " integers of at least " +
                std::to_string(least));
}

void expect_one_of(const Inference& in, std::string_view attribute, std::initializer_list<std::string_view> words) {
    const auto& word = in.node().get<std::string>(attribute);
    if (std::ranges::find(words, word) == words.end())
        in.fail("attribute '" + std::string(attribute) + "' is \"" + word + "\"");
}

// Sizes around the 16 lanes, and a zero.
const TestGrid unary_grid{{{{}}, {{1}}, {{0, 3}}, {{15}}, {{16}}, {{17}}, {{3, 5, 7}}, {{2, 33}}}, {"f32", "f64"}};
const TestGrid positive_grid{{{{}}, {{0}}, {{17}}, {{3, 35}}}, {"f32", "f64"}, 0.01, 8};
const TestGrid binary_grid{{{{}, {}}, {{1}, {1}}, {{0, 3}, {0, 3}}, {{17}, {17}}, {{3, 5, 7}, {3, 5, 7}}},
                           {"f32", "f64", "i32", "i64"}};
const TestGrid power_grid{
    {{{}, {}}, {{0}, {0}}, {{17}, {17}}, {{3, 35}, {3, 35}}}, {"f32", "f64", "i32", "i64"}, 0.01, 4};
const TestGrid integer_binary_grid{{{{}, {}}, {{17}, {17}}, {{3, 35}, {3, 35}}}, {"i8", "u8", "i32", "i64"}};
const TestGrid integer_unary_grid{{{{}}, {{17}}, {{3, 35}}}, {"i8", "u8", "i32", "i64"}};
const TestGrid bool_binary_grid{{{{}, {}}, {{0}, {0}}, {{17}, {17}}, {{3, 35}, {3, 35}}}, {"bool"}, 0, 2};
const TestGrid bool_unary_grid{{{{}}, {{0}}, {{17}}, {{3, 35}}}, {"bool"}, 0, 2};

} // namespace cuvil
