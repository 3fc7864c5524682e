// dtypes by their names.
#pragma once

#include "runtime/dtype_table.hpp"

#include <string_view>

namespace cuvil::rt {

// {2, 32, 1} for "f32"; bits 0 for a name that no tensor's elements have.
constexpr cuvil_dtype dtype_of(std::string_view name) {
    for (const NamedDtype& known : dtypes)
        if (known.name == name) return known.dtype;
    return {};
}

} // namespace cuvil::rt
