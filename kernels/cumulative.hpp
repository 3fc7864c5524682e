#pragma once
// Running sums and products along one dimension: one chain per column, so the bits do not depend on the cut.
#include "kernels/reduce.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// y[o][j][i] = Op over x[o][0 .. j][i], without x[o][j][i] itself if Exclusive, from the other end if Reverse. Columns
// are counted as o * inner + i.
template <class Op, bool Exclusive, bool Reverse, class T>
INLINE void cumulate(i64 n, i64 inner, Range columns, const T* x, T* y) {
    auto walk = [=](i64 first, auto result, auto read, auto write) {
        for (i64 j = 0; j < n; j++) {
            const i64 at = first + (Reverse ? n - 1 - j : j) * inner;
            const auto next = Op::enter(result, read(x + at));
            write(y + at, Exclusive ? result : next);
            result = next;
        }
    };
    for_pieces(inner, columns, [&](i64 o, i64 i, i64 lanes) {
        if (lanes == 1) {
            walk(o * n * inner + i, Op::template neutral<T>, [](const T* p) { return *p; }, [](T* p, T v) { *p = v; });
            return;
        }
        walk(
            o * n * inner + i, lanes_of<T>(Op::template neutral<T>), [=](const T* p) { return load_lanes(p, lanes); },
            [=](T* p, lanes_of<T> v) { store_lanes(p, v, lanes); });
    });
}

} // namespace CUVIL_ISA
} // namespace cuvil
