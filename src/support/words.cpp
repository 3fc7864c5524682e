#include "support/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace cuvil {

std::string counted(size_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string some_of(const std::vector<std::string>& words) {
    if (words.size() == 1) return words[0];
    if (words.size() == 2) return words[0] + " and " + words[1];
    return fmt::format("{}, {} and {} more", words[0], words[1], words.size() - 2);
}

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool equal_but_for_case(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, lower, lower); }

} // namespace cuvil
