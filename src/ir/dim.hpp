// Dimensions: integer polynomials over symbols, with min, max and floordiv as further atoms.
//
// A Dim is kept in normal form: a sorted sum of terms, each an integer times a sorted product of atoms. Two dims with
// the same normal form are equal; two that differ by a nonzero constant are different; about others nothing is known.
// Symbols stand for sizes, so they are never negative.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace cuvil {

struct DimTerm;

// A coefficient that does not fit 64 bits. Importers report it as a refusal.
class DimOverflow : public std::overflow_error {
public:
    DimOverflow() : std::overflow_error("a dimension exceeds 64 bits") {}
};

class Dim {
public:
    Dim(int64_t constant = 0); // NOLINT(google-explicit-constructor): integers are dims
    Dim(const Dim&);
    Dim(Dim&&) noexcept;
    Dim& operator=(const Dim&);
    Dim& operator=(Dim&&) noexcept;
    ~Dim();

    static Dim symbol(std::string name);
    static Dim min(const Dim& a, const Dim& b);
    static Dim max(const Dim& a, const Dim& b);
    static Dim floordiv(const Dim& a, const Dim& b);
    static Dim ceildiv(const Dim& a, const Dim& b) { return Dim(0) - floordiv(Dim(0) - a, b); }

    // The value, if it depends on no symbol.
    std::optional<int64_t> constant() const;
    bool is(int64_t value) const { return constant() == value; }
    // The symbol's name, if this is a symbol and nothing else.
    std::optional<std::string> as_symbol() const;
    // A value that this is never below, if one is known.
    std::optional<int64_t> lower_bound() const;
    void collect_symbols(std::set<std::string>& names) const;

    // The value for given symbols, in checked 64-bit; nothing on overflow, division by zero or an unknown symbol.
    std::optional<int64_t> evaluate(const std::function<std::optional<int64_t>(const std::string&)>& symbol) const;
    // The same with symbols replaced.
    Dim substitute(const std::function<std::optional<Dim>(const std::string&)>& symbol) const;

    // As in IR text: "2*N*M + floordiv(H, 2) - 1". Parsed back by ir/parser.
    std::string text() const;

    // The normal form, for code that walks it: terms in order, the constant (no atoms) last.
    const std::vector<DimTerm>& terms() const { return terms_; }

    friend Dim operator+(const Dim& a, const Dim& b);
    friend Dim operator-(const Dim& a, const Dim& b);
    friend Dim operator*(const Dim& a, const Dim& b);
    bool operator==(const Dim& other) const;
    std::strong_ordering operator<=>(const Dim& other) const;

private:
    std::vector<DimTerm> terms_;
};

struct DimAtom {
    enum Kind { Symbol, Min, Max, FloorDiv } kind = Symbol;
    std::string name;      // Symbol
    std::vector<Dim> args; // two for the others

    bool operator==(const DimAtom&) const = default;
    std::strong_ordering operator<=>(const DimAtom&) const = default;
};

struct DimTerm {
    int64_t coefficient = 0;
    std::vector<DimAtom> atoms; // sorted; an atom squared stands twice

    bool operator==(const DimTerm&) const = default;
    std::strong_ordering operator<=>(const DimTerm&) const = default;
};

enum class Equality { Equal, Different, Unknown };
Equality compare(const Dim& a, const Dim& b);

using Shape = std::vector<Dim>;
Dim element_count(const Shape& shape);
// Of the axes begin, begin + 1, ... to end, which is not counted.
Dim element_count(const Shape& shape, size_t begin, size_t end);
// "[N,3,8,8]"
std::string text(const Shape& shape);

} // namespace cuvil
