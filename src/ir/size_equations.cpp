#include "ir/size_equations.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>

namespace cuvil {

namespace {

bool contains(const Dim& dim, const std::string& symbol) {
    std::set<std::string> symbols;
    dim.collect_symbols(symbols);
    return symbols.contains(symbol);
}

// As it is where the new values are too large: an equality may be missed.
Dim substituted(const Dim& dim, const std::function<std::optional<Dim>(const std::string&)>& values) {
    try {
        return dim.substitute(values);
    } catch (const DimOverflow&) {
        return dim;
    }
}

} // namespace

Dim SizeEquations::resolved(const Dim& dim) const {
    return substituted(dim, [&](const std::string& name) -> std::optional<Dim> {
        auto found = symbols_.find(name);
        return found == symbols_.end() ? std::nullopt : std::optional(found->second);
    });
}

void SizeEquations::add(const Dim& a, const Dim& b) {
    Dim left = resolved(a), right = resolved(b);
    if (left == right) return;
    auto symbol = left.as_symbol();
    if (!symbol || contains(right, *symbol)) {
        std::swap(left, right);
        symbol = left.as_symbol();
    }
    if (!symbol || contains(right, *symbol)) {
        others_.emplace_back(std::move(left), std::move(right));
        return;
    }
    auto solve = [&](const std::string& name) { return name == *symbol ? std::optional(right) : std::nullopt; };
    for (auto& [name, value] : symbols_) value = substituted(value, solve);
    for (auto& [l, r] : others_) l = substituted(l, solve), r = substituted(r, solve);
    symbols_.emplace(*symbol, right);
}

std::vector<Dim> SizeEquations::reached(const Dim& dim) const {
    std::vector<Dim> all{resolved(dim)};
    for (size_t i = 0; i < all.size(); i++)
        for (const auto& [l, r] : others_)
            for (const auto& [x, y] : {std::tie(l, r), std::tie(r, l)})
                if (x == all[i] && std::ranges::find(all, y) == all.end()) all.push_back(y);
    return all;
}

bool SizeEquations::equal(const Dim& a, const Dim& b) const {
    if (a == b) return true;
    const std::vector<Dim> all = reached(a);
    return std::ranges::find(all, resolved(b)) != all.end();
}

bool SizeEquations::equal_counts(const Shape& a, const Shape& b) const {
    // One dim stands for all that equal it.
    auto representative = [&](const Shape& shape) {
        Shape same;
        for (const Dim& dim : shape) same.push_back(std::ranges::min(reached(dim)));
        return same;
    };
    const Shape left = representative(a), right = representative(b);
    if (left == right || equal(element_count(a), element_count(b))) return true;
    try {
        return equal(element_count(left), element_count(right));
    } catch (const DimOverflow&) {
        return false;
    }
}

} // namespace cuvil
