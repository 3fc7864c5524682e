// Diagnostics for the compiler's own use: the public types and CUVIL_ASSERT for bugs of ours.
#pragma once

#include "cuvil/diagnostic.hpp"

#include <string>

namespace cuvil {

[[noreturn]] void internal_error(const char* file, int line, const std::string& what);

// Joins the places of two nodes that became one: "a + b", each name once, cut off where it would grow long.
Location join(const Location& a, const Location& b);

// `text` in double quotes, with quotes, backslashes and control characters escaped: the form of names in IR and errors.
std::string quoted(std::string_view text);

} // namespace cuvil

// For what only a bug of ours can make false, never for anything a model file can contain.
#define CUVIL_ASSERT(condition, what)                                                                                  \
    do {                                                                                                               \
        if (!(condition)) ::cuvil::internal_error(__FILE_NAME__, __LINE__, what);                                      \
    } while (false)
