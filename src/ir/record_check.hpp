// Compares one node with its op's record.
#pragma once

#include "ir/op_node.hpp"

#include <string>
#include <vector>

namespace cuvil {

// What does not fit: numbers of operands, results and regions, absent operands, dtypes, attributes, the bytes of a
// constant. Inference may run on a node when this is empty.
std::vector<std::string> check_against_record(const OpNode& node);

} // namespace cuvil
