#include "sizes.hpp"

#include "console.hpp"
#include "ir/parser.hpp"
#include "support/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace cuvil::cli {

Sizes parse_symbols(const std::vector<std::string>& texts) {
    Sizes sizes;
    for (const std::string& text : texts) {
        const size_t equals = text.find('=');
        int64_t value = -1;
        if (equals != std::string::npos) {
            const char* end = text.data() + text.size();
            const auto [next, error] = std::from_chars(text.data() + equals + 1, end, value);
            if (error != std::errc() || next != end) value = -1;
        }
        if (equals == 0 || value < 0) throw UsageError(fmt::format("--size: '{}' is not of the form N=8", text));
        sizes[text.substr(0, equals)] = value;
    }
    return sizes;
}

std::set<std::string> open_sizes(const std::vector<std::string>& formulas) {
    std::set<std::string> names;
    for (const std::string& formula : formulas)
        if (const std::optional<Dim> dim = parse_dim(formula)) dim->collect_symbols(names);
    return names;
}

void expect_open(const Sizes& sizes, const std::set<std::string>& open) {
    for (const auto& [name, value] : sizes) {
        if (open.contains(name)) continue;
        if (open.empty()) throw UsageError(fmt::format("--size {}={}: the model has no open sizes", name, value));
        throw UsageError(fmt::format("--size {}={}: the model has no open size '{}'{}; it has {}", name, value, name,
                                     did_you_mean(name, {open.begin(), open.end()}), fmt::join(open, ", ")));
    }
}

std::optional<int64_t> value_of(const std::string& formula, const Sizes& sizes) {
    const std::optional<Dim> dim = parse_dim(formula);
    if (!dim) return std::nullopt;
    return dim->evaluate([&](const std::string& symbol) -> std::optional<int64_t> {
        const auto given = sizes.find(symbol);
        return given == sizes.end() ? std::nullopt : std::optional(given->second);
    });
}

} // namespace cuvil::cli
