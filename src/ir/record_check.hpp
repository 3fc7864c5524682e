// Checks of single nodes and types, for parser and verifier.
#pragma once

#include "ir/op_node.hpp"

#include <string>
#include <vector>

namespace cuvil {

// What does not fit: numbers of operands, results and regions, absent operands, dtypes, attributes, the bytes of a
// constant. Inference may run on a node when this is empty.
std::vector<std::string> check_against_record(const OpNode& node);

// Whether an operand of which this is said takes elements of the type.
bool accepts(Accepts what, DType dtype);

// What is wrong with the sizes in a shape: a symbol that is no identifier, a negative number; in a type, also too many
// bytes for 64 bits. Empty when all is well.
std::string check_sizes(const Shape& shape);
std::string check_sizes(const Type& type);

// The bytes of a tensor with a rank, whatever its layout. Throws DimOverflow.
Dim plain_bytes(const Type& type);

} // namespace cuvil
