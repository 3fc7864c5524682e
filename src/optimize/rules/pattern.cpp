#include "optimize/rules/pattern.hpp"

#include "ir/text_reader.hpp"
#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace cuvil {
namespace {

class PatternReader : private TextReader {
public:
    PatternReader(std::string_view text, const OpTable& ops, Diagnostics& diag)
        : TextReader(text, "pattern", diag), ops_(ops) {}

    // The pattern as far as it can be read; the diagnostics say what is wrong.
    Pattern read() {
        try {
            do node();
            while (peek().kind != Token::End);
        } catch (const Skip&) {
            return std::move(pattern_);
        }
        return std::move(pattern_);
    }

private:
    void node() {
        const Token& name = expect(Token::Value, "a value's name");
        if (pattern_.find(name.text.substr(1)) != Pattern::left_out)
            fail(name, fmt::format("{} stands here twice, or is used above", name.text));
        expect("=");
        const Token& op = expect(Token::Word, "the name of an op");
        PatternValue result{PatternValue::Result, std::string(name.text.substr(1)), 0, &op_of(ops_, op), {}, {}};
        if (result.op->results.size() != 1 || result.op->results[0] == "..." || !result.op->regions.empty())
            fail(op, fmt::format("{} has not one result, so no pattern", op.text));
        if (starts_operand()) do
                result.operands.push_back(operand());
            while (accept(","));
        if (accept("{")) list_until("}", [&] { result.attributes.push_back(attribute(*result.op)); });
        pattern_.values.push_back(std::move(result));
    }

    // A value with "=" behind it starts the next node.
    bool starts_operand() const {
        if (peek().kind == Token::Value) return !peek(1).is("=");
        return peek().kind == Token::Number || peek().is("-") || peek().is("_");
    }

    size_t operand() {
        if (accept("_")) return Pattern::left_out;
        if (peek().kind != Token::Value) return add({PatternValue::Number, {}, floating(), nullptr, {}, {}});
        std::string_view name = next().text.substr(1);
        size_t known = pattern_.find(name);
        return known != Pattern::left_out ? known : add({PatternValue::Variable, std::string(name), 0, {}, {}, {}});
    }

    size_t add(PatternValue value) {
        pattern_.values.push_back(std::move(value));
        return pattern_.values.size() - 1;
    }

    PatternAttribute attribute(const OpDef& op) {
        const Token& name = expect(Token::Word, "the name of an attribute");
        const AttributeDef& def = attribute_of(op, name);
        expect("=");
        if (peek().kind == Token::Value) return {std::string(def.name), {}, std::string(next().text.substr(1))};
        if (def.kind == AttributeKind::Data) expected("a variable");
        return {std::string(def.name), attribute_value(def.kind), {}};
    }

    const OpTable& ops_;
    Pattern pattern_;
};

} // namespace

size_t Pattern::find(std::string_view name) const {
    for (size_t i = 0; i < values.size(); i++)
        if (values[i].kind != PatternValue::Number && values[i].name == name) return i;
    return left_out;
}

Pattern parse_pattern(std::string_view text, const OpTable& ops) {
    Diagnostics diag;
    Pattern pattern = PatternReader(text, ops, diag).read();
    if (diag.has_errors()) throw std::invalid_argument(diag.render());
    return pattern;
}

} // namespace cuvil
