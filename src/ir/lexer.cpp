#include "ir/lexer.hpp"

#include <algorithm>

namespace cuvil {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_character(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

class Lexer {
public:
    explicit Lexer(std::string_view text) : text_(text) {}

    std::vector<Token> run() {
        while (skip_blanks()) {
            size_t start = at_;
            Token::Kind kind = scan();
            add(kind, start);
        }
        add(Token::End, at_);
        return std::move(tokens_);
    }

private:
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    bool skip_blanks() {
        while (at_ < text_.size()) {
            char c = text_[at_];
            if (c == '\n')
                starts_line_ = true;
            else if (c == '#')
                at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
            else if (c != ' ' && c != '\t' && c != '\r')
                return true;
            at_++;
        }
        return false;
    }

    Token::Kind scan() {
        char c = text_[at_++];
        if (is_letter(c)) return name(), Token::Word;
        if (is_digit(c)) return number(), Token::Number;
        if (c == '"') return string() ? Token::String : Token::Bad;
        if (c == '%') return name() ? Token::Value : Token::Bad;
        if (c == '@') {
            if (peek() != '"') return name() ? Token::Function : Token::Bad;
            at_++;
            return string() ? Token::Function : Token::Bad;
        }
        if (c == '-' && peek() == '>') return at_++, Token::Mark;
        if (std::string_view("()[]{}<>,:=*+-").find(c) != std::string_view::npos) return Token::Mark;
        while ((static_cast<unsigned char>(peek()) & 0xc0) == 0x80) at_++; // the rest of a UTF-8 sequence
        return Token::Bad;
    }

    bool name() {
        size_t start = at_;
        while (is_name_character(peek())) at_++;
        return at_ > start;
    }

    // Digits and letters, and the sign of an exponent: "1e-05".
    void number() {
        bool hexadecimal = text_[at_ - 1] == '0' && peek() == 'x';
        for (;; at_++) {
            if (is_name_character(peek())) continue;
            char before = text_[at_ - 1];
            bool sign = (peek() == '-' || peek() == '+') && (before == 'e' || before == 'E');
            if (!sign || hexadecimal || !is_digit(peek(1))) return;
        }
    }

    // Behind the opening quote; false when the line ends first.
    bool string() {
        for (; at_ < text_.size() && text_[at_] != '\n'; at_++) {
            if (text_[at_] == '"') return at_++, true;
            if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') at_++;
        }
        return false;
    }

    void add(Token::Kind kind, size_t start) {
        tokens_.push_back({kind, text_.substr(start, at_ - start), starts_line_});
        starts_line_ = false;
    }

    std::string_view text_;
    size_t at_ = 0;
    bool starts_line_ = true;
    std::vector<Token> tokens_;
};

} // namespace

std::vector<Token> tokenize(std::string_view text) { return Lexer(text).run(); }

} // namespace cuvil
