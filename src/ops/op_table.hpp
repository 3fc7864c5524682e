// THE op table: every built-in op, one record each, one file per family.
#pragma once

#include "ir/op_def.hpp"

#include <span>
#include <vector>

namespace cuvil {

std::vector<OpDef> builtin_ops();
// A table of the built-in ops, made once.
const OpTable& builtin_op_table();

} // namespace cuvil
