#pragma once
// Orders of elements and rows, as lists of positions. Equal ones keep their order, a NaN is greater than all numbers;
// so the order is total, and any way of sorting gives the same list. Heaps do it within the memory of the list itself.
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

template <class T> INLINE bool is_greater(T a, T b) { return a > b || (a != a && b == b); }

// Moves what stands at the root of a heap of n positions down to its place; the last of all in order is the root.
template <class Before> INLINE void sift_down(i64 n, i64* heap, i64 stride, Before before) {
    const i64 moving = heap[0];
    i64 hole = 0;
    for (i64 child = 1; child < n; child = 2 * hole + 1) {
        if (child + 1 < n && before(heap[child * stride], heap[(child + 1) * stride])) {
            child++;
        }
        if (!before(moving, heap[child * stride])) {
            break;
        }
        heap[hole * stride] = heap[child * stride];
        hole = child;
    }
    heap[hole * stride] = moving;
}

template <class Before> INLINE void sift_up(i64 at, i64* heap, i64 stride, Before before) {
    const i64 moving = heap[at * stride];
    while (at > 0 && before(heap[(at - 1) / 2 * stride], moving)) {
        heap[at * stride] = heap[(at - 1) / 2 * stride];
        at = (at - 1) / 2;
    }
    heap[at * stride] = moving;
}

// The first k of the positions 0 .. n, in order, to `first`; k <= n.
template <class Before> INLINE void first_in_order(i64 n, i64 k, i64* first, i64 stride, Before before) {
    if (k <= 0) {
        return;
    }
    for (i64 i = 0; i < n; i++) {
        if (i < k) {
            first[i * stride] = i;
            sift_up(i, first, stride, before);
        } else if (before(i, first[0])) {
            first[0] = i;
            sift_down(k, first, stride, before);
        }
    }
    for (i64 left = k - 1; left > 0; left--) {
        const i64 last = first[0];
        first[0] = first[left * stride];
        first[left * stride] = last;
        sift_down(left, first, stride, before);
    }
}

// For columns of x[outer][n][inner], counted as o * inner + i, the positions of the k largest (or smallest) to
// y[outer][k][inner], best first.
template <bool Largest, class T> INLINE void top_k(i64 n, i64 k, i64 inner, Range columns, const T* x, i64* y) {
    for (i64 column = columns.begin; column < columns.end; column++) {
        const T* from = x + column / inner * n * inner + column % inner;
        i64* to = y + column / inner * k * inner + column % inner;
        first_in_order(n, k, to, inner, [=](i64 a, i64 b) {
            const T u = from[a * inner];
            const T v = from[b * inner];
            const bool greater = is_greater(u, v);
            const bool less = is_greater(v, u);
            return (Largest ? greater : less) || (!greater && !less && a < b);
        });
    }
}

// The positions of the n rows of m elements in rising lexicographic order.
template <class T> INLINE void sort_rows(i64 n, i64 m, const T* x, i64* y) {
    first_in_order(n, n, y, 1, [=](i64 a, i64 b) {
        for (i64 i = 0; i < m; i++) {
            const T u = x[a * m + i];
            const T v = x[b * m + i];
            if (is_greater(v, u)) {
                return true;
            }
            if (is_greater(u, v)) {
                return false;
            }
        }
        return a < b;
    });
}

} // namespace CUVIL_ISA
} // namespace cuvil
