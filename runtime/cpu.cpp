#include "runtime/cpu.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cuvil::rt {
namespace {

constexpr uint32_t bits(std::initializer_list<int> positions) {
    uint32_t mask = 0;
    for (int position : positions) mask |= uint32_t{1} << position;
    return mask;
}

struct Level {
    std::string_view name;
    CpuWords needs;
};

// Each level needs its own bits and all those above it.
constexpr Level levels[] = {
    // ssse3 9, cmpxchg16b 13, sse4.1 19, sse4.2 20, popcnt 23 (sse3 0); lahf 0
    {"v2", {bits({0, 9, 13, 19, 20, 23}), 0, bits({0}), 0}},
    // fma 12, movbe 22, osxsave 27, avx 28, f16c 29; bmi1 3, avx2 5, bmi2 8; lzcnt 5; xmm 1, ymm 2
    {"v3", {bits({12, 22, 27, 28, 29}), bits({3, 5, 8}), bits({5}), bits({1, 2})}},
    // avx512 f 16, dq 17, cd 28, bw 30, vl 31; opmask 5, zmm 6 and 7
    {"v4", {0, bits({16, 17, 28, 30, 31}), 0, bits({5, 6, 7})}},
};

bool has(uint32_t word, uint32_t needed) { return (word & needed) == needed; }

#if defined(__x86_64__)
CpuWords this_cpu() {
    CpuWords words;
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d)) words.leaf1_ecx = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) words.leaf7_ebx = b;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d)) words.extended_ecx = c;
    if (has(words.leaf1_ecx, bits({27}))) __asm__("xgetbv" : "=a"(words.xcr0), "=d"(d) : "c"(0));
    return words;
}
#else
CpuWords this_cpu() { return {}; }
#endif

} // namespace

std::vector<std::string_view> cpu_levels(const CpuWords& words) {
    std::vector<std::string_view> found;
    for (const Level& level : levels) {
        if (!has(words.leaf1_ecx, level.needs.leaf1_ecx) || !has(words.leaf7_ebx, level.needs.leaf7_ebx) ||
            !has(words.extended_ecx, level.needs.extended_ecx) || !has(words.xcr0, level.needs.xcr0))
            break;
        found.push_back(level.name);
    }
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
