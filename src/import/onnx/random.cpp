// Random numbers. Dropout does nothing when a model is used, and what it drops is nobody's.
#include "import/onnx/rows.hpp"

namespace cuvil::onnx {
namespace {

Values dropout(Node& node) {
    if (!node.wants(1)) return {&node.input(0)};
    return {&node.input(0), &node.build.broadcast_to(node.build.bools({true}, {}), node.type(0).shape())};
}

// Opset 12: dropping is an input.
Values dropout_with_mode(Node& node) {
    if (Value* training = node.optional_input(2)) {
        auto mode = node.build.constant_bools(*training);
        if (!mode || mode->size() != 1 || mode->front()) node.unsupported("training_mode is not false");
    }
    return dropout(node);
}

const Row rows[] = {
    {"Dropout", 7, 11, dropout, 1, 1, "ratio", ""},
    {"Dropout", 12, newest, dropout_with_mode, 1, 3, "seed", ""},
};

} // namespace

std::span<const Row> random_rows() { return rows; }

} // namespace cuvil::onnx
