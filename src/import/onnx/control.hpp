// What operators with subgraphs share.
#pragma once

#include "import/onnx/graph.hpp"
#include "import/onnx/rows.hpp"

#include <set>
#include <string>

namespace cuvil::onnx {

// An input of one element, as a scalar.
Value& as_scalar(Node& node, size_t input, DType dtype);
bool mentions(const Dim& dim, const std::set<std::string>& symbols);
bool any_poison(const Node& node, const Values& values);
void end_region(Node& node, const Values& results);

} // namespace cuvil::onnx
