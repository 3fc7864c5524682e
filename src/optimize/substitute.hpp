// Puts what is known of symbols in their place, everywhere in a region.
#pragma once

#include "ir/rewriter.hpp"

#include <map>
#include <string>

namespace cuvil {

// Symbols and what they are.
using Sizes = std::map<std::string, Dim>;

Dim substituted(const Dim& dim, const Sizes& sizes);
Type substituted(const Type& type, const Sizes& sizes);
// In the types and known elements of all values, and in attributes. Throws DimOverflow where a value gets too large.
void substitute(Region& region, const Sizes& sizes, Rewriter& rewriter);
// Whether all that the region requires may still hold with these sizes. Where it cannot, a node that relies on it would
// have operands that do not fit: the sizes are then not put in, and the requirement fails with its sentence while
// running.
bool may_hold(const Region& region, const Sizes& sizes);

} // namespace cuvil
