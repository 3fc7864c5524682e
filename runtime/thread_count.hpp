// How many threads this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace cuvil::rt {

inline constexpr int32_t max_threads = 256;

// The least of: the processors of the affinity mask, the cgroup's CPU quota, CUVIL_NUM_THREADS and OMP_NUM_THREADS; at
// least 1, at most max_threads. Read anew at each call.
int32_t default_thread_count();

// Throws CallError where CUVIL_NUM_THREADS is there and no positive number, which counting ignores.
void expect_thread_variable();

// The whole CPUs that the quota of a cgroup and of all those above it allows, at least 1: a fraction of a CPU more
// would be paid for with a stall in every period. INT32_MAX: no quota. `membership` is the text of /proc/self/cgroup,
// `root` the folder where cgroups are mounted (v2 there, or the v1 controllers as folders in it).
int32_t quota_thread_count(const std::string& membership, const std::string& root);

} // namespace cuvil::rt
