#include "ir/text_reader.hpp"

#include "ir/literal.hpp"
#include "ir/record_check.hpp"
#include "support/diagnostics.hpp"
#include "support/nearest.hpp"
#include "support/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil {
namespace {

constexpr int most_nesting = 400;   // regions, types and dims within each other
constexpr size_t most_errors = 20;  // then reading stops
constexpr size_t most_terms = 4096; // of a dim
constexpr size_t most_factors = 64; // of a term
constexpr size_t longest_excerpt = 160;

bool is_symbol(std::string_view name) { return name.find('.') == std::string_view::npos; }

std::string printable(std::string_view text) {
    std::string literal = string_literal(text);
    return literal.substr(1, literal.size() - 2);
}

std::string shown(const Literals::Element& e) {
    return e.token.kind == Token::String ? e.text() : "'" + printable(e.text().substr(0, 40)) + "'";
}

} // namespace

TextReader::TextReader(std::string_view text, std::string_view file, Diagnostics& diag)
    : text_(text), file_(file), diag_(diag), tokens_(tokenize(text)) {}

TextReader::Nesting::Nesting(TextReader& reader) : reader_(reader) {
    if (++reader_.nesting_ > most_nesting) {
        reader_.nesting_--;
        reader_.fail(reader_.peek(), fmt::format("more than {} levels within each other", most_nesting));
    }
}

// ---- Tokens

const Token& TextReader::peek(size_t ahead) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
const Token& TextReader::next() {
    const Token& token = peek();
    if (token.kind != Token::End) at_++;
    return token;
}

bool TextReader::accept(std::string_view text) {
    if (!peek().is(text)) return false;
    next();
    return true;
}

void TextReader::expect(std::string_view text) {
    if (!accept(text)) expected(fmt::format("'{}'", text));
}

const Token& TextReader::expect(Token::Kind kind, std::string_view what) {
    if (peek().kind != kind) expected(what);
    return next();
}

// ---- Errors

void TextReader::expected(std::string_view what) {
    const Token& found = peek();
    if (found.kind == Token::End) fail(found, fmt::format("expected {}, found the end of the text", what));
    if (found.kind == Token::Bad && found.text.find('"') != std::string_view::npos)
        fail(found, "the string does not end on its line");
    std::string_view shown = found.text.substr(0, 40);
    fail(found, fmt::format("expected {}, found {}", what,
                            found.kind == Token::String ? string_literal(shown) : "'" + printable(shown) + "'"));
}

void TextReader::fail(const Token& at, std::string message, std::string help) {
    report(at, std::move(message), "ir-syntax", std::move(help));
    throw Skip{};
}

void TextReader::report(const Token& at, std::string message, const char* code, std::string help) {
    errors_++;
    auto offset = static_cast<size_t>(at.text.data() - text_.data());
    size_t line_start = offset == 0 ? 0 : text_.rfind('\n', offset - 1) + 1; // npos + 1 is 0
    auto line = std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(offset), '\n') + 1;
    auto is_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
    auto column = std::count_if(text_.begin() + static_cast<ptrdiff_t>(line_start),
                                text_.begin() + static_cast<ptrdiff_t>(offset), is_character) +
                  1;
    std::string_view excerpt = text_.substr(line_start, text_.find('\n', line_start) - line_start);
    excerpt.remove_prefix(std::min(excerpt.find_first_not_of(" \t\r"), excerpt.size()));
    excerpt = excerpt.substr(0, excerpt.find_last_not_of(" \t\r") + 1);
    if (excerpt.size() > longest_excerpt) {
        size_t end = longest_excerpt;
        while (end > 0 && !is_character(excerpt[end])) end--;
        excerpt = excerpt.substr(0, end);
    }
    Diagnostic& error = diag_.error(code, std::move(message), {fmt::format("{}:{}:{}", file_, line, column), {}});
    if (!excerpt.empty()) error.show(std::string(excerpt));
    if (!help.empty()) error.suggest(std::move(help));
    if (errors_ >= most_errors) throw TooManyErrors{};
}

// ---- Names

