#include "ir/dim.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// A short text, or a chain of ops, can ask for sizes that take forever to write down.
constexpr size_t most_terms = 4096;     // of a sum
constexpr size_t most_factors = 64;     // of a term
constexpr size_t most_products = 65536; // of two sums
constexpr int most_parts = 4096;        // terms and factors in what stands in a min, max or floordiv
constexpr int most_levels = 256;        // of these within each other

class DimTooComplex : public DimOverflow {
public:
    const char* what() const noexcept override { return "a dimension has too many parts"; }
};

int64_t checked_add(int64_t a, int64_t b) {
    int64_t r;
    if (__builtin_add_overflow(a, b, &r)) throw DimOverflow();
    return r;
}

int64_t checked_multiply(int64_t a, int64_t b) {
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r)) throw DimOverflow();
    return r;
}

int64_t floor_divide(int64_t a, int64_t b) {
    if (b == -1) return checked_multiply(a, -1);
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

// Adds `term` to a sorted sum. Constants sort behind all others, as they have no atoms.
void add_term(std::vector<DimTerm>& sum, const DimTerm& term) {
    auto before = [](const DimTerm& a, const DimTerm& b) {
        if (a.atoms.empty() || b.atoms.empty()) return !a.atoms.empty();
        return a.atoms < b.atoms;
    };
    auto at = std::lower_bound(sum.begin(), sum.end(), term, before);
    if (at != sum.end() && at->atoms == term.atoms) {
        at->coefficient = checked_add(at->coefficient, term.coefficient);
        if (at->coefficient == 0) sum.erase(at);
    } else if (term.coefficient != 0) {
        if (sum.size() == most_terms) throw DimTooComplex();
        sum.insert(at, term);
    }
}

// At least this, if known: sizes are not negative, min/max/floordiv follow their arguments.
std::optional<int64_t> lower_bound_of(const DimAtom& atom) {
    if (atom.kind == DimAtom::Symbol) return 0;
    auto a = atom.args[0].lower_bound(), b = atom.args[1].lower_bound();
    switch (atom.kind) {
    case DimAtom::Min: return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
    case DimAtom::Max: return a && b ? std::max(*a, *b) : (a ? a : b);
    case DimAtom::FloorDiv: {
        auto divisor = atom.args[1].constant();
        if (a && divisor && *divisor > 0) return floor_divide(*a, *divisor);
        return std::nullopt;
    }
    case DimAtom::Symbol: break;
    }
    return std::nullopt;
}

void count_parts(const Dim& dim, int level, int& parts) {
    if (level > most_levels) throw DimTooComplex();
    for (const DimTerm& term : dim.terms()) {
        parts += 1 + static_cast<int>(term.atoms.size());
        if (parts > most_parts) throw DimTooComplex();
        for (const DimAtom& atom : term.atoms)
            for (const Dim& argument : atom.args) count_parts(argument, level + 1, parts);
    }
}

// min(a, b) and the like.
DimTerm call(DimAtom::Kind kind, Dim a, Dim b) {
    int parts = 0;
    count_parts(a, 1, parts);
    count_parts(b, 1, parts);
    return {1, {{kind, {}, {std::move(a), std::move(b)}}}};
}

} // namespace

Dim::Dim(int64_t constant) {
    if (constant != 0) terms_.push_back({constant, {}});
}
Dim::Dim(const Dim&) = default;
Dim::Dim(Dim&&) noexcept = default;
Dim& Dim::operator=(const Dim&) = default;
Dim& Dim::operator=(Dim&&) noexcept = default;
Dim::~Dim() = default;

bool Dim::operator==(const Dim& other) const { return terms_ == other.terms_; }
std::strong_ordering Dim::operator<=>(const Dim& other) const { return terms_ <=> other.terms_; }

Dim Dim::symbol(std::string name) {
    Dim d;
    d.terms_.push_back({1, {{DimAtom::Symbol, std::move(name), {}}}});
    return d;
}

