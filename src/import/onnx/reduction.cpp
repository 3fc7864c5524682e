// Reductions.
#include "import/onnx/rows.hpp"

#include <optional>

namespace cuvil::onnx {
namespace {

struct Reduction {
    std::vector<int64_t> axes;
    bool keep;
};

// Nothing: noop_with_empty_axes without axes.
std::optional<Reduction> read_reduction(const Node& node) {
    int64_t rank = node.type(0).rank();
    bool keep = node.integer("keepdims", 1) != 0;
    std::vector<int64_t> axes = node.numbers(1, "axes").value_or(std::vector<int64_t>{});
    if (!axes.empty()) return Reduction{normal_axes(std::move(axes), rank), keep};
    if (node.has_attribute("noop_with_empty_axes") && node.integer("noop_with_empty_axes") != 0) return std::nullopt;
    return Reduction{all_axes(rank), keep};
}

constexpr char sum[] = "reduce_sum", mean[] = "reduce_mean", prod[] = "reduce_prod", max[] = "reduce_max",
               min[] = "reduce_min";

template <const char* op> Values reduce(Node& node) {
    Value& x = node.input(0);
    auto how = read_reduction(node);
    if (!how) return {&x};
    return {&node.build.reduce(op, x, how->axes, how->keep)};
}

// The product of sizes is a size.
Values reduce_prod(Node& node) {
    Value& x = node.input(0);
    auto how = read_reduction(node);
    if (!how || !x.elements() || x.type().rank() != 1) return reduce<prod>(node);
    try {
        return {&node.build.dims({checked_count(*x.elements())}, how->keep ? Shape{1} : Shape{}, x.type().dtype())};
    } catch (const DimOverflow&) { // no size, a number that wraps
        return reduce<prod>(node);
    }
}

// Opset 20: true is above false.
template <const char* op> Values reduce_bool_too(Node& node) {
    Value& x = node.input(0);
    auto how = read_reduction(node);
    if (!how || x.type().dtype() != DType::Bool) return reduce<op>(node);
    GraphBuilder& build = node.build;
    return {&build.cast(build.reduce(op, build.cast(x, DType::U8), how->axes, how->keep), DType::Bool)};
}

Values l1(Node& node) {
    auto how = read_reduction(node);
    Value& x = node.build.make("abs", {&node.input(0)});
    return {how ? &node.build.reduce(sum, x, how->axes, how->keep) : &x};
}

Value& sum_of_squares(Node& node) {
    auto how = read_reduction(node);
    Value& x = node.build.elementwise("mul", {&node.input(0), &node.input(0)});
    return how ? node.build.reduce(sum, x, how->axes, how->keep) : x;
}

Values sum_square(Node& node) { return {&sum_of_squares(node)}; }
Values l2(Node& node) { return {&node.build.make("sqrt", {&sum_of_squares(node)})}; }

Values log_sum(Node& node) {
    auto how = read_reduction(node);
    Value& x = node.input(0);
    return {&node.build.make("log", {how ? &node.build.reduce(sum, x, how->axes, how->keep) : &x})};
}

const Row rows[] = {
    {"ReduceL1", 1, 17, l1, 1, 1, "axes keepdims", "abs, reduce_sum"},
    {"ReduceL1", 18, newest, l1, 1, 2, "keepdims noop_with_empty_axes", "abs, reduce_sum"},
    {"ReduceL2", 1, 17, l2, 1, 1, "axes keepdims", "mul, reduce_sum, sqrt"},
    {"ReduceL2", 18, newest, l2, 1, 2, "keepdims noop_with_empty_axes", "mul, reduce_sum, sqrt"},
    {"ReduceLogSum", 1, 17, log_sum, 1, 1, "axes keepdims", "reduce_sum, log"},
    {"ReduceLogSum", 18, newest, log_sum, 1, 2, "keepdims noop_with_empty_axes", "reduce_sum, log"},
    {"ReduceMax", 1, 17, reduce<max>, 1, 1, "axes keepdims", "reduce_max"},
    {"ReduceMax", 18, 19, reduce<max>, 1, 2, "keepdims noop_with_empty_axes", "reduce_max"},
    {"ReduceMax", 20, newest, reduce_bool_too<max>, 1, 2, "keepdims noop_with_empty_axes", "reduce_max"},
    {"ReduceMean", 1, 17, reduce<mean>, 1, 1, "axes keepdims", "reduce_mean"},
    {"ReduceMean", 18, newest, reduce<mean>, 1, 2, "keepdims noop_with_empty_axes", "reduce_mean"},
    {"ReduceMin", 1, 17, reduce<min>, 1, 1, "axes keepdims", "reduce_min"},
    {"ReduceMin", 18, 19, reduce<min>, 1, 2, "keepdims noop_with_empty_axes", "reduce_min"},
    {"ReduceMin", 20, newest, reduce_bool_too<min>, 1, 2, "keepdims noop_with_empty_axes", "reduce_min"},
    {"ReduceProd", 1, 17, reduce_prod, 1, 1, "axes keepdims", "reduce_prod"},
    {"ReduceProd", 18, newest, reduce_prod, 1, 2, "keepdims noop_with_empty_axes", "reduce_prod"},
    {"ReduceSum", 1, 12, reduce<sum>, 1, 1, "axes keepdims", "reduce_sum"},
    {"ReduceSum", 13, newest, reduce<sum>, 1, 2, "keepdims noop_with_empty_axes", "reduce_sum"},
    {"ReduceSumSquare", 1, 17, sum_square, 1, 1, "axes keepdims", "mul, reduce_sum"},
    {"ReduceSumSquare", 18, newest, sum_square, 1, 2, "keepdims noop_with_empty_axes", "mul, reduce_sum"},
};

} // namespace

std::span<const Row> reduction_rows() { return rows; }

} // namespace cuvil::onnx
