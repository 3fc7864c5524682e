// A parser by recursive descent that builds nodes as it reads them. An error skips to the next line of the same region,
// so that one run reports what is wrong everywhere; names that a skipped line defines are known but stand for nothing,
// so that their uses are not reported again. Sizes are bounded where text could make the work grow faster than itself.
#include "ir/parser.hpp"

#include "ir/lexer.hpp"
#include "ir/literal.hpp"
#include "ir/record_check.hpp"
#include "ir/rewriter.hpp"
#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <unordered_map>

namespace cuvil {
namespace {

constexpr int most_nesting = 100;   // regions, types and dims within each other
constexpr size_t most_errors = 20;  // then the parser stops
constexpr size_t most_terms = 256;  // of a dim
constexpr size_t most_factors = 64; // of a term
constexpr size_t longest_excerpt = 160;

struct Skip {}; // the rest of a line, after an error was reported
struct TooManyErrors {};

std::string counted(size_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

bool is_symbol(std::string_view name) { return name.find('.') == std::string_view::npos; }

// The candidate with the fewest edits to `name`; none when all are far.
template <class Names> std::string nearest(std::string_view name, const Names& candidates) {
    std::string best;
    size_t fewest = name.size() / 3 + 1;
    if (name.size() > 64) return best;
    for (std::string_view candidate : candidates) {
        if (candidate.size() > 64) continue;
        std::vector<size_t> row(candidate.size() + 1);
        std::iota(row.begin(), row.end(), size_t{0});
        for (size_t i = 1; i <= name.size(); i++) {
            size_t diagonal = row[0]++;
            for (size_t k = 1; k < row.size(); k++) {
                size_t replaced = diagonal + (name[i - 1] != candidate[k - 1]);
                diagonal = row[k];
                row[k] = std::min({replaced, row[k] + 1, row[k - 1] + 1});
            }
        }
        if (row.back() < fewest || (row.back() == fewest && best.empty())) {
            fewest = row.back();
            best = candidate;
        }
    }
    return best;
}

// The elements of a constant, before their dtype is known.
struct Literals {
    Token first;
    bool bracketed = false;
    struct Element {
        Token token;
        bool negative = false;
        std::string text() const { return (negative ? "-" : "") + std::string(token.text); }
    };
    std::vector<Element> elements;
};

class Parser {
public:
    Parser(std::string_view text, std::string_view file, Diagnostics& diag)
        : text_(text), file_(file), diag_(diag), tokens_(tokenize(text)) {}

    std::optional<Program> program(const OpTable& ops) {
        program_.emplace(ops);
        try {
            while (peek().kind != Token::End) {
                size_t start = at_;
                try {
                    item();
                } catch (const Skip&) {
                    skip_item(start);
                }
            }
            if (program_->functions().empty() && errors_ == 0)
                report(peek(), "expected a function, found the end of the text");
        } catch (const TooManyErrors&) {
        }
        if (errors_ != 0) return std::nullopt;
        return std::move(program_);
    }

    template <class Read> auto whole(Read read) -> std::optional<decltype((this->*read)())> {
        try {
            auto result = (this->*read)();
            if (peek().kind == Token::End) return result;
        } catch (const Skip&) {
        }
        return std::nullopt;
    }

    Dim dim() {
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

    Type type() {
        Nesting guard(*this);
        const Token& word = peek();
        if (word.kind != Token::Word) expected("a type");
        next();
        if (word.is("none")) return {};
        if (word.is("list")) return Type::list(in_angles(&Parser::type));
        if (word.is("optional")) return Type::optional(in_angles(&Parser::type));
        if (word.is("tuple")) return Type::tuple(in_angles(&Parser::types_until_angle));
        if (word.is("object")) return Type::object(in_angles(&Parser::string));
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

private:
    struct Nesting {
        explicit Nesting(Parser& p) : parser(p) {
            if (++parser.nesting_ > most_nesting) {
                parser.nesting_--;
                parser.fail(parser.peek(), fmt::format("more than {} levels within each other", most_nesting));
            }
        }
        ~Nesting() { parser.nesting_--; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;
        Parser& parser;
    };

    // Tokens.
    const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
    const Token& next() {
        const Token& token = peek();
        if (token.kind != Token::End) at_++;
        return token;
    }
    bool accept(std::string_view text) {
        if (!peek().is(text)) return false;
        next();
        return true;
    }
    void expect(std::string_view text) {
        if (!accept(text)) expected(fmt::format("'{}'", text));
    }
    const Token& expect(Token::Kind kind, std::string_view what) {
        if (peek().kind != kind) expected(what);
        return next();
    }

    // Errors.
    [[noreturn]] void expected(std::string_view what) {
        const Token& found = peek();
        if (found.kind == Token::End) fail(found, fmt::format("expected {}, found the end of the text", what));
        if (found.kind == Token::Bad && found.text.find('"') != std::string_view::npos)
            fail(found, "the string does not end on its line");
        std::string_view shown = found.text.substr(0, 40);
        fail(found, fmt::format("expected {}, found {}", what,
                                found.kind == Token::String ? string_literal(shown) : "'" + printable(shown) + "'"));
    }
    static std::string printable(std::string_view text) {
        std::string literal = string_literal(text);
        return literal.substr(1, literal.size() - 2);
    }
    [[noreturn]] void fail(const Token& at, std::string message, std::string help = {}) {
        report(at, std::move(message), "ir-syntax", std::move(help));
        throw Skip{};
    }
    void report(const Token& at, std::string message, const char* code = "ir-syntax", std::string help = {}) {
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

    // To the next line that starts at the left edge with a word.
    void skip_item(size_t start) {
        auto at_left_edge = [&](const Token& t) { return t.text.data() == text_.data() || t.text.data()[-1] == '\n'; };
        at_ = std::max(at_, start + 1);
        while (peek().kind != Token::End && !(peek().kind == Token::Word && peek().starts_line && at_left_edge(peek())))
            at_++;
    }

    // To the next line of the region, past the braces that open on this one; remembers the names that it would define.
    void skip_statement(size_t start) {
        at_ = start;
        for (size_t i = 0; peek(i).kind == Token::Value && (peek(i + 1).is(",") || peek(i + 1).is("=")); i += 2)
            if (values_.try_emplace(peek(i).text, nullptr).second) scope_.push_back(peek(i).text);
        for (size_t depth = 0; peek().kind != Token::End; next()) {
            if (depth == 0 && at_ != start && (peek().starts_line || peek().is("}"))) return;
            if (peek().is("{")) depth++;
            if (peek().is("}")) depth--;
        }
    }

    // Literals.
    std::string string() {
        const Token& token = expect(Token::String, "a string in quotes");
        auto text = read_string_literal(token.text);
        if (!text) fail(token, "the string has an unknown escape; there are \\\\, \\\", \\n, \\t and \\xNN");
        return *text;
    }

    int64_t integer() {
        const Token& start = peek();
        bool negative = accept("-");
        const Token& digits = expect(Token::Number, "an integer");
        auto value = read_integer_literal((negative ? "-" : "") + std::string(digits.text));
        if (!value) fail(start, fmt::format("'{}{}' is no 64-bit integer", negative ? "-" : "", digits.text));
        return *value;
    }

    double floating() {
        const Token& start = peek();
        Literals::Element e = element("a number");
        auto value = read_float_literal(e.text());
        if (!value) fail(start, fmt::format("{} is no floating-point number", shown(e)));
        return *value;
    }

    bool boolean() {
        if (accept("true")) return true;
        if (accept("false")) return false;
        expected("true or false");
    }

    DType dtype() {
        const Token& word = expect(Token::Word, "a dtype");
        auto dtype = dtype_from_name(word.text);
        if (!dtype) fail(word, fmt::format("{} is no dtype", quoted(word.text)));
        return *dtype;
    }

    Literals::Element element(std::string_view what) {
        Literals::Element e;
        e.negative = accept("-");
        e.token = peek();
        if (e.token.kind != Token::Number && e.token.kind != Token::Word &&
            (e.negative || e.token.kind != Token::String))
            expected(what);
        next();
        return e;
    }

    static std::string shown(const Literals::Element& e) {
        return e.token.kind == Token::String ? e.text() : "'" + printable(e.text().substr(0, 40)) + "'";
    }

    Literals literals() {
        Literals all;
        all.first = peek();
        all.bracketed = accept("[");
        if (!all.bracketed)
            all.elements.push_back(element("a constant's value"));
        else
            list_until("]", [&] { all.elements.push_back(element("an element")); });
        return all;
    }

    std::string bytes_of(const Literals& literals, const Type& type) {
        auto count = literal_count(type);
        if (!count) fail(literals.first, fmt::format("a constant cannot be {}", type.text()));
        if (static_cast<size_t>(*count) != literals.elements.size())
            fail(literals.first, fmt::format("{} for {}, which has {}", counted(literals.elements.size(), "element"),
                                             type.text(), *count));
        DType dtype = type.kind() == Type::Kind::String ? DType::String : type.dtype();
        std::string bytes;
        for (const auto& e : literals.elements)
            if (!append_element(dtype, e.text(), bytes))
                fail(e.token, fmt::format("{} is no value of {}", shown(e), name(dtype)));
        return bytes;
    }

    template <class Read> void list_until(std::string_view end, Read read) {
        if (accept(end)) return;
        do read();
        while (accept(","));
        expect(end);
    }

    template <class T> std::vector<T> bracketed(T (Parser::*read)()) {
        std::vector<T> list;
        expect("[");
        list_until("]", [&] { list.push_back((this->*read)()); });
        return list;
    }

    // Dims and types.
    Shape shape() { return bracketed(&Parser::dim); }

    Dim term(bool negative) {
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

    Dim atom() {
        const Token& word = peek();
        if (word.kind != Token::Word || !is_symbol(word.text)) expected("a size");
        next();
        auto function = word.is("min")        ? Dim::min
                        : word.is("max")      ? Dim::max
                        : word.is("floordiv") ? Dim::floordiv
                                              : nullptr;
        if (!function || !accept("(")) {
            if (program_) program_->reserve_symbol(std::string(word.text));
            return Dim::symbol(std::string(word.text));
        }
        Dim a = dim();
        expect(",");
        Dim b = dim();
        expect(")");
        return function(a, b);
    }

    template <class T> T in_angles(T (Parser::*read)()) {
        expect("<");
        T inner = (this->*read)();
        expect(">");
        return inner;
    }

    std::vector<Type> types_until_angle() {
        std::vector<Type> all;
        if (peek().is(">")) return all;
        do all.push_back(type());
        while (accept(","));
        return all;
    }

    Type with_layout(Type type) {
        bool layout = peek().is("{") && (peek(1).is("blocked") || peek(1).is("padded")) && peek(2).is(",");
        if (!layout) return type;
        Layout l;
        l.kind = peek(1).is("blocked") ? Layout::Blocked : Layout::Padded;
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

    // Items.
    void item() {
        if (accept("program")) {
            program_->name = string();
        } else if (accept("metadata")) {
            std::string key = string();
            expect("=");
            program_->metadata[key] = string();
        } else if (accept("weight")) {
            weight();
        } else if (accept("func")) {
            function();
        } else {
            expected("func, weight, program or metadata");
        }
    }

    void weight() {
        const Token& start = peek();
        std::string name = string();
        expect(":");
        Type type = this->type();
        std::optional<Hash128> hash;
        if (accept("hash")) hash = this->hash();
        std::optional<std::string> bytes;
        if (accept("=")) bytes = bytes_of(literals(), type);
        if (program_->weights().contains(name) && !named_only_.contains(name))
            fail(start, fmt::format("weight {} stands here twice", quoted(name)));
        named_only_.erase(name);
        program_->remove_weight(name);
        if (!bytes) return program_->declare_weight(name, std::move(type), hash.value_or(Hash128{}));
        program_->add_weight(name, std::move(type), std::move(*bytes));
        Hash128 actual = program_->weights().find(name)->second.hash;
        if (hash && *hash != actual) fail(start, fmt::format("weight {} has hash {}", quoted(name), actual.text()));
    }

    Hash128 hash() {
        const Token& token = peek();
        auto part = [&](size_t from) {
            uint64_t value = 0;
            const char *begin = token.text.data() + from, *end = begin + 16;
            if (std::from_chars(begin, end, value, 16).ptr != end) expected("32 hexadecimal digits");
            return value;
        };
        if ((token.kind != Token::Number && token.kind != Token::Word) || token.text.size() != 32)
            expected("32 hexadecimal digits");
        Hash128 h{part(0), part(16)};
        next();
        return h;
    }

    // A weight that a node or an input names need not stand in the table.
    void name_weight(const std::string& name, const Type& type) {
        if (program_->weights().contains(name)) return;
        program_->declare_weight(name, type, {});
        named_only_.insert(name);
    }

    struct Output {
        Token at;
        Type type;
        std::string name;
    };

    void function() {
        const Token& at = expect(Token::Function, "'@' and the function's name");
        std::string_view given = at.text.substr(1);
        auto name = given[0] == '"' ? read_string_literal(given) : std::optional<std::string>(given);
        if (!name) fail(at, "the name has an unknown escape");
        for (const auto& other : program_->functions())
            if (other->name() == *name) fail(at, fmt::format("two functions are named @{}", *name));
        values_.clear();
        scope_.clear();
        nesting_ = 0;
        FuncIR& function = program_->add_function(*name);
        Rewriter rewriter(*program_, function);
        rewriter_ = &rewriter;
        expect("(");
        list_until(")", [&] { input(function); });
        std::optional<std::vector<Output>> outputs;
        if (accept("->")) outputs = this->outputs();
        expect("{");
        size_t errors_before = errors_;
        nodes(function.body());
        const OpNode* end = function.body().terminator();
        if (errors_ != errors_before || !end) return;
        if (outputs && outputs->size() != end->operands().size())
            fail(at, fmt::format("@{} declares {}, returns {}", *name, counted(outputs->size(), "output"),
                                 end->operands().size()));
        for (size_t i = 0; i < end->operands().size(); i++) {
            std::string output = i == 0 ? "output" : fmt::format("output_{}", i);
            if (!outputs) {
                function.outputs.push_back({output, {}});
                continue;
            }
            const Output& declared = (*outputs)[i];
            if (const Value* v = end->operand(i); v && v->type() != declared.type)
                report(declared.at,
                       fmt::format("output {} is {}, declared as {}", i, v->type().text(), declared.type.text()));
            function.outputs.push_back({declared.name.empty() ? output : declared.name, {}});
        }
    }

    void input(FuncIR& function) {
        const Token& at = peek();
        const Value& v = argument(function.body());
        FuncIR::Port port{std::string(at.text.substr(1)), {}};
        if (peek().kind == Token::String) port.name = string();
        if (accept("default")) {
            port.default_value = string();
            name_weight(port.default_value, v.type());
        }
        function.inputs.push_back(std::move(port));
    }

    Value& argument(Region& region) {
        const Token& at = expect(Token::Value, "an argument, as in '%x: f32[2]'");
        expect(":");
        Value& v = region.add_argument(type(), value_name(at));
        define(at, v);
        return v;
    }

    std::vector<Output> outputs() {
        std::vector<Output> all;
        auto one = [&] {
            Token at = peek();
            Type type = this->type();
            all.push_back({at, std::move(type), peek().kind == Token::String ? string() : std::string()});
        };
        if (accept("("))
            list_until(")", one);
        else
            one();
        return all;
    }

    // A number is the printer's name for a value that has none.
    static std::string value_name(const Token& at) {
        std::string_view name = at.text.substr(1);
        return name.find_first_not_of("0123456789") == std::string_view::npos ? "" : std::string(name);
    }

    void define(const Token& at, Value& v) {
        auto [known, is_new] = values_.try_emplace(at.text, &v);
        if (is_new)
            scope_.push_back(at.text);
        else if (known->second)
            report(at, fmt::format("{} is defined already", at.text));
    }

    // Statements, up to the closing brace.
    void nodes(Region& region) {
        Nesting guard(*this);
        size_t errors_before = errors_;
        while (!peek().is("}")) {
            if (peek().kind == Token::End) expected("'}'");
            size_t start = at_, in_sight = scope_.size();
            try {
                node(region);
            } catch (const Skip&) {
                forget_behind(in_sight);
                skip_statement(start);
            }
        }
        if (!region.terminator() && errors_ == errors_before) report(peek(), "expected return, found '}'");
        next();
    }

    // Takes the names out of sight that were defined since `scope_` had this size.
    void forget_behind(size_t in_sight) {
        for (; scope_.size() > in_sight; scope_.pop_back()) values_.erase(scope_.back());
    }

    void node(Region& region) {
        std::vector<Token> results;
        if (peek().kind == Token::Value) {
            do results.push_back(expect(Token::Value, "a value's name"));
            while (accept(","));
            expect("=");
        }
        const Token op = expect(Token::Word, "the name of an op");
        const OpDef* def = program_->ops().find(op.text);
        if (!def) unknown_op(op);
        if (region.terminator()) fail(op, "a node follows the region's end");
        bool variadic = !def->results.empty() && def->results.back() == "...";
        if (variadic ? results.size() + 1 < def->results.size() : results.size() != def->results.size())
            fail(op, fmt::format("{} has {}, named are {}", op.text, counted(def->results.size(), "result"),
                                 results.size()));

        Attributes attributes;
        std::map<std::string, Literals> data;
        std::vector<Value*> operands;
        if (op.is("constant"))
            data["value"] = literals();
        else if (op.is("weight"))
            attributes["name"] = string();
        else
            operands = this->operands();
        if (accept("{")) list_until("}", [&] { attribute(*def, attributes, data); });

        std::vector<Type> types;
        if (accept(":")) {
            do types.push_back(type());
            while (accept(","));
            if (types.size() != results.size())
                fail(op, fmt::format("{} for {}", counted(types.size(), "type"), counted(results.size(), "result")));
        }
        bool typed = !types.empty() || results.empty();
        if (op.is("weight")) named_weight(op, std::get<std::string>(attributes["name"]), types);
        if (!data.empty() && types.empty()) fail(op, fmt::format("the type of a {} must be written", op.text));
        for (const auto& [name, literals] : data)
            attributes[name] = Data{std::make_shared<const std::string>(bytes_of(literals, types[0]))};

        types.resize(results.size());
        rewriter_->insert_at_end(region);
        rewriter_->set_location(location());
        if (def->regions.empty()) end_of_statement();
        size_t errors_before = errors_;
        OpNode& node = rewriter_->create_typed(op.text, std::move(operands), std::move(attributes), types);
        for (size_t i = 0; i < def->regions.size(); i++) {
            size_t in_sight = scope_.size();
            expect(def->regions[i]);
            if (accept("(")) list_until(")", [&] { argument(node.region(i)); });
            expect("{");
            nodes(node.region(i));
            forget_behind(in_sight);
            if (i + 1 == def->regions.size()) end_of_statement();
        }
        if (errors_ == errors_before) infer_types(node, op, typed ? &types : nullptr);
        for (size_t i = 0; i < results.size(); i++) {
            node.result(i).set_name(value_name(results[i]));
            define(results[i], node.result(i));
        }
    }

    void end_of_statement() {
        if (!peek().starts_line && !peek().is("}") && peek().kind != Token::End) expected("the end of the line");
    }

    [[noreturn]] void unknown_op(const Token& op) {
        std::vector<std::string_view> names;
        for (const OpDef& def : program_->ops().all()) names.push_back(def.name);
        std::string near = nearest(op.text, names);
        fail(op, fmt::format("there is no op {}", quoted(op.text)),
             near.empty() ? "" : "the nearest name is " + quoted(near));
    }

    std::vector<Value*> operands() {
        std::vector<Value*> all;
        if (peek().starts_line || (peek().kind != Token::Value && !peek().is("_"))) return all;
        bool known = true;
        do {
            if (accept("_")) {
                all.push_back(nullptr);
                continue;
            }
            const Token& at = expect(Token::Value, "a value or '_'");
            auto found = values_.find(at.text);
            if (found == values_.end()) undefined(at);
            known = known && found != values_.end() && found->second;
            all.push_back(known ? found->second : nullptr);
        } while (accept(","));
        if (!known) throw Skip{};
        return all;
    }

    void undefined(const Token& at) {
        std::vector<std::string_view> names(
            scope_.rbegin(), scope_.rbegin() + static_cast<ptrdiff_t>(std::min<size_t>(scope_.size(), 1000)));
        std::string near = nearest(at.text, names);
        report(at, fmt::format("{} is not defined before this use", at.text), "ir-syntax",
               near.empty() || at.text.size() < 4 ? "" : "the nearest name is " + near);
    }

    void attribute(const OpDef& op, Attributes& attributes, std::map<std::string, Literals>& data) {
        const Token& at = expect(Token::Word, "the name of an attribute");
        const AttributeDef* def = op.find_attribute(at.text);
        if (!def) {
            std::vector<std::string_view> names;
            for (const AttributeDef& a : op.attributes) names.push_back(a.name);
            std::string near = nearest(at.text, names);
            fail(at, fmt::format("{} has no attribute {}", op.name, quoted(at.text)),
                 near.empty() ? "" : "the nearest name is " + quoted(near));
        }
        std::string name(at.text);
        if (attributes.contains(name) || data.contains(name))
            fail(at, fmt::format("attribute '{}' stands here twice", name));
        expect("=");
        if (def->kind == AttributeKind::Data)
            data[name] = literals();
        else
            attributes[name] = attribute_value(def->kind);
    }

    Attribute attribute_value(AttributeKind kind) {
        switch (kind) {
        case AttributeKind::Int: return integer();
        case AttributeKind::Float: return floating();
        case AttributeKind::Bool: return boolean();
        case AttributeKind::String: return string();
        case AttributeKind::DType: return dtype();
        case AttributeKind::Ints: return bracketed(&Parser::integer);
        case AttributeKind::Floats: return bracketed(&Parser::floating);
        case AttributeKind::Strings: return bracketed(&Parser::string);
        case AttributeKind::Dims: return shape();
        case AttributeKind::Data: break;
        }
        internal_error(__FILE_NAME__, __LINE__, "a constant is no plain attribute");
    }

    void named_weight(const Token& at, const std::string& name, std::vector<Type>& types) {
        if (types.empty()) {
            auto known = program_->weights().find(name);
            if (known == program_->weights().end())
                fail(at, "the type of a weight must be written here or in the table");
            types.push_back(known->second.type);
        }
        name_weight(name, types[0].with_layout({}));
    }

    Location location() {
        if (!accept("loc")) return {};
        std::string first = string();
        if (peek().kind == Token::String && !peek().starts_line) return {first, string()};
        return {{}, first};
    }

    // Written types are taken as they are; inference then only tells what else it knows.
    void infer_types(OpNode& node, const Token& op, const std::vector<Type>* written) {
        std::vector<std::string> wrong = check_against_record(node);
        for (std::string& sentence : wrong) report(op, std::move(sentence));
        if (!wrong.empty()) return;
        try {
            infer(node);
        } catch (const InferenceError& error) {
            return report(op, error.what(), "shape-mismatch");
        } catch (const DimOverflow& error) {
            return report(op, fmt::format("{}: {}", node.op(), error.what()), "shape-mismatch");
        }
        for (size_t i = 0; i < node.results().size(); i++) {
            if (written) node.result(i).set_type((*written)[i]);
            const Type& type = node.result(i).type();
            if (!written && type == Type()) return report(op, fmt::format("the type of a {} must be written", op.text));
            if (std::string bad = check_sizes(type); !bad.empty())
                return report(op, fmt::format("{}: {}", op.text, bad), "shape-mismatch");
            reserve_symbols(type);
        }
    }

    void reserve_symbols(const Type& type) {
        if (!type.has_rank()) return;
        std::set<std::string> symbols;
        for (const Dim& d : type.shape()) d.collect_symbols(symbols);
        for (const std::string& symbol : symbols) program_->reserve_symbol(symbol);
    }

    std::string_view text_, file_;
    Diagnostics& diag_;
    std::vector<Token> tokens_;
    size_t at_ = 0;
    size_t errors_ = 0;
    int nesting_ = 0;
    std::optional<Program> program_;
    std::set<std::string> named_only_;
    Rewriter* rewriter_ = nullptr;
    std::unordered_map<std::string_view, Value*> values_; // in sight; nullptr: its line was skipped
    std::vector<std::string_view> scope_;                 // the names in `values_`, in order
};

} // namespace

std::optional<Program> parse(std::string_view text, std::string_view file, const OpTable& ops, Diagnostics& diag) {
    return Parser(text, file, diag).program(ops);
}

std::optional<Dim> parse_dim(std::string_view text) {
    Diagnostics ignored;
    return Parser(text, "", ignored).whole(&Parser::dim);
}

std::optional<Type> parse_type(std::string_view text) {
    Diagnostics ignored;
    return Parser(text, "", ignored).whole(&Parser::type);
}

} // namespace cuvil
