// Memory for the temporaries of one run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace cuvil::rt {

struct FreeBlock {
    void operator()(void* block) const;
};
using Block = std::unique_ptr<std::byte, FreeBlock>;

// `bytes` (0 counts as 1) at a 64-byte boundary; large blocks lie and grow so that huge pages fit, which makes the
// first touch of a workspace many times cheaper. Null: out of memory. free() gives it back.
void* allocate_block(uint64_t bytes);

// A bump allocator: allocation moves a pointer, reset() takes everything back at once and keeps the memory. Used by one
// thread at a time. A run that needed several chunks leaves one that holds as much, so the next allocates nothing.
class ArenaAllocator {
public:
    // 64-byte aligned, alive until reset(). Throws std::bad_alloc.
    void* allocate(uint64_t bytes);
    template <typename T> T* array(uint64_t count) {
        uint64_t bytes;
        if (__builtin_mul_overflow(count, sizeof(T), &bytes)) throw std::bad_alloc();
        return static_cast<T*>(allocate(bytes));
    }
    void reset();

private:
    struct Chunk {
        Block memory;
        uint64_t size;
    };
    std::vector<Chunk> chunks_; // all but the last are full
    uint64_t used_ = 0;         // of the last
};

} // namespace cuvil::rt
