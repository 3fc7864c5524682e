// "Did you mean ...": the nearest of several names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::cli {

// The name with the fewest edits from `word`, if it is near enough to be what was meant.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& names);
// " (did you mean NAME?)" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

} // namespace cuvil::cli
