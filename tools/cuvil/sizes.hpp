// Values for the open sizes of a model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cuvil::cli {

using Sizes = std::map<std::string, int64_t>;
// {"N=8"} -> {{"N", 8}}. Throws UsageError.
Sizes parse_symbols(const std::vector<std::string>& texts);
// Of a formula such as "2*N + 1"; nothing where a size is not given.
std::optional<int64_t> value_of(const std::string& formula, const Sizes& sizes);

} // namespace cuvil::cli
