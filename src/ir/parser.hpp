// Reads IR text, the grammar of docs/ir.md.
#pragma once

#include "ir/program.hpp"

#include <optional>
#include <string_view>

namespace cuvil {

// Reports errors ("ir-syntax", with line and column in `file`) and then returns nothing. The result types that are
// written are taken; those left out are inferred.
std::optional<Program> parse(std::string_view text, std::string_view file, const OpTable& ops, Diagnostics& diag);
std::optional<Dim> parse_dim(std::string_view text);
std::optional<Type> parse_type(std::string_view text);

} // namespace cuvil
