// Shape arithmetic that moves sizes about: the known elements of small integer tensors through ops of any rank. The
// ops' own inference follows those of rank 1.
#pragma once

#include "ir/op_node.hpp"

namespace cuvil {

// Gives the result of a slice, transpose, broadcast, gather or neg the elements that follow from its operands', where
// they are known and it has none yet.
void follow_elements(OpNode& node);

} // namespace cuvil
