#include "import/onnx/heads.hpp"

#include <fmt/format.h>

#include <cmath>

namespace cuvil::onnx {

Dim head_size(const Dim& hidden, int64_t heads) {
    auto size = heads > 0 ? divide_exactly(hidden, heads) : std::nullopt;
    if (!size)
        throw ImportError("shape-mismatch", fmt::format("{} does not divide into {} heads", hidden.text(), heads));
    return *size;
}

double inverse_root(const Node& node, const Dim& size) {
    auto known = size.constant();
    if (!known) node.unsupported("heads whose size is open");
    return 1 / std::sqrt(static_cast<double>(*known));
}

} // namespace cuvil::onnx
