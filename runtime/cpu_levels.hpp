// The instruction-set levels and what a processor must offer for each. Freestanding: the host inside static libraries
// is compiled without a standard library.
#pragma once

#include <stdint.h>

namespace cuvil::rt {

// The words of cpuid and xgetbv that the levels depend on.
struct CpuWords {
    uint32_t leaf1_ecx = 0;
    uint32_t leaf7_ebx = 0;
    uint32_t extended_ecx = 0; // leaf 0x80000001
    uint32_t xcr0 = 0;         // the registers that the system saves; 0 where it uses no xsave
};

struct CpuLevel {
    const char* name;
    CpuWords needs;
};

template <class... Positions> constexpr uint32_t cpu_bits(Positions... positions) {
    return ((uint32_t{1} << positions) | ... | 0u);
}

// Least demanding first; each level needs its own bits and all those above it.
inline constexpr CpuLevel cpu_level_table[] = {
    // ssse3 9, cmpxchg16b 13, sse4.1 19, sse4.2 20, popcnt 23 (sse3 0); lahf 0
    {"v2", {cpu_bits(0, 9, 13, 19, 20, 23), 0, cpu_bits(0), 0}},
    // fma 12, movbe 22, osxsave 27, avx 28, f16c 29; bmi1 3, avx2 5, bmi2 8; lzcnt 5; xmm 1, ymm 2
    {"v3", {cpu_bits(12, 22, 27, 28, 29), cpu_bits(3, 5, 8), cpu_bits(5), cpu_bits(1, 2)}},
    // avx512 f 16, dq 17, cd 28, bw 30, vl 31; opmask 5, zmm 6 and 7
    {"v4", {0, cpu_bits(16, 17, 28, 30, 31), 0, cpu_bits(5, 6, 7)}},
};

// How many levels of the table, from the first, `words` allow.
constexpr int count_levels(const CpuWords& words) {
    const auto has = [](uint32_t word, uint32_t needed) { return (word & needed) == needed; };
    int count = 0;
    for (const CpuLevel& level : cpu_level_table) {
        if (!has(words.leaf1_ecx, level.needs.leaf1_ecx) || !has(words.leaf7_ebx, level.needs.leaf7_ebx) ||
            !has(words.extended_ecx, level.needs.extended_ecx) || !has(words.xcr0, level.needs.xcr0))
            break;
        count++;
    }
    return count;
}

// The words of this machine's processor; all zero on one that Cuvil has no code for.
inline CpuWords this_cpu() {
    CpuWords words;
#if defined(__x86_64__)
    struct Registers {
        uint32_t a, b, c, d;
    };
    const auto cpuid = [](uint32_t leaf) {
        Registers r{leaf, 0, 0, 0};
        __asm__("cpuid" : "+a"(r.a), "=b"(r.b), "+c"(r.c), "=d"(r.d));
        return r;
    };
    const uint32_t newest = cpuid(0).a;
    if (newest >= 1) words.leaf1_ecx = cpuid(1).c;
    if (newest >= 7) words.leaf7_ebx = cpuid(7).b;
    if (cpuid(0x80000000).a >= 0x80000001) words.extended_ecx = cpuid(0x80000001).c;
    uint32_t high = 0;
    if ((words.leaf1_ecx & cpu_bits(27)) != 0) __asm__("xgetbv" : "=a"(words.xcr0), "=d"(high) : "c"(0));
#endif
    return words;
}

} // namespace cuvil::rt