Dim Dim::min(const Dim& a, const Dim& b) {
    if (auto low = (b - a).lower_bound(); low && *low >= 0) return a;
    if (auto low = (a - b).lower_bound(); low && *low >= 0) return b;
    Dim d;
    d.terms_.push_back(a < b ? call(DimAtom::Min, a, b) : call(DimAtom::Min, b, a));
    return d;
}

Dim Dim::max(const Dim& a, const Dim& b) {
    if (auto low = (a - b).lower_bound(); low && *low >= 0) return a;
    if (auto low = (b - a).lower_bound(); low && *low >= 0) return b;
    Dim d;
    d.terms_.push_back(a < b ? call(DimAtom::Max, a, b) : call(DimAtom::Max, b, a));
    return d;
}

// floordiv(c*q + r, c) = q + floordiv(r, c) for a constant c: terms that divide exactly leave.
Dim Dim::floordiv(const Dim& a, const Dim& b) {
    if (a == b && a.lower_bound().value_or(0) > 0) return 1;
    auto divisor = b.constant();
    if (divisor && *divisor == 0) throw DimOverflow();
    Dim rest = a, whole;
    if (divisor) {
        rest = Dim();
        for (const DimTerm& t : a.terms_) {
            if (t.atoms.empty()) {
                int64_t q = floor_divide(t.coefficient, *divisor);
                add_term(whole.terms_, {q, {}});
                add_term(rest.terms_, {t.coefficient - q * *divisor, {}});
            } else if (*divisor == -1 || t.coefficient % *divisor == 0) {
                add_term(whole.terms_, {floor_divide(t.coefficient, *divisor), t.atoms});
            } else {
                add_term(rest.terms_, t);
            }
        }
        if (rest.constant()) return whole; // a constant remainder below the divisor
    }
    Dim d;
    d.terms_.push_back(call(DimAtom::FloorDiv, std::move(rest), b));
    return whole + d;
}

std::optional<int64_t> Dim::constant() const {
    if (terms_.empty()) return 0;
    if (terms_.size() == 1 && terms_[0].atoms.empty()) return terms_[0].coefficient;
    return std::nullopt;
}

std::optional<std::string> Dim::as_symbol() const {
    if (terms_.size() != 1 || terms_[0].coefficient != 1 || terms_[0].atoms.size() != 1) return std::nullopt;
    const DimAtom& only = terms_[0].atoms[0];
    return only.kind == DimAtom::Symbol ? std::optional(only.name) : std::nullopt;
}

std::optional<int64_t> Dim::lower_bound() const {
    int64_t sum = 0;
    for (const DimTerm& t : terms_) {
        if (t.atoms.empty()) {
            sum = checked_add(sum, t.coefficient);
            continue;
        }
        if (t.coefficient < 0) return std::nullopt;
        int64_t product = t.coefficient;
        for (const DimAtom& a : t.atoms) {
            auto low = lower_bound_of(a);
            if (!low || *low < 0) return std::nullopt;
            product = checked_multiply(product, *low);
        }
        sum = checked_add(sum, product);
    }
    return sum;
}

void Dim::collect_symbols(std::set<std::string>& names) const {
    for (const DimTerm& t : terms_)
        for (const DimAtom& a : t.atoms) {
            if (a.kind == DimAtom::Symbol) names.insert(a.name);
            for (const Dim& d : a.args) d.collect_symbols(names);
        }
}

