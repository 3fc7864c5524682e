// The word from which the threads of a step claim its chunks:
//
//     generation : 32 | next : 16 | left : 16
//
// The caller, worker 0, claims from the front, as does every other worker with an even number; the rest from the back.
// So of two threads each keeps its end of the work from step to step, and what it reads is in its own cache. A claim is
// what a compare-and-exchange of the word makes one; the generation, one more for each step, makes that of a late
// worker fail. Freestanding: the host inside static libraries is compiled without a standard library.
#pragma once

#include <stdint.h>

namespace cuvil::rt {

inline constexpr int64_t most_chunks = 0xffff;

constexpr uint64_t step_word(uint32_t generation, uint32_t chunks) { return uint64_t{generation} << 32 | chunks; }
constexpr uint32_t generation_of(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
constexpr uint32_t chunks_left(uint64_t word) { return word & 0xffff; }

// The chunk that the worker would claim, of those left, and the word that claims it.
struct Claim {
    uint32_t chunk;
    uint64_t word;
};
constexpr Claim claim_of(uint64_t word, int32_t worker) {
    const uint32_t next = word >> 16 & 0xffff;
    const bool from_back = worker % 2 == 1;
    return {from_back ? next + chunks_left(word) - 1 : next, word - 1 + (from_back ? 0 : 1u << 16)};
}

} // namespace cuvil::rt
