// Operators of training: losses, and Dropout, which does nothing when a model is used.
#include "import/onnx/rows.hpp"

#include <string>

namespace cuvil::onnx {
namespace {

// Nothing is dropped where the ratio is 0, too.
Values dropout(Node& node) {
    if (!node.wants(1)) return {&node.input(0)};
    return {&node.input(0), &node.build.broadcast_to(node.build.bools({true}, {}), node.type(0).shape())};
}

// Before opset 7 an attribute says that nothing is to be dropped.
Values dropout_with_test(Node& node) {
    if (node.integer("is_test", 0) == 0 && node.real("ratio", 0.5) != 0)
        node.unsupported("is_test is 0, and what it drops is random");
    return dropout(node);
}

// Opset 12: ratio and whether to drop are inputs.
Values dropout_with_mode(Node& node) {
    Value *ratio = node.optional_input(1), *training = node.optional_input(2);
    auto mode = training ? node.build.constant_bools(*training) : std::vector<bool>{false};
    bool drops = !mode || mode->size() != 1 || mode->front();
    bool drops_some = !ratio || node.build.constant_number(*ratio) != 0.0;
    if (drops && drops_some) node.unsupported("training_mode is not false, and what it drops is random");
    return dropout(node);
}

// The classes along axis 1 that the targets name, as a mask of log-probabilities [N,C,...]. An ignored target names
// none; another that names none fails while running.
Value& chosen_classes(GraphBuilder& build, Value& targets, Value* ignored, const Shape& shape) {
    DType dtype = targets.type().dtype();
    Value& classes = build.positions(shape[1], dtype);
    auto where = [&](Value& choice, const Dim& number, Value& other) -> Value& {
        return build.make("where", build.broadcast_together({&choice, &build.dims({number}, {}, dtype), &other}));
    };
    // A negative one must not count from the end.
    Value& given = where(build.elementwise("less", targets, 0), shape[1], targets);
    Value* named = &build.gather(classes, ignored ? where(*ignored, 0, given) : given, 0);
    if (ignored) named = &where(*ignored, -1, *named);
    Shape column(shape.size() - 1, 1);
    column[0] = shape[1];
    return build.make("equal", {&build.broadcast_to(build.unsqueeze(*named, {1}), shape),
                                &build.broadcast_to(build.reshape(classes, column), shape)});
}

// Of the log-probabilities [N,C,...] those of the target classes, negated and weighted, and reduced as asked.
Value& negative_log_likelihood(Node& node, Value& log_probabilities) {
    GraphBuilder& build = node.build;
    const Type& type = log_probabilities.type();
    if (type.rank() < 2) throw ImportError("shape-mismatch", type.text() + " has no axis of classes");
    const Shape& shape = type.shape();
    Shape samples = shape;
    samples.erase(samples.begin() + 1);
    if (node.type(1).shape().size() != samples.size())
        throw ImportError("shape-mismatch",
                          "the targets are " + node.type(1).text() + ", expected a class for each of " + text(samples));
    Value& targets = build.fit(node.input(1), samples);
    Value* ignored = nullptr;
    if (node.has_attribute("ignore_index"))
        ignored = &build.elementwise("equal", targets, static_cast<double>(node.integer("ignore_index")));
    Value& chosen = chosen_classes(build, targets, ignored, shape);
    auto of_target = [&](Value& values) -> Value& {
        Value& zero = build.broadcast_to(build.scalar(values, 0), shape);
        return build.reduce("reduce_sum", build.make("where", {&chosen, &values, &zero}), {1}, false);
    };
    Value* weights = nullptr;
    if (Value* given = node.optional_input(2)) {
        Shape column(shape.size() - 1, 1);
        column[0] = shape[1];
        weights = &of_target(build.broadcast_to(build.reshape(build.fit(*given, {shape[1]}), column), shape));
    }
    if (ignored) {
        Value& ones = weights ? *weights : build.broadcast_to(build.scalar(log_probabilities, 1), samples);
        Value& zeros = build.broadcast_to(build.scalar(log_probabilities, 0), samples);
        weights = &build.make("where", {ignored, &zeros, &ones});
    }
    Value* loss = &build.make("neg", {&of_target(log_probabilities)});
    if (weights) loss = &build.elementwise("mul", {loss, weights});
    std::string_view reduction = node.text("reduction", "mean");
    if (reduction == "none") return *loss;
    std::vector<int64_t> axes = all_axes(static_cast<int64_t>(samples.size()));
    if (reduction == "mean" && !weights) return build.reduce("reduce_mean", *loss, axes, false);
    Value& sum = build.reduce("reduce_sum", *loss, axes, false);
    if (reduction == "sum") return sum;
    if (reduction != "mean") bad_attribute("reduction is '" + std::string(reduction) + "'");
    return build.elementwise("div", {&sum, &build.reduce("reduce_sum", *weights, axes, false)});
}

Values negative_log_likelihood_loss(Node& node) { return {&negative_log_likelihood(node, node.input(0))}; }

Values softmax_cross_entropy_loss(Node& node) {
    if (node.type(0).rank() < 2) throw ImportError("shape-mismatch", node.type(0).text() + " has no axis of classes");
    Value& log_probabilities = node.build.make("log_softmax", {&node.input(0)}, {{"axis", int64_t{1}}});
    return {&negative_log_likelihood(node, log_probabilities), &log_probabilities};
}

const Row rows[] = {
    {"Dropout", 6, 6, dropout_with_test, 1, 1, "is_test ratio", ""},
    {"Dropout", 7, 11, dropout, 1, 1, "ratio", ""},
    {"Dropout", 12, newest, dropout_with_mode, 1, 3, "seed", ""},
    {"NegativeLogLikelihoodLoss", 12, newest, negative_log_likelihood_loss, 2, 3, "ignore_index reduction",
     "equal, where, reduce_sum"},
    {"SoftmaxCrossEntropyLoss", 12, newest, softmax_cross_entropy_loss, 2, 3, "ignore_index reduction",
     "log_softmax, equal, where, reduce_sum"},
};

} // namespace

std::span<const Row> training_rows() { return rows; }

} // namespace cuvil::onnx
