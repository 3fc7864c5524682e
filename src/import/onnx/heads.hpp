// What operators with several heads of attention have in common.
#pragma once

#include "import/onnx/node.hpp"

namespace cuvil::onnx {

// The size of each head; throws ImportError ("shape-mismatch") where the heads do not divide what they share.
Dim head_size(const Dim& hidden, int64_t heads);
// The usual factor of scores, 1 / sqrt(size). Heads of an open size are not supported.
double inverse_root(const Node& node, const Dim& size);

} // namespace cuvil::onnx
