#include "support/nearest.hpp"

#include "support/words.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cuvil {
namespace {

constexpr size_t longest = 64;

// Insertions, deletions, replacements and swaps of neighbours from a to b, row by row (the restricted form of Damerau's
// distance); case does not count.
size_t edits(std::string_view a, std::string_view b) {
    std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
    std::iota(last.begin(), last.end(), size_t{0});
    for (size_t i = 1; i <= a.size(); i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.size(); j++) {
            const char x = lower(a[i - 1]), y = lower(b[j - 1]);
            row[j] = std::min({last[j - 1] + (x != y), row[j - 1] + 1, last[j] + 1});
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]))
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before = std::exchange(last, row);
    }
    return last.back();
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
