// Names of dtypes in manifests, feeds and sentences, and how the C ABI writes them. Freestanding: the host inside
// static libraries is compiled without a standard library.
#pragma once

#include "cuvil/cuvil.h"

namespace cuvil::rt {

struct NamedDtype {
    const char* name;
    cuvil_dtype dtype;
};

inline constexpr NamedDtype dtypes[] = {
    {"f64", {2, 64, 1}}, {"f32", {2, 32, 1}}, {"f16", {2, 16, 1}}, {"bf16", {4, 16, 1}}, {"i64", {0, 64, 1}},
    {"i32", {0, 32, 1}}, {"i16", {0, 16, 1}}, {"i8", {0, 8, 1}},   {"u64", {1, 64, 1}},  {"u32", {1, 32, 1}},
    {"u16", {1, 16, 1}}, {"u8", {1, 8, 1}},   {"bool", {6, 8, 1}}, {"c64", {5, 64, 1}},  {"c128", {5, 128, 1}},
};

} // namespace cuvil::rt
