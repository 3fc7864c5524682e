#pragma once
// Reads and writes whose places are data: gather and scatter by whole index tuples, and element by element along one
// axis. Indices count from the end where they are negative. Every function returns the position, among the indices, of
// the first one in its range that is out of bounds, or -1; nothing is written there, and what is read is 0.
//
// Of updates that meet in one element the later ones come later, in row-major order, so the result is that of a plain
// loop. Ranges never share an element of the result.
#include "kernels/move.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// What an update does to the element it meets.
struct Replace {
    template <class T> INLINE static T apply(T, T update) { return update; }
};
struct AddTo {
    template <class T> INLINE static T apply(T old, T update) { return add(old, update); }
};
struct MultiplyBy {
    template <class T> INLINE static T apply(T old, T update) { return mul(old, update); }
};
struct MaximumWith {
    template <class T> INLINE static T apply(T old, T update) { return maximum(old, update); }
};
struct MinimumWith {
    template <class T> INLINE static T apply(T old, T update) { return minimum(old, update); }
};

// ---- Along one axis. `shape` is that of the indices with 1 for the axis, and columns are counted over it; strides are
// in elements. The axis has `count` indices, `step` elements apart, and `size` elements of the data.

template <int R> struct Columns {
    i64 shape[R];
    i64 index_strides[R];
    i64 data_strides[R];
    i64 count, index_step;
    i64 size, data_step;

    constexpr i64 columns() const {
        i64 product = 1;
        for (int d = 0; d < R; d++) {
            product *= shape[d];
        }
        return product;
    }
};

// Calls f(position of the index, offset of the element that it names) in rising order down each column.
template <int R, class I, class F>
INLINE i64 for_each_element(const Columns<R>& c, Range columns, const I* indices, F f) {
    i64 wrong = -1;
    for (i64 column = columns.begin; column < columns.end; column++) {
        i64 at = 0;
        i64 data = 0;
        i64 left = column;
        UNROLL for (int d = R - 1; d >= 0; d--) {
            at += left % c.shape[d] * c.index_strides[d];
            data += left % c.shape[d] * c.data_strides[d];
            left /= c.shape[d];
        }
        for (i64 j = 0; j < c.count; j++, at += c.index_step) {
            i64 index = static_cast<i64>(indices[at]);
            index += index < 0 ? c.size : 0;
            const bool good = index >= 0 && index < c.size;
            if (!good) {
                wrong = wrong < 0 ? at : smaller(wrong, at);
            }
            f(at, good ? data + index * c.data_step : -1);
        }
    }
    return wrong;
}

// y is shaped like the indices: y[at] = x[the element that indices[at] names].
template <int R, class T, class I>
INLINE i64 gather_elements(const Columns<R>& c, Range columns, const T* x, const I* indices, T* y) {
    return for_each_element(c, columns, indices, [=](i64 at, i64 from) { y[at] = from < 0 ? T(0) : x[from]; });
}

// Updates are shaped like the indices; y holds the data before.
template <class Op, int R, class T, class I>
INLINE i64 scatter_elements(const Columns<R>& c, Range columns, const I* indices, const T* updates, T* y) {
    return for_each_element(c, columns, indices, [=](i64 at, i64 to) {
        if (to >= 0) {
            y[to] = Op::apply(y[to], updates[at]);
        }
    });
}

// ---- By index tuples of D numbers, each of which names `inner` contiguous elements of a tensor whose first sizes are
// `sizes`.

// The offset of what the tuple names, or -1.
template <int D, class I> INLINE i64 tuple_offset(const i64 (&sizes)[D], i64 inner, const I* tuple) {
    i64 offset = 0;
    bool good = true;
    UNROLL for (int d = 0; d < D; d++) {
        i64 index = static_cast<i64>(tuple[d]);
        index += index < 0 ? sizes[d] : 0;
        good = good && index >= 0 && index < sizes[d];
        offset = offset * sizes[d] + index;
    }
    return good ? offset * inner : -1;
}

// The position of the first number of a tuple that is out of bounds.
template <int D, class I> INLINE i64 wrong_number(const i64 (&sizes)[D], const I* tuple) {
    for (int d = 0; d < D; d++) {
        const i64 index = static_cast<i64>(tuple[d]);
        if (index < -sizes[d] || index >= sizes[d]) {
            return d;
        }
    }
    return 0;
}

// y[row] = x[tuple `row`]; rows are `per_batch` to each of the batches, x has `batch_size` elements for each.
template <int D, class T, class I>
INLINE i64 gather_tuples(const i64 (&sizes)[D], i64 inner, i64 per_batch, i64 batch_size, Range rows, const T* x,
                         const I* indices, T* y) {
    i64 wrong = -1;
    for (i64 row = rows.begin; row < rows.end; row++) {
        const I* tuple = indices + row * D;
        const i64 offset = tuple_offset(sizes, inner, tuple);
        T* to = y + row * inner;
        if (offset < 0) {
            wrong = wrong < 0 ? row * D + wrong_number(sizes, tuple) : wrong;
            for (i64 i = 0; i < inner; i++) {
                to[i] = T(0);
            }
            continue;
        }
        copy_row(inner, to, 1, x + row / per_batch * batch_size + offset, 1);
    }
    return wrong;
}

// y[tuple `row`] meets updates[row], for the part `columns` of the inner elements; y holds the data before.
template <class Op, int D, class T, class I>
INLINE i64 scatter_tuples(const i64 (&sizes)[D], i64 inner, i64 count, Range columns, const I* indices,
                          const T* updates, T* y) {
    i64 wrong = -1;
    for (i64 row = 0; row < count; row++) {
        const I* tuple = indices + row * D;
        const i64 offset = tuple_offset(sizes, inner, tuple);
        if (offset < 0) {
            wrong = wrong < 0 ? row * D + wrong_number(sizes, tuple) : wrong;
            continue;
        }
        for (i64 i = columns.begin; i < columns.end; i++) {
            y[offset + i] = Op::apply(y[offset + i], updates[row * inner + i]);
        }
    }
    return wrong;
}

} // namespace CUVIL_ISA
} // namespace cuvil
