// Which sizes are equal, beyond their normal forms, by what a program requires.
#pragma once

#include "ir/dim.hpp"

#include <map>
#include <utility>
#include <vector>

namespace cuvil {

class SizeEquations {
public:
    // From now on a equals b: a `require` checks it.
    void add(const Dim& a, const Dim& b);
    // Whether a equals b for all sizes that satisfy the equations. May miss an equality, never invents one.
    bool equal(const Dim& a, const Dim& b) const;
    // The same for the numbers of elements, where the sizes in the shapes may be equal one by one or only as products.
    bool equal_counts(const Shape& a, const Shape& b) const;

private:
    Dim resolved(const Dim& dim) const;
    // All that the dim is known to equal, itself first.
    std::vector<Dim> reached(const Dim& dim) const;

    std::map<std::string, Dim> symbols_;      // solved for a symbol, which no other right side holds
    std::vector<std::pair<Dim, Dim>> others_; // both sides resolved
};

} // namespace cuvil
