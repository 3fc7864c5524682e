// Rows that become one elementwise op.
#pragma once

#include "import/onnx/rows.hpp"

#include <algorithm>
#include <vector>

namespace cuvil::onnx {

// The name of an op as a template argument.
struct OpName {
    char text[16] = {};
    template <size_t n> consteval OpName(const char (&name)[n]) { // NOLINT(google-explicit-constructor)
        std::copy_n(name, n, text);
    }
};

template <OpName op> Values elementwise(Node& node) {
    std::vector<Value*> operands(node.inputs().begin(), node.inputs().end());
    for (size_t i = 0; i < operands.size(); i++) operands[i] = &node.input(i);
    return {&node.build.elementwise(op.text, operands)};
}

} // namespace cuvil::onnx
