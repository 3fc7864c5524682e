// Normalisations by the mean, the variance or another measure of the elements.
#include "import/onnx/rows.hpp"

#include <span>

namespace cuvil::onnx {
namespace {

void expect_channels(const Type& type) {
    if (type.rank() < 2) throw ImportError("shape-mismatch", type.text() + " has no channels");
}

struct Moments {
    Value *mean, *centered, *variance;
};

// Of the axes, which stay with size 1. The variance is the mean of the squared distances from the mean.
Moments moments(GraphBuilder& build, Value& x, const std::vector<int64_t>& axes) {
    Value& mean = build.reduce("reduce_mean", x, axes, true);
    Value& centered = build.elementwise("sub", {&x, &mean});
    Value& squares = build.elementwise("mul", {&centered, &centered});
    return {&mean, &centered, &build.reduce("reduce_mean", squares, axes, true)};
}

// In training: with the mean and the variance of the batch, which the running ones move towards. The operands are those
// of batch_norm.
Values batch_normalization_by_batch(Node& node, std::vector<Value*> operands) {
    GraphBuilder& build = node.build;
    Value& x = *operands[0];
    std::vector<int64_t> axes = all_axes(x.type().rank());
    axes.erase(axes.begin() + 1);
    auto [mean, centered, variance] = moments(build, x, axes);
    double momentum = node.real("momentum", 0.9f);
    auto moved = [&](Value& running, Value& current) -> Value& {
        return build.elementwise(
            "add", {&build.elementwise("mul", running, momentum), &build.elementwise("mul", current, 1 - momentum)});
    };
    Value &current_mean = build.squeeze(*mean, axes), &current_variance = build.squeeze(*variance, axes);
    Values outputs{nullptr, &build.cast(moved(*operands[3], current_mean), node.type(3).dtype()),
                   &build.cast(moved(*operands[4], current_variance), node.type(4).dtype())};
    operands[3] = &current_mean;
    operands[4] = &current_variance;
    Value& result = build.make("batch_norm", operands, {{"epsilon", node.real("epsilon", 1e-5f)}});
    outputs[0] = &build.cast(result, node.type(0).dtype());
    return outputs;
}

// Before opset 9 each element of an image may have parameters of its own.
Value& normalized_by_place(Node& node) {
    GraphBuilder& build = node.build;
    if (node.opset < 7 && node.integer("is_test", 0) == 0) node.unsupported("spatial is 0 in training");
    Value& variance = build.elementwise("add", node.input(4), node.real("epsilon", 1e-5f));
    Value& centered = build.elementwise("sub", {&node.input(0), &node.input(3)});
    Value& normal = build.elementwise("div", {&centered, &build.make("sqrt", {&variance})});
    return build.elementwise("add", {&build.elementwise("mul", {&normal, &node.input(1)}), &node.input(2)});
}

// Where the parameters have another type than x, the wider work is done in theirs.
Values batch_normalization(Node& node) {
    GraphBuilder& build = node.build;
    const Type& type = node.type(0);
    expect_channels(type);
    if (node.has_attribute("spatial") && node.integer("spatial") != 1) return {&normalized_by_place(node)};
    DType dtype = node.type(3).dtype();
    Value* x = &build.cast(node.input(0), dtype);
    auto channels = node.type(1).rank() == 1 ? node.type(1).dim(0) : type.dim(1);
    if (compare(type.dim(1), channels) == Equality::Unknown && channels.constant()) {
        Shape shape = type.shape();
        shape[1] = channels;
        x = &build.fit(*x, shape);
    }
    std::vector<Value*> operands{x};
    for (size_t i = 1; i < 5; i++) {
        Value& parameter = build.cast(node.input(i), dtype);
        operands.push_back(parameter.type().rank() == 1 ? &build.fit(parameter, {x->type().dim(1)}) : &parameter);
    }
    bool trains = node.opset < 7 ? node.integer("is_test", 0) == 0 : node.integer("training_mode", 0) != 0;
    if (trains) return batch_normalization_by_batch(node, operands);
    Value& result = build.make("batch_norm", operands, {{"epsilon", node.real("epsilon", 1e-5f)}});
    return {&build.cast(result, type.dtype())};
}

// A parameter of a normalisation over rows, in the shape of a row; nothing where it differs between rows.
Value* for_rows(GraphBuilder& build, Value& parameter, const Shape& row) {
    Shape shape = parameter.type().shape();
    while (shape.size() > row.size() && shape.front().is(1)) shape.erase(shape.begin());
    if (shape.size() > row.size()) return nullptr;
    return &build.broadcast_to(build.reshape(parameter, shape), row);
}

// What `stash_type` asks to compute in, where the elements of x hold less.
DType stash_type(const Node& node) {
    auto dtype = dtype_of(node.integer("stash_type", 1));
    if (!dtype || !is_floating(*dtype)) bad_attribute("stash_type is no floating-point type");
    return *dtype;
}

DType computed_type(DType stash, DType own) { return size_of(own) > size_of(stash) ? own : stash; }

std::vector<int64_t> axes_from(int64_t axis, int64_t rank) {
    std::vector<int64_t> axes = all_axes(rank);
    axes.erase(axes.begin(), axes.begin() + axis);
    return axes;
}

// layer_norm or rms_norm. The first stage has the type of `stash_type`, scale and bias that of x.
Value& normalized(Node& node, std::string_view op, Value& x, int64_t axis) {
    GraphBuilder& build = node.build;
    Shape row(x.type().shape().begin() + axis, x.type().shape().end());
    Attributes attributes{{"axis", axis}, {"epsilon", node.real("epsilon", 1e-5f)}};
    std::vector<Value*> operands{&x};
    bool is_one_type = x.type().dtype() == node.type(0).dtype(), fits = is_one_type;
    for (size_t i = 1; fits && i < node.input_count(); i++)
        if (Value* parameter = node.optional_input(i)) {
            operands.resize(i + 1);
            operands[i] = for_rows(build, *parameter, row);
            fits = operands[i] != nullptr;
        }
    if (fits) return build.make(op, operands, std::move(attributes));
    Value* result = &build.cast(build.make(op, {&x}, std::move(attributes)), node.type(0).dtype());
    if (Value* scale = node.optional_input(1)) result = &build.elementwise("mul", {result, scale});
    if (Value* bias = node.optional_input(2)) result = &build.elementwise("add", {result, bias});
    return *result;
}

Values layer_normalization(Node& node) {
    GraphBuilder& build = node.build;
    DType stash = stash_type(node);
    Value& x = build.cast(node.input(0), computed_type(stash, node.type(0).dtype()));
    int64_t axis = node.axis("axis", -1, x.type().rank());
    Values outputs{&normalized(node, "layer_norm", x, axis)};
    if (!node.wants(1) && !node.wants(2)) return outputs;
    auto [mean, centered, variance] = moments(build, x, axes_from(axis, x.type().rank()));
    Value& deviation = build.make("sqrt", {&build.elementwise("add", *variance, node.real("epsilon", 1e-5f))});
    outputs.push_back(&build.cast(*mean, stash));
    outputs.push_back(&build.cast(build.make("reciprocal", {&deviation}), stash));
    return outputs;
}

Values rms_normalization(Node& node) {
    Value& x = node.build.cast(node.input(0), computed_type(stash_type(node), node.type(0).dtype()));
    return {&normalized(node, "rms_norm", x, node.axis("axis", -1, x.type().rank()))};
}

// The parameter of each channel (axis 1), or of each group of them, as a column that aligns with x of that rank.
Value& channel_column(Node& node, size_t input, const Dim& count, int64_t rank) {
    Shape column(static_cast<size_t>(rank - 1), Dim(1));
    column[0] = count;
    if (node.type(input).rank() != 1)
        throw ImportError("shape-mismatch", "the parameters must have one axis, not " + node.type(input).text());
    return node.build.reshape(node.build.fit(node.input(input), {count}), column);
}

// x in groups of channels, each normalised on its own: [N,groups,rest].
Value& normalized_groups(Node& node, Value& x, const Dim& groups) {
    const Shape& shape = x.type().shape();
    Dim channels = Dim::floordiv(shape[1], groups);
    if (compare(channels * groups, shape[1]) != Equality::Equal)
        node.build.require(channels * groups, shape[1],
                           "{1} channels do not form " + groups.text() + " groups of equal size");
    Value& rows = node.build.reshape(x, {shape[0], groups, channels * checked_count(std::span(shape).subspan(2))});
    return node.build.make("layer_norm", {&rows}, {{"axis", int64_t{2}}, {"epsilon", node.real("epsilon", 1e-5f)}});
}

Value& scaled_and_shifted(Node& node, Value& x, const Dim& count) {
    Value& scale = channel_column(node, 1, count, x.type().rank());
    Value& bias = channel_column(node, 2, count, x.type().rank());
    return node.build.elementwise("add", {&node.build.elementwise("mul", {&x, &scale}), &bias});
}

Values instance_normalization(Node& node) {
    Value& x = node.input(0);
    expect_channels(x.type());
    const Dim& channels = x.type().dim(1);
    Shape shape = x.type().shape();
    Value& rows = node.build.reshape(x, {shape[0], channels, checked_count(std::span(shape).subspan(2))});
    Value& result =
        node.build.make("layer_norm", {&rows}, {{"axis", int64_t{2}}, {"epsilon", node.real("epsilon", 1e-5f)}});
    return {&node.build.reshape(scaled_and_shifted(node, result, channels), shape)};
}

Dim group_count(Node& node) {
    expect_channels(node.type(0));
    int64_t groups = node.integer("num_groups");
    if (groups < 1) bad_attribute("num_groups is " + std::to_string(groups));
    if (auto channels = node.type(0).dim(1).constant(); channels && *channels % groups != 0)
        throw ImportError("shape-mismatch", std::to_string(*channels) + " channels do not form " +
                                                std::to_string(groups) + " groups of equal size");
    return groups;
}

// Opset 18: scale and bias are those of the groups.
Values group_normalization_by_group(Node& node) {
    Value& x = node.input(0);
    Dim groups = group_count(node);
    Value& result = scaled_and_shifted(node, normalized_groups(node, x, groups), groups);
    return {&node.build.reshape(result, x.type().shape())};
}

// Opset 21: those of the channels.
Values group_normalization(Node& node) {
    GraphBuilder& build = node.build;
    const Type& type = node.type(0);
    Dim groups = group_count(node);
    Value& x = build.cast(node.input(0), computed_type(stash_type(node), type.dtype()));
    Value& rows = build.cast(normalized_groups(node, x, groups), type.dtype());
    return {&scaled_and_shifted(node, build.reshape(rows, type.shape()), type.dim(1))};
}

Values mean_variance_normalization(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    auto axes = normal_axes(node.integers("axes").value_or(std::vector<int64_t>{0, 2, 3}), x.type().rank());
    auto [mean, centered, variance] = moments(build, x, axes);
    Value& deviation = build.elementwise("add", build.make("sqrt", {variance}), 1e-9);
    return {&build.elementwise("div", {centered, &deviation})};
}

// 0 where the norm is 0.
Values lp_normalization(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    int64_t p = node.integer("p", 2);
    if (p != 1 && p != 2) bad_attribute("p is " + std::to_string(p) + ", neither 1 nor 2");
    std::vector<int64_t> axes{node.axis("axis", -1, x.type().rank())};
    Value& sizes = p == 1 ? build.make("abs", {&x}) : build.elementwise("mul", {&x, &x});
    Value& sum = build.reduce("reduce_sum", sizes, axes, true);
    Value& norm = build.broadcast_to(p == 1 ? sum : build.make("sqrt", {&sum}), x.type().shape());
    Value& zero = build.broadcast_to(build.scalar(x, 0), x.type().shape());
    return {
        &build.make("where", {&build.elementwise("equal", norm, 0), &zero, &build.elementwise("div", {&x, &norm})})};
}

// x / (bias + alpha / size * sum of the squares of `size` neighbouring channels)^beta
Values local_response_normalization(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    expect_channels(x.type());
    int64_t size = node.integer("size");
    if (size < 1) bad_attribute("size is " + std::to_string(size));
    if (size > 256) node.unsupported("a region of " + std::to_string(size) + " channels");
    Shape low(x.type().shape().size(), 0), high = low;
    low[1] = (size - 1) / 2;
    high[1] = size / 2;
    Value& squares = build.pad(build.elementwise("mul", {&x, &x}), low, high, 0);
    Value* sum = nullptr;
    for (int64_t i = 0; i < size; i++) {
        Value& neighbour = build.slice(squares, 1, i, x.type().dim(1));
        sum = sum ? &build.elementwise("add", {sum, &neighbour}) : &neighbour;
    }
    double alpha = node.real("alpha", 1e-4f), beta = node.real("beta", 0.75f), bias = node.real("bias", 1);
    Value& base = build.elementwise("add", build.elementwise("mul", *sum, alpha / static_cast<double>(size)), bias);
    return {&build.elementwise("div", {&x, &build.elementwise("pow", base, beta)})};
}

const Row rows[] = {
    {"BatchNormalization", 6, 6, batch_normalization, 5, 5, "epsilon is_test momentum spatial", "batch_norm"},
    {"BatchNormalization", 7, 8, batch_normalization, 5, 5, "epsilon momentum spatial", "batch_norm"},
    {"BatchNormalization", 9, 13, batch_normalization, 5, 5, "epsilon momentum", "batch_norm"},
    {"BatchNormalization", 14, newest, batch_normalization, 5, 5, "epsilon momentum training_mode", "batch_norm"},
    {"GroupNormalization", 18, 20, group_normalization_by_group, 3, 3, "epsilon num_groups", "layer_norm, mul, add"},
    {"GroupNormalization", 21, newest, group_normalization, 3, 3, "epsilon num_groups stash_type",
     "layer_norm, mul, add"},
    {"InstanceNormalization", 6, newest, instance_normalization, 3, 3, "epsilon", "layer_norm, mul, add"},
    {"LRN", 1, newest, local_response_normalization, 1, 1, "alpha beta bias size", "pad, slice, add, pow, div"},
    {"LayerNormalization", 17, newest, layer_normalization, 2, 3, "axis epsilon stash_type", "layer_norm"},
    {"LpNormalization", 1, newest, lp_normalization, 1, 1, "axis p", "reduce_sum, div"},
    {"MeanVarianceNormalization", 9, newest, mean_variance_normalization, 1, 1, "axes", "reduce_mean, sub, sqrt, div"},
    {"RMSNormalization", 23, newest, rms_normalization, 2, 2, "axis epsilon stash_type", "rms_norm"},
};

} // namespace

std::span<const Row> normalization_rows() { return rows; }

} // namespace cuvil::onnx
