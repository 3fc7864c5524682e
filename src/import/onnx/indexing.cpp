// Operators whose reads depend on data.
#include "import/onnx/rows.hpp"

namespace cuvil::onnx {
namespace {

Values gather(Node& node) {
    return {&node.build.make("gather", {&node.input(0), &node.input(1)},
                             {{"axis", node.axis("axis", 0, node.type(0).rank())}})};
}

Values nonzero(Node& node) {
    if (node.type(0).dtype() == DType::String) node.unsupported("strings");
    std::string count = node.build.fresh_dim("nonzero").as_symbol().value();
    return {&node.build.make("nonzero", {&node.input(0)}, {{"count", count}})};
}

const Row rows[] = {
    {"Gather", 1, newest, gather, 2, 2, "axis", "gather"},
    {"NonZero", 9, newest, nonzero, 1, 1, "", "nonzero"},
};

} // namespace

std::span<const Row> indexing_rows() { return rows; }

} // namespace cuvil::onnx
