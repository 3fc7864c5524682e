// "Did you mean ...": the nearest of several names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

// The name with the fewest edits from `word`, case aside, if it is near enough to be what was meant, or nothing. Of
// equals the first. Names longer than 64 bytes are not looked at.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& names);
// " (did you mean NAME?)" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

} // namespace cuvil
