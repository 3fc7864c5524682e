// Literals of IR text: numbers, quoted strings and the elements of constants, in both directions.
#pragma once

#include "ir/type.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cuvil {

// `text` in double quotes; quotes, backslashes, control characters and bytes that are not UTF-8 are escaped.
std::string string_literal(std::string_view text);
// The text of a literal in double quotes; nothing when an escape is malformed.
std::optional<std::string> read_string_literal(std::string_view literal);

// The shortest decimal form that reads back as the same double; "0.01f" where the shortest float does (and is shorter);
// the bits in hexadecimal ("0x7ff0000000000000") where the value is not finite.
std::string float_literal(double value);
// Reads these and "inf", "-inf", "nan".
std::optional<double> read_float_literal(std::string_view literal);
std::optional<int64_t> read_integer_literal(std::string_view literal);

// How many literals stand for a value of this type; nothing when its size is symbolic or it is no tensor or scalar. A
// complex element is two literals.
std::optional<int64_t> literal_count(const Type& type);

// Row-major elements as text: "[1, -2, 3]"; "5" for rank 0; `bytes "\x01"` where the bytes are not elements of `type`.
std::string elements_literal(std::string_view bytes, const Type& type);

// Appends the bytes of one element; false when `literal` is not a value of `dtype`. Strings come in quotes.
bool append_element(DType dtype, std::string_view literal, std::string& bytes);

} // namespace cuvil
