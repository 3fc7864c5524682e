// Cuts IR text into tokens.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

struct Token {
    enum Kind {
        End,
        Word,     // relu, f32, conv.x
        Number,   // 12, 1e-05, 0x7fc00000, 0123abcd (a hash)
        Value,    // %x
        Function, // @main, @"odd name"
        String,   // "text", quotes included
        Mark,     // ( ) [ ] { } < > , : = * + - ->
        Bad       // no token at all; `text` is what is there
    } kind = End;
    std::string_view text; // a part of the input
    bool starts_line = false;

    bool is(std::string_view mark_or_word) const { return (kind == Mark || kind == Word) && text == mark_or_word; }
};

// All tokens of `text`, which must outlive them; the last is End. Comments are left out.
std::vector<Token> tokenize(std::string_view text);

} // namespace cuvil
