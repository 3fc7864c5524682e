#pragma once
// Gaussian elimination. One task brings one matrix to its form, row by row, so the bits do not depend on the tasks.
#include "kernels/math.hpp"
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// y is x [n][n] with zeros below the diagonal and the same determinant. In each column the element that is farthest
// from 0 comes to the diagonal; when rows are swapped for it, the one that goes down changes its sign. A column without
// such an element is left as it is.
template <class T> INLINE void eliminate(i64 n, const T* x, T* y) {
    for (i64 i = 0; i < n * n; i++) {
        y[i] = x[i];
    }
    for (i64 k = 0; k < n; k++) {
        i64 best = k;
        for (i64 i = k + 1; i < n; i++) {
            if (abs(y[i * n + k]) > abs(y[best * n + k])) {
                best = i;
            }
        }
        for (i64 j = 0; j < n && best != k; j++) {
            const T down = y[k * n + j];
            y[k * n + j] = y[best * n + j];
            y[best * n + j] = -down;
        }
        const T pivot = y[k * n + k];
        for (i64 i = k + 1; i < n && pivot != 0; i++) {
            const T factor = -(y[i * n + k] / pivot);
            y[i * n + k] = 0;
            for (i64 j = k + 1; j < n; j += lane_count) {
                const i64 lanes = smaller(lane_count, n - j);
                const lanes_of<T> row = load_lanes(y + i * n + j, lanes), above = load_lanes(y + k * n + j, lanes);
                store_lanes(y + i * n + j, fma(splat(factor), above, row), lanes);
            }
        }
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
