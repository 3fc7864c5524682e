#include "runtime/cpu.hpp"

#include <gtest/gtest.h>

namespace cuvil::rt {
namespace {

using Names = std::vector<std::string_view>;

// A processor with all of v4.
constexpr CpuWords full{~0u, ~0u, ~0u, 0xe7};

TEST(Cpu, LevelsFollowTheWords) {
    EXPECT_EQ(cpu_levels(full), (Names{"v2", "v3", "v4"}));
    EXPECT_EQ(cpu_levels(CpuWords{}), Names{});
}

TEST(Cpu, RegistersThatTheSystemDoesNotSaveAreNotUsed) {
    CpuWords words = full;
    words.xcr0 = 0x7;
    EXPECT_EQ(cpu_levels(words), (Names{"v2", "v3"}));
    words.xcr0 = 0x3;
    EXPECT_EQ(cpu_levels(words), Names{"v2"});
    words = full;
    words.leaf1_ecx &= ~(1u << 27); // no osxsave
    EXPECT_EQ(cpu_levels(words), Names{"v2"});
}

TEST(Cpu, OneMissingInstructionSetEndsTheList) {
    CpuWords words = full;
    words.leaf7_ebx &= ~(1u << 31); // avx512vl
    EXPECT_EQ(cpu_levels(words), (Names{"v2", "v3"}));
    words = full;
    words.leaf1_ecx &= ~(1u << 12); // fma
    EXPECT_EQ(cpu_levels(words), Names{"v2"});
    words = full;
    words.leaf1_ecx &= ~(1u << 20); // sse4.2
    EXPECT_EQ(cpu_levels(words), Names{});
}

TEST(Cpu, ThisMachineAgreesWithTheCompilersOwnDetection) {
#if defined(__x86_64__)
    Names expected;
    if (__builtin_cpu_supports("x86-64-v2")) expected.push_back("v2");
    if (__builtin_cpu_supports("x86-64-v3")) expected.push_back("v3");
    if (__builtin_cpu_supports("x86-64-v4")) expected.push_back("v4");
    EXPECT_EQ(cpu_levels(), expected);
#endif
}

TEST(Cpu, ListsReadAsSentences) {
    EXPECT_EQ(level_list({}), "none");
    EXPECT_EQ(level_list({"v2"}), "v2");
    EXPECT_EQ(level_list({"v2", "v3", "v4"}), "v2, v3 and v4");
}

} // namespace
} // namespace cuvil::rt
