#include "runtime/arena.hpp"
#include "runtime_fixture.hpp"

#include <cstring>

namespace cuvil::rt {
namespace {

TEST(Arena, BlocksAreAlignedAndApart) {
    ArenaAllocator arena;
    std::vector<char*> blocks;
    for (uint64_t bytes : {1, 0, 64, 65, 100000, 3, 1 << 20}) {
        blocks.push_back(static_cast<char*>(arena.allocate(bytes)));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back()) % 64, 0u);
        memset(blocks.back(), static_cast<int>(blocks.size()), bytes);
    }
    EXPECT_EQ(*blocks[0], 1);
    EXPECT_EQ(blocks[4][99999], 5);
}

TEST(Arena, TheSecondRoundFitsIntoOneChunk) {
    ArenaAllocator arena;
    auto round = [&] {
        char* first = arena.array<char>(1000);
        arena.array<char>(300000);
        char* last = arena.array<char>(500000);
        arena.reset();
        return last - first;
    };
    round();
    const auto distance = round();
    EXPECT_EQ(distance, 1024 + 300032);
    EXPECT_EQ(round(), distance);
}

TEST(Arena, WhatNoMemoryHoldsIsRefused) {
    ArenaAllocator arena;
    EXPECT_THROW(arena.allocate(UINT64_MAX), std::bad_alloc);
    EXPECT_THROW(arena.array<int64_t>(uint64_t{1} << 62), std::bad_alloc);
    EXPECT_EQ(allocate_block(UINT64_MAX), nullptr);
    if (!test::is_sanitized) EXPECT_EQ(allocate_block(uint64_t{1} << 62), nullptr);
    free(allocate_block(0));
    void* large = allocate_block((4 << 20) + 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % (2 << 20), 0u);
    free(large);
}

} // namespace
} // namespace cuvil::rt
