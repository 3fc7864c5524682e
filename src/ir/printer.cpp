#include "ir/printer.hpp"

#include "ir/equality.hpp"
#include "ir/literal.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace cuvil {
namespace {

bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// The printed names of a function's values: the value's own name made printable and unique, else a number. Numbers are
// for values without a name only, so that printing what was parsed gives the same text.
class Names {
public:
    explicit Names(const Region& body) { add(body); }

    std::string operator[](const Value& value) const {
        auto found = names_.find(&value);
        return found == names_.end() ? "?" : found->second;
    }

private:
    void add(const Region& region) {
        for (const auto& argument : region.arguments()) add(*argument);
        for (const auto& node : region.nodes()) {
            for (const auto& result : node->results()) add(*result);
            for (const auto& inner : node->regions()) add(*inner);
        }
    }

    void add(const Value& value) {
        std::string base = printable(value.name());
        if (base.empty()) {
            names_[&value] = std::to_string(++numbered_);
            return;
        }
        std::string unique = base;
        for (size_t& count = suffixes_[base]; !taken_.insert(unique).second;)
            unique = base + "_" + std::to_string(++count);
        names_[&value] = unique;
    }

    static std::string printable(const std::string& name) {
        std::string out;
        bool digits_only = true;
        for (char c : name) {
            out += is_name_character(c) ? c : '_';
            digits_only = digits_only && c >= '0' && c <= '9';
        }
        return out.empty() || !digits_only ? out : "v" + out;
    }

    std::unordered_map<const Value*, std::string> names_;
    std::set<std::string> taken_;
    std::unordered_map<std::string, size_t> suffixes_;
    size_t numbered_ = 0;
};

template <class List, class Text> std::string joined(const List& list, std::string_view separator, Text text) {
    std::string out;
    for (bool first = true; const auto& element : list) {
        if (!first) out += separator;
        first = false;
        out += text(element);
    }
    return out;
}

struct AttributeText {
    const Type& type; // of the node's result, for Data

    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return float_literal(v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const std::string& v) const { return string_literal(v); }
    std::string operator()(DType v) const { return std::string(name(v)); }
    std::string operator()(const Shape& v) const { return text(v); }
    std::string operator()(const Data& v) const { return elements_literal(*v.bytes, type); }
    template <class T> std::string operator()(const std::vector<T>& list) const {
        return "[" + joined(list, ",", [&](const T& v) { return (*this)(v); }) + "]";
    }
};

std::string location_text(const Location& where) {
    if (where.empty()) return "";
    std::string file = where.file.empty() ? "" : string_literal(where.file) + " ";
    return "  loc " + file + string_literal(where.name);
}

class Printer {
public:
    explicit Printer(const Region& body) : names_(body) {}

    std::string function(const FuncIR& function) {
        out_ = "func " + function_name(function.name()) + "(";
        const auto& arguments = function.body().arguments();
        for (size_t i = 0; i < arguments.size(); i++) {
            out_ += (i ? ", " : "") + argument(*arguments[i]);
            if (i < function.inputs.size()) port(function.inputs[i], names_[*arguments[i]]);
        }
        out_ += ")" + outputs(function) + " {\n";
        nodes(function.body(), "  ");
        return out_ + "}\n";
    }

    std::string line(const OpNode& node) const {
        std::string out = joined(node.results(), ", ", [&](const auto& v) { return value(v.get()); });
        if (!out.empty()) out += " = ";
        out += node.op();
        out += shown_attribute(node);
        if (!node.operands().empty()) out += " " + joined(node.operands(), ", ", [&](Value* v) { return value(v); });
        out += attributes(node);
        if (!node.results().empty())
            out += " : " + joined(node.results(), ", ", [](const auto& v) { return v->type().text(); });
        return out + location_text(node.location());
    }

private:
    static std::string function_name(const std::string& name) {
        bool plain = !name.empty() && std::all_of(name.begin(), name.end(), is_name_character);
        return "@" + (plain ? name : string_literal(name));
    }

