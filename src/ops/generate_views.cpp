// Writes ops/views.hpp: for each record of the op table a typed view with an accessor for each operand, attribute,
// result and region. Usage: generate_views FILE
#include "ops/op_table.hpp"
#include "support/file.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <exception>
#include <map>
#include <set>
#include <string>

namespace cuvil {
namespace {

// Views whose name is not the op's name in camel case.
const std::map<std::string_view, std::string_view> view_names = {{"matmul", "MatMulOp"}};

// "max_pool2d" -> "MaxPool2dOp"
std::string view_name(std::string_view op) {
    if (auto given = view_names.find(op); given != view_names.end()) return std::string(given->second);
    std::string out;
    bool upper = true;
    for (char c : op) {
        bool separates = c == '_' || c == '.';
        if (!separates) out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
        upper = separates;
    }
    return out + "Op";
}

// Words that C++ or OpView keeps for itself get an underscore.
std::string accessor_name(std::string_view name) {
    static const std::set<std::string_view> taken = {
        "and",    "bool",  "case",   "default", "delete",   "do",   "double",  "else",     "float", "for",
        "if",     "int",   "long",   "new",     "node",     "not",  "op_name", "operator", "or",    "register",
        "return", "short", "signed", "switch",  "template", "this", "union",   "unsigned", "while", "xor"};
    return std::string(name) + (taken.contains(name) ? "_" : "");
}

std::string operand_accessor(const OperandDef& operand, size_t i) {
    std::string name = accessor_name(operand.name);
    switch (operand.arity) {
    case OperandDef::One: return fmt::format("Value& {}() const {{ return *node().operand({}); }}", name, i);
    case OperandDef::Optional:
        return fmt::format("Value* {}() const {{ return node().operand({}); }} // nullptr: left out", name, i);
    case OperandDef::Variadic:
        return fmt::format("std::span<Value* const> {0}() const {{ return rest_of(node().operands(), {1}); }}", name,
                           i);
    }
    return {};
}

std::string attribute_accessor(const AttributeDef& attribute) {
    struct Names {
        std::string_view stored, returned;
    };
    // In the order of AttributeKind.
    static constexpr std::array<Names, 10> types = {{{"int64_t", "int64_t"},
                                                     {"double", "double"},
                                                     {"bool", "bool"},
                                                     {"std::string", "const std::string&"},
                                                     {"DType", "DType"},
                                                     {"std::vector<int64_t>", "const std::vector<int64_t>&"},
                                                     {"std::vector<double>", "const std::vector<double>&"},
                                                     {"std::vector<std::string>", "const std::vector<std::string>&"},
                                                     {"Shape", "const Shape&"},
                                                     {"Data", "const Data&"}}};
    const Names& type = types[static_cast<size_t>(attribute.kind)];
    return fmt::format("{} {}() const {{ return node().get<{}>(\"{}\"); }}", type.returned,
                       accessor_name(attribute.name), type.stored, attribute.name);
}

std::string result_accessor(std::string_view result, size_t i) {
    if (result == "...")
        return fmt::format(
            "std::span<const std::unique_ptr<Value>> results() const {{ return rest_of(node().results(), {}); }}", i);
    return fmt::format("Value& {}() const {{ return node().result({}); }}", accessor_name(result), i);
}

std::string view(const OpDef& def) {
    std::string out = fmt::format("\n// {}\nclass {} : public OpView {{\npublic:\n    using OpView::OpView;\n",
                                  def.summary, view_name(def.name));
    auto line = [&](const std::string& text) { out += "    " + text + "\n"; };
    line(fmt::format("static constexpr std::string_view op_name = \"{}\";", def.name));
    for (size_t i = 0; i < def.operands.size(); i++) line(operand_accessor(def.operands[i], i));
    for (const AttributeDef& attribute : def.attributes) line(attribute_accessor(attribute));
    for (size_t i = 0; i < def.results.size(); i++) line(result_accessor(def.results[i], i));
    for (size_t i = 0; i < def.regions.size(); i++)
        line(fmt::format("Region& {}_region() const {{ return node().region({}); }}", def.regions[i], i));
    return out + "};\n";
}

constexpr const char* head = R"(// Generated from the op table: a typed view of each op.
#pragma once

#include "ir/op_node.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

// The elements from `first` on.
template <class List> auto rest_of(const List& list, size_t first) {
    return std::span(list).subspan(std::min(first, list.size()));
}
)";

std::string header() {
    std::string out = head;
    for (const OpDef& def : builtin_ops()) out += view(def);
    return out + "\n} // namespace cuvil\n";
}

} // namespace
} // namespace cuvil

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    try {
        cuvil::write_atomically(argv[1], [](int fd) { cuvil::write_all(fd, cuvil::header()); });
    } catch (const std::exception& error) {
        std::fprintf(stderr, "generate_views: %s: %s\n", argv[1], error.what());
        return 1;
    }
    return 0;
}
