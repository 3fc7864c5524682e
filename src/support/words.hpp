// Words as people write and read them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

// "1 operand", "2 operands"
std::string counted(size_t count, std::string_view thing);
// "a", "a and b", "a, b and 1 more", "a, b and 2 more"; one word at least
std::string some_of(const std::vector<std::string>& words);
char lower(char c); // of ASCII
bool equal_but_for_case(std::string_view a, std::string_view b);

} // namespace cuvil
