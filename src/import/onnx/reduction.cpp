// Reductions.
#include "import/onnx/axes.hpp"
#include "import/onnx/rows.hpp"

#include <limits>

namespace cuvil::onnx {
namespace {

// Reduces x over the axes; they disappear unless they are to be kept. Without axes each element is reduced alone.
using Reducer = Value& (*)(GraphBuilder& build, Value& x, const std::vector<int64_t>& axes, bool keep);

std::vector<int64_t> reduced_axes(const Node& node) {
    int64_t rank = node.type(0).rank();
    std::vector<int64_t> axes = node.numbers(1, "axes").value_or(std::vector<int64_t>{});
    if (!axes.empty()) return normal_axes(std::move(axes), rank);
    bool does_nothing = node.has_attribute("noop_with_empty_axes") && node.integer("noop_with_empty_axes") != 0;
    return does_nothing ? axes : all_axes(rank);
}

template <Reducer reducer> Values reduce(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    int64_t rank = x.type().rank();
    bool keep = node.integer("keepdims", 1) != 0;
    if (!node.has_input(1) || node.known_numbers(1)) return {&reducer(build, x, reduced_axes(node), keep)};
    Value& axes = node.input(1);
    if (build.length_of(axes) == rank) {
        named_axes(build, axes, rank); // which requires that they are all there are
        return {&reducer(build, x, all_axes(rank), keep)};
    }
    RowsAlongAxes rows = rows_along(build, x, axes);
    Value& result = build.reshape(reducer(build, *rows.rows, {1}, false), rows.kept);
    return {keep ? &result : &squeeze_by_data(build, result, axes)};
}

constexpr char sum[] = "reduce_sum", mean[] = "reduce_mean", prod[] = "reduce_prod", max[] = "reduce_max",
               min[] = "reduce_min";

template <const char* op> Value& with(GraphBuilder& build, Value& x, const std::vector<int64_t>& axes, bool keep) {
    return build.reduce(op, x, axes, keep);
}

// The product of sizes is a size.
Value& product(GraphBuilder& build, Value& x, const std::vector<int64_t>& axes, bool keep) {
    if (!x.elements() || x.type().rank() != 1 || axes.empty()) return build.reduce(prod, x, axes, keep);
    try {
        return build.dims({checked_count(*x.elements())}, keep ? Shape{1} : Shape{}, x.type().dtype());
    } catch (const DimOverflow&) { // no size, a number that wraps
        return build.reduce(prod, x, axes, keep);
    }
}

// Opset 20: true is above false.
template <const char* op>
Value& with_bool_too(GraphBuilder& build, Value& x, const std::vector<int64_t>& axes, bool keep) {
    if (x.type().dtype() != DType::Bool) return build.reduce(op, x, axes, keep);
    return build.cast(build.reduce(op, build.cast(x, DType::U8), axes, keep), DType::Bool);
}

Value& square(GraphBuilder& build, Value& x) { return build.elementwise("mul", {&x, &x}); }

// Roots and logarithms of integers are found in f64.
Value& in_floating(GraphBuilder& build, Value& x) {
    return is_integer(x.type().dtype()) ? build.cast(x, DType::F64) : x;
}

Value& l1(GraphBuilder& build, Value& x, const std::vector<int64_t>& axes, bool keep) {
    return build.reduce(sum, build.make("abs", {&x}), axes, keep);
}

Value& sum_square(GraphBuilder& build, Value& x, const std::vector<int64_t>& axes, bool keep) {
    return build.reduce(sum, square(build, x), axes, keep);
}

Value& l2(GraphBuilder& build, Value& x, const std::vector<int64_t>& axes, bool keep) {
    Value& root = build.make("sqrt", {&sum_square(build, in_floating(build, x), axes, keep)});
    return build.cast(root, x.type().dtype());
}

Value& log_sum(GraphBuilder& build, Value& x, const std::vector<int64_t>& axes, bool keep) {
    Value& logarithm = build.make("log", {&build.reduce(sum, in_floating(build, x), axes, keep)});
    return build.cast(logarithm, x.type().dtype());
}

// The largest value is taken out of the exponentials, unless it is infinite, so that they stay in range.
Value& log_sum_exp(GraphBuilder& build, Value& given, const std::vector<int64_t>& axes, bool keep) {
    if (axes.empty()) return given; // log(exp(x))
    Value& x = in_floating(build, given);
    Value& largest = build.reduce(max, x, axes, true);
    Value& is_finite =
        build.elementwise("less", build.make("abs", {&largest}), std::numeric_limits<double>::infinity());
    Value& zero = build.broadcast_to(build.scalar(largest, 0), largest.type().shape());
    Value& out = build.make("where", {&is_finite, &largest, &zero});
    Value& powers = build.make("exp", {&build.elementwise("sub", {&x, &out})});
    Value& logarithm = build.make("log", {&build.reduce(sum, powers, axes, true)});
    Value& result = build.elementwise("add", {&logarithm, &out});
    return build.cast(keep ? result : build.squeeze(result, axes), given.type().dtype());
}

const Row rows[] = {
    {"ReduceL1", 1, 17, reduce<l1>, 1, 1, "axes keepdims", "abs, reduce_sum"},
    {"ReduceL1", 18, newest, reduce<l1>, 1, 2, "keepdims noop_with_empty_axes", "abs, reduce_sum"},
    {"ReduceL2", 1, 17, reduce<l2>, 1, 1, "axes keepdims", "mul, reduce_sum, sqrt"},
    {"ReduceL2", 18, newest, reduce<l2>, 1, 2, "keepdims noop_with_empty_axes", "mul, reduce_sum, sqrt"},
    {"ReduceLogSum", 1, 17, reduce<log_sum>, 1, 1, "axes keepdims", "reduce_sum, log"},
    {"ReduceLogSum", 18, newest, reduce<log_sum>, 1, 2, "keepdims noop_with_empty_axes", "reduce_sum, log"},
    {"ReduceLogSumExp", 1, 17, reduce<log_sum_exp>, 1, 1, "axes keepdims", "reduce_max, exp, reduce_sum, log"},
    {"ReduceLogSumExp", 18, newest, reduce<log_sum_exp>, 1, 2, "keepdims noop_with_empty_axes",
     "reduce_max, exp, reduce_sum, log"},
    {"ReduceMax", 1, 17, reduce<with<max>>, 1, 1, "axes keepdims", "reduce_max"},
    {"ReduceMax", 18, 19, reduce<with<max>>, 1, 2, "keepdims noop_with_empty_axes", "reduce_max"},
    {"ReduceMax", 20, newest, reduce<with_bool_too<max>>, 1, 2, "keepdims noop_with_empty_axes", "reduce_max"},
    {"ReduceMean", 1, 17, reduce<with<mean>>, 1, 1, "axes keepdims", "reduce_mean"},
    {"ReduceMean", 18, newest, reduce<with<mean>>, 1, 2, "keepdims noop_with_empty_axes", "reduce_mean"},
    {"ReduceMin", 1, 17, reduce<with<min>>, 1, 1, "axes keepdims", "reduce_min"},
    {"ReduceMin", 18, 19, reduce<with<min>>, 1, 2, "keepdims noop_with_empty_axes", "reduce_min"},
    {"ReduceMin", 20, newest, reduce<with_bool_too<min>>, 1, 2, "keepdims noop_with_empty_axes", "reduce_min"},
    {"ReduceProd", 1, 17, reduce<product>, 1, 1, "axes keepdims", "reduce_prod"},
    {"ReduceProd", 18, newest, reduce<product>, 1, 2, "keepdims noop_with_empty_axes", "reduce_prod"},
    {"ReduceSum", 1, 12, reduce<with<sum>>, 1, 1, "axes keepdims", "reduce_sum"},
    {"ReduceSum", 13, newest, reduce<with<sum>>, 1, 2, "keepdims noop_with_empty_axes", "reduce_sum"},
    {"ReduceSumSquare", 1, 17, reduce<sum_square>, 1, 1, "axes keepdims", "mul, reduce_sum"},
    {"ReduceSumSquare", 18, newest, reduce<sum_square>, 1, 2, "keepdims noop_with_empty_axes", "mul, reduce_sum"},
};

} // namespace

std::span<const Row> reduction_rows() { return rows; }

} // namespace cuvil::onnx
