// What the freestanding test modules share: the export, and one entry of the level table for each level.
#pragma once

#include "cuvil/cuvil.h"

#define CUVIL_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

template <typename T> T* data(const cuvil_value& value) { return static_cast<T*>(value.as.tensor.data); }

inline int64_t size(const cuvil_value& value, int axis) { return value.as.tensor.shape[axis]; }

// `run(call, level)` as the code of the levels v2, v3 and v4.
template <int32_t (*run)(const cuvil_call*, int32_t), int32_t level> int32_t run_level(const cuvil_call* call) {
    return run(call, level);
}

template <int32_t (*run)(const cuvil_call*, int32_t)>
constexpr cuvil_level levels[] = {{"v2", run_level<run, 2>}, {"v3", run_level<run, 3>}, {"v4", run_level<run, 4>}};

template <int32_t (*run)(const cuvil_call*, int32_t)>
constexpr cuvil_program program(uint32_t dims, int32_t (*bind)(const cuvil_value*, int64_t*, cuvil_failure*),
                                uint64_t (*workspace_size)(const int64_t*, int32_t)) {
    return {sizeof(cuvil_program), CUVIL_ABI_VERSION, dims, 3, levels<run>, bind, workspace_size};
}

} // namespace
