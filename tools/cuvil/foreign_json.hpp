// JSON that someone else may have written.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string_view>

namespace cuvil::cli {

// Nothing where the text is no JSON, or its lists and objects lie deeper in each other than what walks through them,
// the library's own printer among it, has stack for.
std::optional<nlohmann::ordered_json> parse_foreign(std::string_view text);

} // namespace cuvil::cli
