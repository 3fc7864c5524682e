// When two attributes are the same.
#pragma once

#include "ir/attribute.hpp"

namespace cuvil {

// Floats compare by their bits: a NaN is itself, 0 and -0 differ.
bool same(const Attribute& a, const Attribute& b);

} // namespace cuvil
