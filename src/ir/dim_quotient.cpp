#include "ir/dim_quotient.hpp"

#include <algorithm>
#include <iterator>

namespace cuvil {

std::optional<Dim> divide_exactly(const Dim& a, const Dim& b) {
    if (b.terms().size() != 1) return a == b && !b.is(0) ? std::optional(Dim(1)) : std::nullopt;
    const DimTerm& divisor = b.terms()[0];
    Dim quotient;
    for (const DimTerm& term : a.terms()) {
        if (term.coefficient % divisor.coefficient != 0) return std::nullopt;
        if (!std::includes(term.atoms.begin(), term.atoms.end(), divisor.atoms.begin(), divisor.atoms.end()))
            return std::nullopt;
        std::vector<DimAtom> rest;
        std::set_difference(term.atoms.begin(), term.atoms.end(), divisor.atoms.begin(), divisor.atoms.end(),
                            std::back_inserter(rest));
        Dim product = term.coefficient / divisor.coefficient;
        for (const DimAtom& atom : rest) {
            switch (atom.kind) {
            case DimAtom::Symbol: product = product * Dim::symbol(atom.name); break;
            case DimAtom::Min: product = product * Dim::min(atom.args[0], atom.args[1]); break;
            case DimAtom::Max: product = product * Dim::max(atom.args[0], atom.args[1]); break;
            case DimAtom::FloorDiv: product = product * Dim::floordiv(atom.args[0], atom.args[1]); break;
            }
        }
        quotient = quotient + product;
    }
    return quotient;
}

} // namespace cuvil
