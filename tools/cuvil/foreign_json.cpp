#include "foreign_json.hpp"

namespace cuvil::cli {

using Json = nlohmann::ordered_json;

std::optional<Json> parse_foreign(std::string_view text) {
    constexpr int most_levels = 200;
    bool is_too_deep = false;
    const auto look = [&](int depth, Json::parse_event_t, const Json&) {
        is_too_deep |= depth > most_levels;
        return !is_too_deep;
    };
    Json json = Json::parse(text, look, false);
    return is_too_deep || json.is_discarded() ? std::nullopt : std::optional(std::move(json));
}

} // namespace cuvil::cli
