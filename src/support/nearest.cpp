#include "support/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace cuvil {
namespace {

constexpr size_t longest = 64;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Insertions, deletions and replacements from a to b, in the row-by-row form; case does not count.
size_t edits(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < a.size(); i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b.size(); j++) {
            const size_t replaced = diagonal + (lower(a[i]) != lower(b[j]));
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

} // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& names) {
    std::string_view best;
    size_t fewest = std::min(word.size(), word.size() / 3 + 2);
    if (word.size() > longest) return best;
    for (std::string_view name : names) {
        if (name.size() > longest) continue;
        if (const size_t distance = edits(word, name); distance < fewest) {
            fewest = distance;
            best = name;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
    std::string_view name = nearest(word, {names.begin(), names.end()});
    return name.empty() ? "" : " (did you mean " + std::string(name) + "?)";
}

} // namespace cuvil
