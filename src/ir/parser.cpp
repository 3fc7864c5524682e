// A parser by recursive descent that builds nodes as it reads them. An error skips to the next line of the same region,
// so that one run reports what is wrong everywhere; names that a skipped line defines are known but stand for nothing,
// so that their uses are not reported again. Sizes are bounded where text could make the work grow faster than itself.
#include "ir/parser.hpp"

#include "ir/literal.hpp"
#include "ir/record_check.hpp"
#include "ir/rewriter.hpp"
#include "ir/text_reader.hpp"
#include "support/diagnostics.hpp"
#include "support/nearest.hpp"
#include "support/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace cuvil {
namespace {

class Parser : private TextReader {
public:
    Parser(std::string_view text, std::string_view file, Diagnostics& diag)
        : TextReader(text, file, diag), text_(text) {}

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
            if (program_->functions().empty() && error_count() == 0)
                report(peek(), "expected a function, found the end of the text");
        } catch (const TooManyErrors&) {
            return std::nullopt;
        }
        if (error_count() != 0) return std::nullopt;
        for (const std::string& symbol : symbols()) program_->reserve_symbol(symbol);
        return std::move(program_);
    }

private:
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
        FuncIR& function = program_->add_function(*name);
        Rewriter rewriter(*program_, function);
        rewriter_ = &rewriter;
        expect("(");
        list_until(")", [&] { input(function); });
        std::optional<std::vector<Output>> outputs;
        if (accept("->")) outputs = this->outputs();
        expect("{");
        size_t errors_before = error_count();
        nodes(function.body());
        const OpNode* end = function.body().terminator();
        if (error_count() != errors_before || !end) return;
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
        size_t errors_before = error_count();
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
        if (!region.terminator() && error_count() == errors_before) report(peek(), "expected return, found '}'");
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
        const OpDef* def = &op_of(program_->ops(), op);
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
        size_t errors_before = error_count();
        OpNode& node = rewriter_->create_typed(op.text, operands, std::move(attributes), types);
        for (size_t i = 0; i < def->regions.size(); i++) {
            size_t in_sight = scope_.size();
            expect(def->regions[i]);
            if (accept("(")) list_until(")", [&] { argument(node.region(i)); });
            expect("{");
            nodes(node.region(i));
            forget_behind(in_sight);
            if (i + 1 == def->regions.size()) end_of_statement();
        }
        if (error_count() == errors_before) infer_types(node, op, typed ? &types : nullptr);
        for (size_t i = 0; i < results.size(); i++) {
            node.result(i).set_name(value_name(results[i]));
            define(results[i], node.result(i));
        }
    }

    void end_of_statement() {
        if (!peek().starts_line && !peek().is("}") && peek().kind != Token::End) expected("the end of the line");
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
        std::string_view near = nearest(at.text, names);
        report(at, fmt::format("{} is not defined before this use", at.text), "ir-syntax",
               near.empty() || at.text.size() < 4 ? "" : "the nearest name is " + std::string(near));
    }

    void attribute(const OpDef& op, Attributes& attributes, std::map<std::string, Literals>& data) {
        const Token& at = expect(Token::Word, "the name of an attribute");
        const AttributeDef& def = attribute_of(op, at);
        std::string name(at.text);
        if (attributes.contains(name) || data.contains(name))
            fail(at, fmt::format("attribute '{}' stands here twice", name));
        expect("=");
        if (def.kind == AttributeKind::Data)
            data[name] = literals();
        else
            attributes[name] = attribute_value(def.kind);
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

    std::string_view text_;
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
    return TextReader(text, "", ignored).whole(&TextReader::dim);
}

std::optional<Type> parse_type(std::string_view text) {
    Diagnostics ignored;
    return TextReader(text, "", ignored).whole(&TextReader::type);
}

} // namespace cuvil
