#include "runtime/thread_count.hpp"

#include "cuvil/cuvil.h"
#include "runtime/values.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace cuvil::rt {
namespace {

constexpr int32_t unlimited = std::numeric_limits<int32_t>::max();

std::optional<int64_t> number(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end == text.data()) return {};
    return value;
}

std::string whole_file(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

int32_t whole_cpus(std::optional<int64_t> quota, std::optional<int64_t> period) {
    if (!quota || !period || *quota <= 0 || *period <= 0) return unlimited; // "max" in v2, -1 in v1
    return static_cast<int32_t>(std::clamp<int64_t>(*quota / *period, 1, unlimited));
}

int32_t quota_at(const std::string& folder) {
    const std::string max = whole_file(folder + "/cpu.max"); // "150000 100000" or "max 100000"
    if (const size_t space = max.find(' '); space != max.npos)
        return whole_cpus(number(std::string_view(max).substr(0, space)), number(std::string_view(max).substr(space)));
    return whole_cpus(number(whole_file(folder + "/cpu.cfs_quota_us")),
                      number(whole_file(folder + "/cpu.cfs_period_us")));
}

// The least quota of `path` under `mount` and of all folders above it. Inside a container the path may name a folder
// that only the outside has; then the mount itself is the container's own.
int32_t quota_along(const std::string& mount, std::string path) {
    int32_t least = quota_at(mount);
    while (path.size() > 1) {
        least = std::min(least, quota_at(mount + path));
        path.resize(path.rfind('/'));
    }
    return least;
}

bool lists(std::string_view names, std::string_view wanted) {
    while (!names.empty()) {
        const size_t comma = std::min(names.find(','), names.size());
        if (names.substr(0, comma) == wanted) return true;
        names.remove_prefix(std::min(comma + 1, names.size()));
    }
    return false;
}

int32_t affinity_count() {
    for (size_t cpus = 1024; cpus <= (1u << 20); cpus *= 4) {
        std::vector<unsigned long> mask(cpus / (8 * sizeof(unsigned long)));
        auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
        const size_t bytes = mask.size() * sizeof(unsigned long);
        if (sched_getaffinity(0, bytes, set) == 0) return CPU_COUNT_S(bytes, set);
        if (errno != EINVAL) break; // EINVAL: the machine has more processors than the mask has bits
    }
    return 1;
}

// A positive number at the start of a variable ("8", or OpenMP's "8,2" by nesting level); anything else says nothing.
int32_t variable(const char* name) {
    const char* text = getenv(name);
    const std::optional<int64_t> value = text ? number(text) : std::nullopt;
    return value && *value > 0 ? static_cast<int32_t>(std::min<int64_t>(*value, unlimited)) : unlimited;
}

} // namespace

int32_t quota_thread_count(const std::string& membership, const std::string& root) {
    int32_t least = unlimited;
    std::istringstream lines(membership); // "0::/user.slice" in v2, "4:cpu,cpuacct:/docker/1f" in v1
    for (std::string line; std::getline(lines, line);) {
        const size_t first = line.find(':');
        const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
        if (second == line.npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (!path.starts_with('/') || path.find("..") != path.npos) continue;
        if (controllers.empty())
            least = std::min(least, quota_along(root, path));
        else if (lists(controllers, "cpu"))
            least = std::min({least, quota_along(root + "/" + controllers, path), quota_along(root + "/cpu", path)});
    }
    return least;
}

int32_t default_thread_count() {
    const int32_t quota = quota_thread_count(whole_file("/proc/self/cgroup"), "/sys/fs/cgroup");
    return std::clamp(std::min({affinity_count(), quota, variable("CUVIL_NUM_THREADS"), variable("OMP_NUM_THREADS")}),
                      1, max_threads);
}

void expect_thread_variable() {
    const char* variable = getenv("CUVIL_NUM_THREADS");
    const std::string_view text = variable ? variable : "";
    const bool is_number = text.find_first_not_of("0123456789") == text.npos;
    if (!is_number || (!text.empty() && text.find_first_not_of('0') == text.npos))
        throw CallError{CUVIL_ERROR_FILE, "CUVIL_NUM_THREADS is a positive number, not '" + std::string(text) + "'"};
}

} // namespace cuvil::rt
