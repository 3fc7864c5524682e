// Values for the open sizes of a model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cuvil::cli {

using Sizes = std::map<std::string, int64_t>;
// {"N=8"} -> {{"N", 8}}. Throws UsageError.
Sizes parse_symbols(const std::vector<std::string>& texts);
// The sizes that the formulas name: N for "2*N + 1".
std::set<std::string> open_sizes(const std::vector<std::string>& formulas);
// Throws UsageError for one of `sizes` that is not among `open`: nothing would come of it.
void expect_open(const Sizes& sizes, const std::set<std::string>& open);
// Of a formula such as "2*N + 1"; nothing where a size is not given.
std::optional<int64_t> value_of(const std::string& formula, const Sizes& sizes);

} // namespace cuvil::cli
