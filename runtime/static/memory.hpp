// Memory of the C library as hosts hand it out. Freestanding.
#pragma once

#include "cuvil/cuvil.h"

extern "C" {
void* aligned_alloc(size_t alignment, size_t bytes);
void free(void* block);
}

namespace cuvil::rt {

inline void* allocate(const cuvil_host*, uint64_t bytes) {
    if (bytes > INT64_MAX - 64) return nullptr;
    return aligned_alloc(64, bytes == 0 ? 64 : (bytes + 63) / 64 * 64);
}

inline void release(const cuvil_host*, void* block) { free(block); }

// Only modules of cuvil.jit call back, and they are not linked.
inline int32_t call_nothing(const cuvil_host*, int32_t, const cuvil_value*, cuvil_value*) { return CUVIL_ERROR_MODEL; }

} // namespace cuvil::rt
