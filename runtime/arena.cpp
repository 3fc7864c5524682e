#include "runtime/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace cuvil::rt {
namespace {

constexpr uint64_t alignment = 64;
constexpr uint64_t huge_page = uint64_t{2} << 20;
constexpr uint64_t worth_huge_pages = 2 * huge_page;
constexpr uint64_t least_chunk = uint64_t{64} << 10;

// False: the multiple does not fit into 64 bits.
bool round_up(uint64_t& bytes, uint64_t unit) {
    if (__builtin_add_overflow(bytes, unit - 1, &bytes)) return false;
    bytes -= bytes % unit;
    return true;
}

} // namespace

void FreeBlock::operator()(void* block) const { free(block); }

void* allocate_block(uint64_t bytes) {
    bytes = std::max<uint64_t>(bytes, 1);
    const uint64_t unit = bytes >= worth_huge_pages ? huge_page : alignment;
    if (!round_up(bytes, unit) || bytes > PTRDIFF_MAX) return nullptr;
    void* block = aligned_alloc(unit, bytes);
    if (block && unit == huge_page) madvise(block, bytes, MADV_HUGEPAGE);
    return block;
}

void* ArenaAllocator::allocate(uint64_t bytes) {
    if (!round_up(bytes, alignment)) throw std::bad_alloc();
    if (chunks_.empty() || chunks_.back().size - used_ < bytes) {
        const uint64_t size = std::max({bytes, least_chunk, chunks_.empty() ? 0 : 2 * chunks_.back().size});
        Block memory(static_cast<std::byte*>(allocate_block(size)));
        if (!memory) throw std::bad_alloc();
        chunks_.push_back({std::move(memory), size});
        used_ = 0;
    }
    void* place = chunks_.back().memory.get() + used_;
    used_ += bytes;
    return place;
}

void ArenaAllocator::reset() {
    used_ = 0;
    if (chunks_.size() <= 1) return;
    uint64_t total = 0;
    for (const Chunk& chunk : chunks_) total += chunk.size;
    chunks_.clear();
    if (void* block = allocate_block(total)) chunks_.push_back({Block(static_cast<std::byte*>(block)), total});
}

} // namespace cuvil::rt