const OpDef& TextReader::op_of(const OpTable& ops, const Token& name) {
    if (const OpDef* def = ops.find(name.text)) return *def;
    std::vector<std::string_view> names;
    for (const OpDef& def : ops.all()) names.push_back(def.name);
    std::string_view near = nearest(name.text, names);
    fail(name, fmt::format("there is no op {}", quoted(name.text)),
         near.empty() ? "" : "the nearest name is " + quoted(near));
}

const AttributeDef& TextReader::attribute_of(const OpDef& op, const Token& name) {
    if (const AttributeDef* def = op.find_attribute(name.text)) return *def;
    std::vector<std::string_view> names;
    for (const AttributeDef& a : op.attributes) names.push_back(a.name);
    std::string_view near = nearest(name.text, names);
    fail(name, fmt::format("{} has no attribute {}", op.name, quoted(name.text)),
         near.empty() ? "" : "the nearest name is " + quoted(near));
}

// ---- Literals

std::string TextReader::string() {
    const Token& token = expect(Token::String, "a string in quotes");
    auto text = read_string_literal(token.text);
    if (!text) fail(token, "the string has an unknown escape; there are \\\\, \\\", \\n, \\t and \\xNN");
    return *text;
}

int64_t TextReader::integer() {
    const Token& start = peek();
    bool negative = accept("-");
    const Token& digits = expect(Token::Number, "an integer");
    auto value = read_integer_literal((negative ? "-" : "") + std::string(digits.text));
    if (!value) fail(start, fmt::format("'{}{}' is no 64-bit integer", negative ? "-" : "", digits.text));
    return *value;
}

double TextReader::floating() {
    const Token& start = peek();
    Literals::Element e = element("a number");
    auto value = read_float_literal(e.text());
    if (!value) fail(start, fmt::format("{} is no floating-point number", shown(e)));
    return *value;
}

Attribute TextReader::attribute_value(AttributeKind kind) {
    switch (kind) {
    case AttributeKind::Int: return integer();
    case AttributeKind::Float: return floating();
    case AttributeKind::Bool: return boolean();
    case AttributeKind::String: return string();
    case AttributeKind::DType: return dtype();
    case AttributeKind::Ints: return bracketed(&TextReader::integer);
    case AttributeKind::Floats: return bracketed(&TextReader::floating);
    case AttributeKind::Strings: return bracketed(&TextReader::string);
    case AttributeKind::Dims: return shape();
    case AttributeKind::Data: break;
    }
    internal_error(__FILE_NAME__, __LINE__, "a constant is no plain attribute");
}

bool TextReader::boolean() {
    if (accept("true")) return true;
    if (accept("false")) return false;
    expected("true or false");
}

DType TextReader::dtype() {
    const Token& word = expect(Token::Word, "a dtype");
    auto dtype = dtype_from_name(word.text);
    if (!dtype) fail(word, fmt::format("{} is no dtype", quoted(word.text)));
    return *dtype;
}

Literals::Element TextReader::element(std::string_view what) {
    Literals::Element e;
    e.negative = accept("-");
    e.token = peek();
    if (e.token.kind != Token::Number && e.token.kind != Token::Word && (e.negative || e.token.kind != Token::String))
        expected(what);
    next();
    return e;
}

Literals TextReader::literals() {
    Literals all;
    all.first = peek();
    all.bracketed = accept("[");
    if (!all.bracketed)
        all.elements.push_back(element("a constant's value"));
    else
        list_until("]", [&] { all.elements.push_back(element("an element")); });
    return all;
}

std::string TextReader::bytes_of(const Literals& literals, const Type& type) {
    auto count = literal_count(type);
    if (!count) fail(literals.first, fmt::format("a constant cannot be {}", type.text()));
    if (static_cast<size_t>(*count) != literals.elements.size())
        fail(literals.first,
             fmt::format("{} for {}, which has {}", counted(literals.elements.size(), "element"), type.text(), *count));
    DType dtype = type.kind() == Type::Kind::String ? DType::String : type.dtype();
    std::string bytes;
    for (const auto& e : literals.elements)
        if (!append_element(dtype, e.text(), bytes))
            fail(e.token, fmt::format("{} is no value of {}", shown(e), name(dtype)));
    return bytes;
}

