#include "support/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace cuvil {

std::string counted(size_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

bool equal_but_for_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

} // namespace cuvil
