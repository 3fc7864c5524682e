// What a rule looks for: a few nodes in IR syntax, `%1 = transpose %x {perm = %first}  %2 = transpose %1`. The last is
// the root, whose result the rule replaces. A name that no line defines is a variable and stands for any value, also
// for an optional operand that is left out; a name in place of an attribute's value stands for that value; attributes
// that are not written may be anything. A number as an operand is a constant, or a broadcast of one, whose elements all
// have its bits: -0.0 is not 0 for floats. Operands of commutative ops match in either order.
#pragma once

#include "ir/op_def.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

struct PatternAttribute {
    std::string name;
    std::optional<Attribute> value; // nothing: `variable`
    std::string variable;
};

struct PatternValue {
    enum Kind { Variable, Number, Result } kind = Variable;
    std::string name;             // "x" for %x; empty for a number
    double number = 0;            // Number
    const OpDef* op = nullptr;    // Result: of a node of this op, with just these operands
    std::vector<size_t> operands; // places in Pattern::values, or Pattern::left_out
    std::vector<PatternAttribute> attributes;
};

struct Pattern {
    static constexpr size_t left_out = static_cast<size_t>(-1);
    std::vector<PatternValue> values; // each behind its operands; the last is the root
    const PatternValue& root() const { return values.back(); }
    // The place of a name, or left_out where the pattern does not have it.
    size_t find(std::string_view name) const;
};

// Throws std::invalid_argument, with all that is wrong, for text that is no pattern.
Pattern parse_pattern(std::string_view text, const OpTable& ops);

} // namespace cuvil
