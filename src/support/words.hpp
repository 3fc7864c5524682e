// Words as people write and read them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cuvil {

// "1 operand", "2 operands"
std::string counted(size_t count, std::string_view thing);
bool equal_but_for_case(std::string_view a, std::string_view b);

} // namespace cuvil
