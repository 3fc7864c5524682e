// Which instruction-set levels this processor and its operating system offer.
#pragma once

#include "runtime/cpu_levels.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cuvil::rt {

// The levels "v2", "v3", "v4" (x86-64-v2 and so on) that `words` allow, least demanding first.
std::vector<std::string_view> cpu_levels(const CpuWords& words);

// Those of this machine; empty on a processor that Cuvil has no code for.
const std::vector<std::string_view>& cpu_levels();

// Joins for sentences: "v2, v3 and v4"; "none" when empty.
std::string level_list(const std::vector<std::string_view>& levels);

} // namespace cuvil::rt
