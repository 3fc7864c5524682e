// Symbols whose value has become known.
#pragma once

#include "ir/rewriter.hpp"

#include <map>
#include <string>

namespace cuvil {

using Sizes = std::map<std::string, Dim>;

// Puts the values in place of the symbols in all types, known elements and attributes of the region.
void substitute_sizes(Region& region, const Sizes& sizes, Rewriter& rewriter);

} // namespace cuvil
