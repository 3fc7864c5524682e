#pragma once
// How work is cut. Kernels know nothing of threads: a caller asks for a number of tasks, or cuts a range, and runs the
// pieces in any order on any thread. No result depends on the cut.
#include "kernels/vector.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// begin <= i < end.
struct Range {
    i64 begin, end;

    constexpr i64 size() const { return end - begin; }
};

constexpr i64 smaller(i64 a, i64 b) { return a < b ? a : b; }

constexpr i64 larger(i64 a, i64 b) { return a > b ? a : b; }

constexpr i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

// Piece i of 0 .. n cut into `parts` (>= 1) pieces, whose sizes differ by at most one.
constexpr Range chunk(i64 n, i64 parts, i64 i) {
    i64 size = n / parts;
    i64 longer = n % parts;
    i64 begin = i * size + smaller(i, longer);
    return {begin, begin + size + (i < longer)};
}

} // namespace CUVIL_ISA
} // namespace cuvil