    std::string value(const Value* v) const { return v ? "%" + names_[*v] : "_"; }
    std::string argument(const Value& v) const { return value(&v) + ": " + v.type().text(); }

    void port(const FuncIR::Port& port, const std::string& expected) {
        if (port.name != expected) out_ += " " + string_literal(port.name);
        if (!port.default_value.empty()) out_ += " default " + string_literal(port.default_value);
    }

    static std::string outputs(const FuncIR& function) {
        const OpNode* end = function.body().terminator();
        size_t count = end ? end->operands().size() : 0;
        bool named = false;
        std::string list;
        for (size_t i = 0; i < count; i++) {
            list += (i ? ", " : "") + (end->operand(i) ? end->operand(i)->type().text() : "none");
            if (i >= function.outputs.size() || function.outputs[i].name == default_output_name(i)) continue;
            list += " " + string_literal(function.outputs[i].name);
            named = true;
        }
        return count == 1 && !named ? " -> " + list : " -> (" + list + ")";
    }

    static std::string default_output_name(size_t i) { return i == 0 ? "output" : "output_" + std::to_string(i); }

    // What a constant or weight is, which stands where others have operands.
    static std::string_view shown_name(const OpNode& node) {
        if (node.op() == "constant") return "value";
        return node.op() == "weight" ? "name" : "";
    }

    static std::string shown_attribute(const OpNode& node) {
        auto shown = node.attributes().find(shown_name(node));
        return shown == node.attributes().end() ? "" : " " + attribute_text(node, shown->second);
    }

    static std::string attribute_text(const OpNode& node, const Attribute& attribute) {
        static const Type none;
        return std::visit(AttributeText{node.results().empty() ? none : node.result().type()}, attribute);
    }

    static std::string attributes(const OpNode& node) {
        std::string list;
        for (const auto& [name, attribute] : node.attributes()) {
            const AttributeDef* def = node.def().find_attribute(name);
            bool is_default = def && def->default_value && same(*def->default_value, attribute);
            if (is_default || name == shown_name(node)) continue;
            list += (list.empty() ? "" : ", ") + name + " = " + attribute_text(node, attribute);
        }
        return list.empty() ? "" : " {" + list + "}";
    }

    void nodes(const Region& region, const std::string& indent) {
        for (const auto& node : region.nodes()) {
            out_ += indent + line(*node);
            const auto& regions = node->regions();
            for (size_t i = 0; i < regions.size(); i++) {
                (out_ += ' ') += node->def().regions[i];
                if (!regions[i]->arguments().empty())
                    out_ +=
                        " (" + joined(regions[i]->arguments(), ", ", [&](const auto& v) { return argument(*v); }) + ")";
                out_ += " {\n";
                nodes(*regions[i], indent + "  ");
                out_ += indent + "}";
            }
            out_ += '\n';
        }
    }

    Names names_;
    std::string out_;
};

} // namespace

std::string print(const FuncIR& function) { return Printer(function.body()).function(function); }

std::string print(const OpNode& node) {
    const Region* body = node.parent();
    while (body->parent()) body = body->parent()->parent();
    return Printer(*body).line(node);
}

std::string print(const Program& program) {
    std::string out;
    if (!program.name.empty()) out += "program " + string_literal(program.name) + "\n";
    for (const auto& [key, value] : program.metadata)
        out += "metadata " + string_literal(key) + " = " + string_literal(value) + "\n";
    for (const auto& [name, weight] : program.weights()) {
        out += "weight " + string_literal(name) + " : " + weight.type.text();
        if (weight.hash != Hash128{}) out += " hash " + weight.hash.text();
        out += '\n';
    }
    for (const auto& function : program.functions()) out += (out.empty() ? "" : "\n") + print(*function);
    return out;
}

} // namespace cuvil
