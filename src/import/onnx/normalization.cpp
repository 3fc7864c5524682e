// Normalisations, and Dropout, which does nothing when a model is used.
#include "import/onnx/rows.hpp"

#include <span>

namespace cuvil::onnx {
namespace {

constexpr char softmax[] = "softmax", log_softmax[] = "log_softmax";

// Opset 13: along one axis, by default the last.
template <const char* op> Values along_axis(Node& node) {
    return {&node.build.make(op, {&node.input(0)}, {{"axis", node.axis("axis", -1, node.type(0).rank())}})};
}

// Before: over all axes from `axis` on together, by default from axis 1.
template <const char* op> Values flattened(Node& node) {
    GraphBuilder& build = node.build;
    Value& x = node.input(0);
    const Shape& shape = x.type().shape();
    int64_t rank = x.type().rank(), axis = node.integer("axis", 1);
    axis = axis == rank ? axis : normal_axis(axis, rank);
    if (axis == rank - 1) return {&build.make(op, {&x}, {{"axis", axis}})};
    auto split = static_cast<size_t>(axis);
    Shape flat{checked_count(std::span(shape).first(split)), checked_count(std::span(shape).subspan(split))};
    Value& result = build.make(op, {&build.reshape(x, flat)}, {{"axis", int64_t{1}}});
    return {&build.reshape(result, shape)};
}

// Where the parameters have another type than x, the wider work is done in theirs.
Values batch_normalization(Node& node) {
    GraphBuilder& build = node.build;
    const Type& type = node.type(0);
    if (type.rank() < 2) throw ImportError("shape-mismatch", type.text() + " has no channels");
    if (node.integer("training_mode", 0) != 0) node.unsupported("training_mode is set");
    if (node.has_attribute("spatial") && node.integer("spatial") != 1) node.unsupported("spatial is 0");
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
    Value& result = build.make("batch_norm", operands, {{"epsilon", node.real("epsilon", 1e-5f)}});
    return {&build.cast(result, type.dtype())};
}

Values dropout(Node& node) { return {&node.input(0)}; }

Values dropout_with_mode(Node& node) {
    if (Value* training = node.optional_input(2)) {
        auto mode = node.build.constant_bools(*training);
        if (!mode || mode->size() != 1 || mode->front()) node.unsupported("training_mode is not false");
    }
    if (!node.wants(1)) return {&node.input(0)};
    return {&node.input(0), &node.build.broadcast_to(node.build.bools({true}, {}), node.type(0).shape())};
}

const Row rows[] = {
    {"BatchNormalization", 7, 8, batch_normalization, 5, 5, "epsilon momentum spatial", "batch_norm"},
    {"BatchNormalization", 9, 13, batch_normalization, 5, 5, "epsilon momentum", "batch_norm"},
    {"BatchNormalization", 14, newest, batch_normalization, 5, 5, "epsilon momentum training_mode", "batch_norm"},
    {"Dropout", 7, 11, dropout, 1, 1, "ratio", ""},
    {"Dropout", 12, newest, dropout_with_mode, 1, 3, "seed", ""},
    {"LogSoftmax", 1, 12, flattened<log_softmax>, 1, 1, "axis", "log_softmax"},
    {"LogSoftmax", 13, newest, along_axis<log_softmax>, 1, 1, "axis", "log_softmax"},
    {"Softmax", 1, 12, flattened<softmax>, 1, 1, "axis", "softmax"},
    {"Softmax", 13, newest, along_axis<softmax>, 1, 1, "axis", "softmax"},
};

} // namespace

std::span<const Row> normalization_rows() { return rows; }

} // namespace cuvil::onnx
