#include "ir/record_check.hpp"

#include "ir/literal.hpp"
#include "support/diagnostics.hpp"
#include "support/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace cuvil {
namespace {

bool accepts(Accepts what, const Type& type) {
    if (what == Accepts::Any) return true;
    return (type.is_tensor() || type.kind() == Type::Kind::Scalar) && cuvil::accepts(what, type.dtype());
}

std::string_view in_words(Accepts what) {
    static constexpr std::array<std::string_view, 7> words = {
        "any value", "floating-point numbers", "integers", "numbers", "bool values", "i64 or i32", "f32"};
    return words[static_cast<size_t>(what)];
}

void check_operands(const OpNode& node, std::vector<std::string>& wrong) {
    const auto& defs = node.def().operands;
    bool variadic = !defs.empty() && defs.back().arity == OperandDef::Variadic;
    size_t most = defs.size(), given = node.operands().size();
    size_t least = 0;
    for (size_t i = 0; i < defs.size(); i++)
        if (defs[i].arity == OperandDef::One) least = i + 1;
    if (given < least || (given > most && !variadic)) {
        std::string_view bound = variadic || least < most ? (given < least ? "at least " : "at most ") : "";
        wrong.push_back(fmt::format("{} takes {}{}, got {}", node.op(), bound,
                                    counted(given < least ? least : most, "operand"), given));
        return;
    }
    for (size_t i = 0; i < given; i++) {
        const OperandDef& def = defs[std::min(i, defs.size() - 1)];
        const Value* operand = node.operand(i);
        if (!operand) {
            if (def.arity != OperandDef::Optional)
                wrong.push_back(fmt::format("operand '{}' of {} cannot be left out", def.name, node.op()));
        } else if (!accepts(def.accepts, operand->type())) {
            wrong.push_back(fmt::format("operand '{}' of {} takes {}, got {}", def.name, node.op(),
                                        in_words(def.accepts), operand->type().text()));
        }
    }
}

void check_attributes(const OpNode& node, std::vector<std::string>& wrong) {
    for (const auto& [name, attribute] : node.attributes()) {
        const AttributeDef* def = node.def().find_attribute(name);
        if (!def)
            wrong.push_back(fmt::format("{} has no attribute '{}'", node.op(), name));
        else if (def->kind != kind_of(attribute))
            wrong.push_back(fmt::format("attribute '{}' of {} is a {}, expected a {}", name, node.op(),
                                        cuvil::name(kind_of(attribute)), cuvil::name(def->kind)));
    }
    for (const AttributeDef& def : node.def().attributes)
        if (!def.default_value && !node.attributes().contains(def.name))
            wrong.push_back(fmt::format("attribute '{}' of {} is missing", def.name, node.op()));
}

void check_results(const OpNode& node, std::vector<std::string>& wrong) {
    const auto& defs = node.def().results;
    bool variadic = !defs.empty() && defs.back() == "...";
    size_t given = node.results().size(), least = variadic ? defs.size() - 1 : defs.size();
    if (given < least || (given > least && !variadic))
        wrong.push_back(fmt::format("{} has {}{}, got {}", node.op(), variadic ? "at least " : "",
                                    counted(least, "result"), given));
    if (node.regions().size() != node.def().regions.size())
        wrong.push_back(fmt::format("{} has {}, got {}", node.op(), counted(node.def().regions.size(), "region"),
                                    node.regions().size()));
}

// Bytes written with elements_literal in another form than "bytes" fit their type.
void check_data(const OpNode& node, std::vector<std::string>& wrong) {
    for (const auto& [name, attribute] : node.attributes()) {
        const auto* data = std::get_if<Data>(&attribute);
        if (!data) continue;
        const Type type = node.results().empty() ? Type() : node.result().type();
        if (elements_literal(*data->bytes, type).starts_with("bytes"))
            wrong.push_back(fmt::format("the {} bytes of attribute '{}' are no value of {}", data->bytes->size(), name,
                                        type.text()));
    }
}

bool is_symbol(const std::string& name) {
    auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    auto letter_or_digit = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
    return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), letter_or_digit);
}

} // namespace

bool accepts(Accepts what, DType dtype) {
    switch (what) {
    case Accepts::Any: return true;
    case Accepts::Floating: return is_floating(dtype);
    case Accepts::Integer: return is_integer(dtype);
    case Accepts::Number: return is_floating(dtype) || is_integer(dtype);
    case Accepts::Bool: return dtype == DType::Bool;
    case Accepts::Index: return dtype == DType::I64 || dtype == DType::I32;
    case Accepts::F32: return dtype == DType::F32;
    }
    return false;
}

std::string check_sizes(const Shape& shape) {
    std::set<std::string> symbols;
    for (const Dim& d : shape) d.collect_symbols(symbols);
    for (const std::string& symbol : symbols)
        if (!is_symbol(symbol)) return fmt::format("{} is no name for a size", quoted(symbol));
    for (const Dim& d : shape)
        if (auto size = d.constant(); size && *size < 0) return fmt::format("a size cannot be {}", *size);
    return {};
}

Dim plain_bytes(const Type& type) {
    return element_count(type.shape()) * static_cast<int64_t>(std::max<size_t>(size_of(type.dtype()), 1));
}

std::string check_sizes(const Type& type) {
    std::string wrong;
    if (type.has_rank()) wrong = check_sizes(type.shape());
    try {
        if (type.has_rank()) (void)plain_bytes(type);
    } catch (const DimOverflow& error) {
        return fmt::format("{} in the bytes of {}", error.what(), type.text());
    }
    for (const Type& element : type.elements())
        if (wrong.empty()) wrong = check_sizes(element);
    return wrong;
}

std::vector<std::string> check_against_record(const OpNode& node) {
    std::vector<std::string> wrong;
    check_operands(node, wrong);
    check_attributes(node, wrong);
    check_results(node, wrong);
    check_data(node, wrong);
    return wrong;
}

} // namespace cuvil