// ---- Dims and types

Dim TextReader::dim() {
    Nesting guard(*this);
    const Token& start = peek();
    try {
        bool negative = accept("-");
        Dim sum = term(negative);
        while (peek().is("+") || peek().is("-")) {
            negative = next().text == "-";
            sum = sum + term(negative);
            if (sum.terms().size() > most_terms) fail(start, "the dimension has too many terms");
        }
        return sum;
    } catch (const DimOverflow& error) {
        fail(start, error.what());
    }
}

Type TextReader::type() {
    Nesting guard(*this);
    const Token& word = peek();
    if (word.kind != Token::Word) expected("a type");
    next();
    if (word.is("none")) return {};
    if (word.is("list")) return Type::list(in_angles(&TextReader::type));
    if (word.is("optional")) return Type::optional(in_angles(&TextReader::type));
    if (word.is("tuple")) return Type::tuple(in_angles(&TextReader::types_until_angle));
    if (word.is("object")) return Type::object(in_angles(&TextReader::string));
    auto dtype = dtype_from_name(word.text);
    if (!dtype) fail(word, fmt::format("{} is no type", quoted(word.text)));
    if (!peek().is("[")) return *dtype == DType::String ? Type::string() : Type::scalar(*dtype);
    if (peek(1).is("*")) {
        at_ += 2;
        expect("]");
        return with_layout(Type::tensor_of_unknown_rank(*dtype));
    }
    Shape sizes = shape();
    if (std::string bad = check_sizes(sizes); !bad.empty()) fail(word, std::move(bad));
    return with_layout(Type::tensor(*dtype, std::move(sizes)));
}

Shape TextReader::shape() { return bracketed(&TextReader::dim); }

Dim TextReader::term(bool negative) {
    const Token& start = peek();
    Dim product = negative ? -1 : 1;
    if (start.kind == Token::Number) {
        next();
        // With its sign, as the least integer has no positive counterpart.
        auto value = read_integer_literal((negative ? "-" : "") + std::string(start.text));
        if (!value) fail(start, fmt::format("'{}' is no 64-bit integer", start.text));
        product = *value;
    } else {
        product = product * atom();
    }
    for (size_t factors = 1; accept("*"); factors++) {
        Dim factor = peek().kind == Token::Number ? Dim(integer()) : atom();
        if (factors >= most_factors || product.terms().size() * factor.terms().size() > most_terms)
            fail(start, "the dimension has too many factors");
        product = product * factor;
        for (const DimTerm& t : product.terms())
            if (t.atoms.size() > most_factors) fail(start, "the dimension has too many factors");
    }
    return product;
}

Dim TextReader::atom() {
    const Token& word = peek();
    if (word.kind != Token::Word || !is_symbol(word.text)) expected("a size");
    next();
    auto function = word.is("min")        ? Dim::min
                    : word.is("max")      ? Dim::max
                    : word.is("floordiv") ? Dim::floordiv
                                          : nullptr;
    if (!function || !accept("(")) {
        symbols_.emplace(word.text);
        return Dim::symbol(std::string(word.text));
    }
    Dim a = dim();
    expect(",");
    Dim b = dim();
    expect(")");
    return function(a, b);
}

std::vector<Type> TextReader::types_until_angle() {
    std::vector<Type> all;
    if (peek().is(">")) return all;
    do all.push_back(type());
    while (accept(","));
    return all;
}

Type TextReader::with_layout(Type type) {
    auto kind = peek().is("{") && peek(2).is(",") ? layout_kind(peek(1).text) : std::nullopt;
    if (!kind) return type;
    Layout l;
    l.kind = *kind;
    at_ += 3;
    expect("halo");
    expect("=");
    const Token& start = peek();
    Shape halo = shape();
    if (halo.size() != 4) fail(start, "a halo has four sizes: top, left, bottom, right");
    l.top = halo[0], l.left = halo[1], l.bottom = halo[2], l.right = halo[3];
    expect("}");
    return type.with_layout(std::move(l));
}

} // namespace cuvil
