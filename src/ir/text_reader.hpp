// Reads what the lines of IR text are made of: words, literals, dims and types.
#pragma once

#include "ir/lexer.hpp"
#include "ir/op_def.hpp"
#include "ir/type.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cuvil {

class Diagnostics;

// The rest of what is read is skipped, after an error was reported.
struct Skip {};
struct TooManyErrors {};

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

// What fails is reported and throws Skip; TooManyErrors when enough is reported.
class TextReader {
public:
    // `text` must outlive the reader.
    TextReader(std::string_view text, std::string_view file, Diagnostics& diag);

    // What `read` reads, if the text is just that.
    template <class Read> auto whole(Read read) -> std::optional<decltype((this->*read)())> {
        try {
            auto result = (this->*read)();
            return peek().kind == Token::End ? std::optional(std::move(result)) : std::nullopt;
        } catch (const Skip&) {
            return std::nullopt;
        }
    }

    Dim dim();
    Type type();
    std::string string();
    int64_t integer();
    double floating();
    bool boolean();
    DType dtype();
    Shape shape();
    Literals literals();
    // A value of this kind, which is not Data.
    Attribute attribute_value(AttributeKind kind);
    // The elements of a value of this type.
    std::string bytes_of(const Literals& literals, const Type& type);

    // The symbols of all dims that were read.
    const std::set<std::string>& symbols() const { return symbols_; }

protected:
    // One level of things within each other, for the life of the object.
    class Nesting {
    public:
        explicit Nesting(TextReader& reader);
        ~Nesting() { reader_.nesting_--; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;

    private:
        TextReader& reader_;
    };

    const Token& peek(size_t ahead = 0) const;
    const Token& next();
    bool accept(std::string_view text);
    void expect(std::string_view text);
    const Token& expect(Token::Kind kind, std::string_view what);

    size_t error_count() const { return errors_; }
    [[noreturn]] void expected(std::string_view what);
    [[noreturn]] void fail(const Token& at, std::string message, std::string help = {});
    void report(const Token& at, std::string message, const char* code = "ir-syntax", std::string help = {});

    // The record that the token names.
    const OpDef& op_of(const OpTable& ops, const Token& name);
    const AttributeDef& attribute_of(const OpDef& op, const Token& name);

    template <class Read> void list_until(std::string_view end, Read read) {
        if (accept(end)) return;
        do read();
        while (accept(","));
        expect(end);
    }

    template <class T> std::vector<T> bracketed(T (TextReader::*read)()) {
        std::vector<T> list;
        expect("[");
        list_until("]", [&] { list.push_back((this->*read)()); });
        return list;
    }

    // The next token's number, to which reading can return.
    size_t at_ = 0;

private:
    Literals::Element element(std::string_view what);
    Dim term(bool negative);
    Dim atom();
    std::vector<Type> types_until_angle();
    Type with_layout(Type type);
    template <class T> T in_angles(T (TextReader::*read)()) {
        expect("<");
        T inner = (this->*read)();
        expect(">");
        return inner;
    }

    std::string_view text_, file_;
    Diagnostics& diag_;
    std::vector<Token> tokens_;
    size_t errors_ = 0;
    int nesting_ = 0;
    std::set<std::string> symbols_;
};

} // namespace cuvil
