// Softmax and its kin.
#include "import/onnx/rows.hpp"

#include <span>

namespace cuvil::onnx {
namespace {

constexpr char softmax[] = "softmax", log_softmax[] = "log_softmax", hardmax[] = "hardmax";

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

const Row rows[] = {
    {"Hardmax", 1, 12, flattened<hardmax>, 1, 1, "axis", "hardmax"},
    {"Hardmax", 13, newest, along_axis<hardmax>, 1, 1, "axis", "hardmax"},
    {"LogSoftmax", 1, 12, flattened<log_softmax>, 1, 1, "axis", "log_softmax"},
    {"LogSoftmax", 13, newest, along_axis<log_softmax>, 1, 1, "axis", "log_softmax"},
    {"Softmax", 1, 12, flattened<softmax>, 1, 1, "axis", "softmax"},
    {"Softmax", 13, newest, along_axis<softmax>, 1, 1, "axis", "softmax"},
};

} // namespace

std::span<const Row> softmax_rows() { return rows; }

} // namespace cuvil::onnx
