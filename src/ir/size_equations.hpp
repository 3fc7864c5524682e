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

private:
    Dim resolved(const Dim& dim) const;

    std::map<std::string, Dim> symbols_;      // solved for a symbol, which no other right side holds
    std::vector<std::pair<Dim, Dim>> others_; // both sides resolved
};

} // namespace cuvil
