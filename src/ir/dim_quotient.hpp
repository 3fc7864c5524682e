// Division of dimensions without a rest.
#pragma once

#include "ir/dim.hpp"

#include <optional>

namespace cuvil {

// a / b where b divides a for all symbols; nothing otherwise.
std::optional<Dim> divide_exactly(const Dim& a, const Dim& b);

} // namespace cuvil
