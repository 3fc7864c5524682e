// Reductions.
#include "import/onnx/rows.hpp"

#include <limits>
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

// `op` over the axes that the node names; x where there are none.
Value& reduced(Node& node, const char* op, Value& x) {
    auto how = read_reduction(node);
    return how ? node.build.reduce(op, x, how->axes, how->keep) : x;
}

// Roots and logarithms of integers are found in f64.
Value& in_floating(Node& node) {
    Value& x = node.input(0);
    return is_integer(x.type().dtype()) ? node.build.cast(x, DType::F64) : x;
}

Values l1(Node& node) { return {&reduced(node, sum, node.build.make("abs", {&node.input(0)}))}; }

Value& sum_of_squares(Node& node, Value& x) { return reduced(node, sum, node.build.elementwise("mul", {&x, &x})); }

Values sum_square(Node& node) { return {&sum_of_squares(node, node.input(0))}; }

Values l2(Node& node) {
    Value& root = node.build.make("sqrt", {&sum_of_squares(node, in_floating(node))});
    return {&node.build.cast(root, node.type(0).dtype())};
}

Values log_sum(Node& node) {
    Value& logarithm = node.build.make("log", {&reduced(node, sum, in_floating(node))});
    return {&node.build.cast(logarithm, node.type(0).dtype())};
}

// The largest value is taken out of the exponentials, unless it is infinite, so that they stay in range.
Values log_sum_exp(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = in_floating(node);
    auto how = read_reduction(node);
    if (!how) return {&node.input(0)}; // log(exp(x))
    Value& largest = build.reduce(max, x, how->axes, true);
    Value& is_finite =
        build.elementwise("less", build.make("abs", {&largest}), std::numeric_limits<double>::infinity());
    Value& zero = build.broadcast_to(build.scalar(largest, 0), largest.type().shape());
    Value& out = build.make("where", {&is_finite, &largest, &zero});
    Value& powers = build.make("exp", {&build.elementwise("sub", {&x, &out})});
    Value& logarithm = build.make("log", {&build.reduce(sum, powers, how->axes, true)});
    Value& result = build.elementwise("add", {&logarithm, &out});
    return {&build.cast(how->keep ? result : build.squeeze(result, how->axes), node.type(0).dtype())};
}

const Row rows[] = {
    {"ReduceL1", 1, 17, l1, 1, 1, "axes keepdims", "abs, reduce_sum"},
    {"ReduceL1", 18, newest, l1, 1, 2, "keepdims noop_with_empty_axes", "abs, reduce_sum"},
    {"ReduceL2", 1, 17, l2, 1, 1, "axes keepdims", "mul, reduce_sum, sqrt"},
    {"ReduceL2", 18, newest, l2, 1, 2, "keepdims noop_with_empty_axes", "mul, reduce_sum, sqrt"},
    {"ReduceLogSum", 1, 17, log_sum, 1, 1, "axes keepdims", "reduce_sum, log"},
    {"ReduceLogSum", 18, newest, log_sum, 1, 2, "keepdims noop_with_empty_axes", "reduce_sum, log"},
    {"ReduceLogSumExp", 1, 17, log_sum_exp, 1, 1, "axes keepdims", "reduce_max, exp, reduce_sum, log"},
    {"ReduceLogSumExp", 18, newest, log_sum_exp, 1, 2, "keepdims noop_with_empty_axes",
     "reduce_max, exp, reduce_sum, log"},
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