std::optional<int64_t> Dim::evaluate(const std::function<std::optional<int64_t>(const std::string&)>& symbol) const {
    int64_t sum = 0;
    for (const DimTerm& t : terms_) {
        int64_t product = t.coefficient;
        for (const DimAtom& a : t.atoms) {
            std::optional<int64_t> value;
            if (a.kind == DimAtom::Symbol) {
                value = symbol(a.name);
            } else {
                auto x = a.args[0].evaluate(symbol), y = a.args[1].evaluate(symbol);
                if (!x || !y) return std::nullopt;
                if (a.kind == DimAtom::Min) value = std::min(*x, *y);
                if (a.kind == DimAtom::Max) value = std::max(*x, *y);
                if (a.kind == DimAtom::FloorDiv) {
                    if (*y == 0 || (*y == -1 && *x == INT64_MIN)) return std::nullopt;
                    value = floor_divide(*x, *y);
                }
            }
            if (!value || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
        }
        if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
    }
    return sum;
}

Dim Dim::substitute(const std::function<std::optional<Dim>(const std::string&)>& symbol) const {
    Dim sum;
    for (const DimTerm& t : terms_) {
        Dim product = t.coefficient;
        for (const DimAtom& a : t.atoms) {
            Dim value;
            if (a.kind == DimAtom::Symbol) {
                value = symbol(a.name).value_or(Dim::symbol(a.name));
            } else {
                Dim x = a.args[0].substitute(symbol), y = a.args[1].substitute(symbol);
                value = a.kind == DimAtom::Min ? min(x, y) : a.kind == DimAtom::Max ? max(x, y) : floordiv(x, y);
            }
            product = product * value;
        }
        sum = sum + product;
    }
    return sum;
}

Dim operator+(const Dim& a, const Dim& b) {
    Dim sum = a;
    for (const DimTerm& t : b.terms_) add_term(sum.terms_, t);
    return sum;
}

Dim operator-(const Dim& a, const Dim& b) {
    Dim sum = a;
    for (const DimTerm& t : b.terms_) add_term(sum.terms_, {checked_multiply(t.coefficient, -1), t.atoms});
    return sum;
}

Dim operator*(const Dim& a, const Dim& b) {
    if (a.terms_.size() * b.terms_.size() > most_products) throw DimTooComplex();
    Dim product;
    for (const DimTerm& s : a.terms_)
        for (const DimTerm& t : b.terms_) {
            if (s.atoms.size() + t.atoms.size() > most_factors) throw DimTooComplex();
            DimTerm both{checked_multiply(s.coefficient, t.coefficient), s.atoms};
            both.atoms.insert(both.atoms.end(), t.atoms.begin(), t.atoms.end());
            std::sort(both.atoms.begin(), both.atoms.end());
            add_term(product.terms_, both);
        }
    return product;
}

std::string Dim::text() const {
    if (terms_.empty()) return "0";
    std::string out;
    for (const DimTerm& t : terms_) {
        bool negative = t.coefficient < 0;
        out += out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
        std::string digits = std::to_string(t.coefficient);
        if (negative) digits.erase(0, 1);
        std::string product = digits == "1" && !t.atoms.empty() ? "" : digits;
        for (const DimAtom& a : t.atoms) {
            if (!product.empty()) product += '*';
            static constexpr const char* names[] = {"", "min", "max", "floordiv"};
            product += a.kind == DimAtom::Symbol
                           ? a.name
                           : std::string(names[a.kind]) + "(" + a.args[0].text() + ", " + a.args[1].text() + ")";
        }
        out += product;
    }
    return out;
}

Equality compare(const Dim& a, const Dim& b) {
    if (a == b) return Equality::Equal;
    if (a.constant() && b.constant()) return Equality::Different; // their difference may exceed 64 bits
    return (a - b).constant() ? Equality::Different : Equality::Unknown;
}

Dim element_count(const Shape& shape) { return element_count(shape, 0, shape.size()); }

Dim element_count(const Shape& shape, size_t begin, size_t end) {
    Dim count = 1;
    for (size_t i = begin; i < end; i++) count = count * shape[i];
    return count;
}

std::string text(const Shape& shape) {
    std::string out = "[";
    for (size_t i = 0; i < shape.size(); i++) out += (i ? "," : "") + shape[i].text();
    return out + "]";
}

} // namespace cuvil
