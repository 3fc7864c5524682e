#include "codegen/c_interface.hpp"

#include "codegen/cxx_text.hpp"

#include <algorithm>
#include <set>

namespace cuvil {
namespace {

// Words that C or C++ keep for themselves, macros that programs often have, and the beginning of the host's own names.
constexpr std::string_view taken[] = {"EOF",
                                      "I",
                                      "NULL",
                                      "alignas",
                                      "alignof",
                                      "and",
                                      "and_eq",
                                      "asm",
                                      "assert",
                                      "atomic_cancel",
                                      "atomic_commit",
                                      "atomic_noexcept",
                                      "auto",
                                      "bitand",
                                      "bitor",
                                      "bool",
                                      "break",
                                      "case",
                                      "catch",
                                      "char",
                                      "char16_t",
                                      "char32_t",
                                      "char8_t",
                                      "class",
                                      "co_await",
                                      "co_return",
                                      "co_yield",
                                      "compl",
                                      "complex",
                                      "concept",
                                      "const",
                                      "const_cast",
                                      "consteval",
                                      "constexpr",
                                      "constinit",
                                      "continue",
                                      "cuvil",
                                      "decltype",
                                      "default",
                                      "delete",
                                      "do",
                                      "double",
                                      "dynamic_cast",
                                      "else",
                                      "enum",
                                      "errno",
                                      "explicit",
                                      "export",
                                      "extern",
                                      "false",
                                      "float",
                                      "for",
                                      "friend",
                                      "goto",
                                      "if",
                                      "imaginary",
                                      "inline",
                                      "int",
                                      "int16_t",
                                      "int32_t",
                                      "int64_t",
                                      "int8_t",
                                      "isinf",
                                      "isnan",
                                      "linux",
                                      "long",
                                      "major",
                                      "max",
                                      "min",
                                      "minor",
                                      "mutable",
                                      "namespace",
                                      "new",
                                      "noexcept",
                                      "noreturn",
                                      "not",
                                      "not_eq",
                                      "nullptr",
                                      "offsetof",
                                      "operator",
                                      "or",
                                      "or_eq",
                                      "private",
                                      "protected",
                                      "public",
                                      "reflexpr",
                                      "register",
                                      "reinterpret_cast",
                                      "requires",
                                      "restrict",
                                      "return",
                                      "short",
                                      "signbit",
                                      "signed",
                                      "size_t",
                                      "sizeof",
                                      "static",
                                      "static_assert",
                                      "static_cast",
                                      "stderr",
                                      "stdin",
                                      "stdout",
                                      "struct",
                                      "switch",
                                      "synchronized",
                                      "template",
                                      "this",
                                      "thread_local",
                                      "throw",
                                      "true",
                                      "try",
                                      "typedef",
                                      "typeid",
                                      "typename",
                                      "typeof",
                                      "typeof_unqual",
                                      "uint16_t",
                                      "uint32_t",
                                      "uint64_t",
                                      "uint8_t",
                                      "union",
                                      "unix",
                                      "unsigned",
                                      "using",
                                      "virtual",
                                      "void",
                                      "volatile",
                                      "wchar_t",
                                      "while",
                                      "workspace",
                                      "xor",
                                      "xor_eq"};

std::string_view c_type(DType dtype) {
    switch (dtype) {
    case DType::F64:
    case DType::C128: return "double";
    case DType::F32:
    case DType::C64: return "float";
    case DType::F16:
    case DType::BF16:
    case DType::U16: return "uint16_t";
    case DType::I64: return "int64_t";
    case DType::I32: return "int32_t";
    case DType::I16: return "int16_t";
    case DType::I8: return "int8_t";
    case DType::U64: return "uint64_t";
    case DType::U32: return "uint32_t";
    case DType::U8:
    case DType::Bool: return "uint8_t";
    case DType::String: break;
    }
    return "";
}

bool is_complex(DType dtype) { return dtype == DType::C64 || dtype == DType::C128; }

// What the elements are, where C has no type that says it.
std::string_view remark(DType dtype) {
    return dtype == DType::Bool                          ? ", 0 or 1"
           : dtype == DType::F16 || dtype == DType::BF16 ? ", as bits"
           : is_complex(dtype)                           ? ", real and imaginary parts in turn"
                                                         : "";
}

// Text that no compiler takes for the end or the beginning of a comment.
std::string comment(std::string_view text) {
    std::string out;
    for (char c : harmless(text)) {
        if (!out.empty() && ((out.back() == '*' && c == '/') || (out.back() == '/' && c == '*'))) out += ' ';
        if (out.ends_with("??")) out += ' ';
        out += c;
    }
    return out;
}

// Names that each are used once.
class Identifiers {
public:
    std::string add(std::string_view text) {
        const std::string wanted = c_identifier(text);
        std::string name = wanted;
        for (int i = 2; !used_.insert(name).second; i++) name = wanted + "_" + std::to_string(i);
        return name;
    }

private:
    std::set<std::string> used_;
};

CValue c_value(const std::string& name, const Type& type, bool is_optional, Identifiers& identifiers) {
    CValue value{identifiers.add(name), std::string(c_type(type.dtype())), "", std::nullopt};
    value.description =
        fmt::format("\"{}\": {} {}", comment(name), is_strings(type) ? "strings" : cuvil::name(type.dtype()),
                    comment(text(type.shape())));
    value.description += remark(type.dtype());
    if (is_optional) value.description += "; may be left out";
    if (!is_strings(type))
        if (auto count = element_count(type.shape()).constant())
            value.count = *count * (is_complex(type.dtype()) ? 2 : 1);
    return value;
}

} // namespace

std::string c_identifier(std::string_view text) {
    std::string out;
    for (char c : text) {
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool is_digit = c >= '0' && c <= '9';
        const char next = is_letter || is_digit ? c : '_';
        if (next == '_' && out.ends_with('_')) continue; // two in a row are for the compiler
        out += next;
    }
    // One in front is, too, and more may be put behind.
    if (out.starts_with('_')) out.erase(0, 1);
    if (out.ends_with('_')) out.pop_back();
    if (out.empty()) return "value";
    if (out[0] >= '0' && out[0] <= '9') out.insert(0, "v");
    if (std::ranges::any_of(taken, [&](std::string_view word) { return word == out; })) out.insert(0, "v_");
    return out;
}

CInterface c_interface(const Program& program, const Plan& plan, std::string name) {
    const FuncIR& main = program.main();
    CInterface c{std::move(name), {}, {}, {}, true};
    Identifiers identifiers;
    for (const DimEntry& entry : plan.dims)
        if (auto symbol = entry.value.as_symbol(); symbol && entry.at_entry)
            c.symbols.push_back(identifiers.add(*symbol));
    for (size_t i = 0; i < main.inputs.size(); i++) {
        const Type& type = main.body().arguments()[i]->type();
        c.inputs.push_back(c_value(main.inputs[i].name, type, !main.inputs[i].default_value.empty(), identifiers));
        c.has_run &= !is_strings(type);
    }
    for (size_t i = 0; i < main.outputs.size(); i++) {
        const Type& type = main.body().terminator()->operand(i)->type();
        c.outputs.push_back(c_value(main.outputs[i].name, type, false, identifiers));
        c.has_run &= !is_strings(type) && plan.known_at_entry(type);
    }
    return c;
}

std::vector<std::string> c_names(const CInterface& c) { return {c.name + "_*"}; }

} // namespace cuvil
