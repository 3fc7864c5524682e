// JSON that someone else may have written.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string_view>

namespace cuvil::cli {

// Nothing where the text is no JSON, or lists and objects lie deeper in each other than 200 levels: the library copies
// and prints them by recursion, and at 100 000 levels runs out of stack.
std::optional<nlohmann::ordered_json> parse_foreign(std::string_view text);

} // namespace cuvil::cli
