#pragma once
// The kernels at every level, behind one kind of function, so that a test can run all levels on the same values.
// kernels_level.cpp is compiled once per level and fills the tables; kernels_run.hpp runs them.

// p: sizes and choices, in: input buffers, out: output buffers. What they mean stands beside each case.
using KernelCase = void (*)(const long* p, const void* const* in, void* const* out);

struct NamedCase {
    const char* name;
    KernelCase run;
};

// Each table ends with an entry without a name.
extern const NamedCase kernel_cases_v2[];
extern const NamedCase kernel_cases_v3[];
extern const NamedCase kernel_cases_v4[];
extern const NamedCase kernel_cases_eval[];
