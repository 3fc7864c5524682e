#include "runtime/cpu.hpp"

namespace cuvil::rt {

std::vector<std::string_view> cpu_levels(const CpuWords& words) {
    std::vector<std::string_view> found;
    for (int i = 0; i < count_levels(words); i++) found.emplace_back(cpu_level_table[i].name);
    return found;
}

const std::vector<std::string_view>& cpu_levels() {
    static const std::vector<std::string_view> found = cpu_levels(this_cpu());
    return found;
}

std::string level_list(const std::vector<std::string_view>& names) {
    if (names.empty()) return "none";
    std::string out(names.front());
    for (size_t i = 1; i < names.size(); i++) {
        out += i + 1 == names.size() ? " and " : ", ";
        out += names[i];
    }
    return out;
}

} // namespace cuvil::rt
