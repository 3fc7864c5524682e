// Reads and writes whose places are data.
#include "kernels/scatter.hpp"

#include "eval/element_types.hpp"
#include "kernels/math.hpp"

#include <cstring>

namespace cuvil::evaluation {
namespace {

using Ints = std::vector<int64_t>;
using IndexTypes = Types<i64, i32>;

int64_t product(const Ints& shape, size_t begin, size_t end) {
    int64_t count = 1;
    for (size_t i = begin; i < end; i++) count *= shape[i];
    return count;
}

// Calls f(position, index) for all indices; f returns false to stop.
template <class F> bool for_each_index(const Array& indices, F f) {
    bool is_good = true;
    bool known = with_type(indices.type, IndexTypes(), [&]<class I>() {
        for (int64_t i = 0; i < indices.count() && is_good; i++) is_good = f(i, i64{elements<I>(indices)[i]});
    });
    return known && is_good;
}

// Counts negative indices from the end; false if it is out of range.
bool normalize(int64_t& index, int64_t size) {
    if (index < 0) index += size;
    return index >= 0 && index < size;
}

// Calls f(position of the index, offset of the element of x that it names), where only the axis is named and the other
// coordinates are those of the index itself.
template <class F> bool for_each_along(const Array& x, const Array& indices, int64_t axis, F f) {
    return for_each_index(indices, [&](int64_t at, int64_t index) {
        int64_t offset = 0, stride = 1, left = at;
        for (size_t i = x.shape.size(); i-- > 0;) {
            int64_t coordinate = left % indices.shape[i];
            left /= indices.shape[i];
            if (static_cast<int64_t>(i) == axis) {
                coordinate = index;
                if (!normalize(coordinate, x.shape[i])) return false;
            }
            offset += coordinate * stride;
            stride *= x.shape[i];
        }
        f(at, offset);
        return true;
    });
}

// Calls f(number of the tuple, offset of the elements that it names) for tuples of indices from axis `first` of x on.
template <class F> bool for_each_tuple(const Array& x, const Array& indices, size_t first, F f) {
    auto length = static_cast<size_t>(indices.shape.back());
    int64_t inner = product(x.shape, first + length, x.shape.size()), offset = 0;
    return for_each_index(indices, [&](int64_t at, int64_t index) {
        auto i = static_cast<size_t>(at) % length;
        if (i == 0) offset = 0;
        int64_t size = x.shape[first + i];
        if (!normalize(index, size)) return false;
        offset = offset * size + index;
        if (i + 1 == length) f(at / static_cast<int64_t>(length), offset * inner);
        return true;
    });
}

void copy_elements(const Result& y, int64_t to, const Array& x, int64_t from, int64_t count) {
    auto bytes = static_cast<int64_t>(x.element_size);
    std::memcpy(y.data + to * bytes, x.data + from * bytes, static_cast<size_t>(count * bytes));
}

// Calls f.operator()<Op>() for what an update does to the element that it meets.
template <class F> void with_reduction(std::string_view reduction, F f) {
    if (reduction == "add") return f.template operator()<AddTo>();
    if (reduction == "mul") return f.template operator()<MultiplyBy>();
    if (reduction == "max") return f.template operator()<MaximumWith>();
    f.template operator()<MinimumWith>();
}

// walk(f) calls f(number of the update, offset in y, how many elements).
template <class Walk> bool update(const Array& updates, std::string_view reduction, const Result& y, Walk walk) {
    if (reduction == "none")
        return walk([&](int64_t at, int64_t to, int64_t count) { copy_elements(y, to, updates, at * count, count); });
    bool is_good = false;
    bool known = with_type(y.type, NumberTypes(), [&]<class T>() {
        with_reduction(reduction, [&]<class Op>() {
            is_good = walk([&](int64_t at, int64_t to, int64_t count) {
                T* old = elements<T>(y) + to;
                for (int64_t i = 0; i < count; i++) old[i] = Op::apply(old[i], elements<T>(updates)[at * count + i]);
            });
        });
    });
    return known && is_good;
}

} // namespace

bool gather(const Array& x, const Array& indices, int64_t axis, const Result& y) {
    auto at = static_cast<size_t>(axis);
    int64_t outer = product(x.shape, 0, at), inner = product(x.shape, at + 1, x.shape.size());
    int64_t size = x.shape[at], count = indices.count(), wrong = -1;
    bool known = false;
    with_size(x.element_size, [&]<class T>() {
        known = with_type(indices.type, IndexTypes(), [&]<class I>() {
            wrong = cuvil::gather<T, I>(outer, size, inner, count, {0, outer * count}, elements<T>(x),
                                        elements<I>(indices), elements<T>(y));
        });
    });
    return known && wrong < 0;
}

bool gather_elements(const Array& x, const Array& indices, int64_t axis, const Result& y) {
    return for_each_along(x, indices, axis, [&](int64_t at, int64_t from) { copy_elements(y, at, x, from, 1); });
}

bool gather_nd(const Array& x, const Array& indices, int64_t batch_axes, const Result& y) {
    auto first = static_cast<size_t>(batch_axes), rank = indices.shape.size();
    int64_t per_batch = product(indices.shape, first, rank - 1);
    int64_t batch_size = product(x.shape, first, x.shape.size());
    int64_t inner = product(x.shape, first + static_cast<size_t>(indices.shape.back()), x.shape.size());
    return for_each_tuple(x, indices, first, [&](int64_t tuple, int64_t from) {
        copy_elements(y, tuple * inner, x, tuple / per_batch * batch_size + from, inner);
    });
}

bool scatter_elements(const Array& x, const Array& indices, const Array& updates, int64_t axis,
                      std::string_view reduction, const Result& y) {
    copy_elements(y, 0, x, 0, x.count());
    return update(updates, reduction, y, [&](auto put) {
        return for_each_along(x, indices, axis, [&](int64_t at, int64_t to) { put(at, to, 1); });
    });
}

bool scatter_nd(const Array& x, const Array& indices, const Array& updates, std::string_view reduction,
                const Result& y) {
    copy_elements(y, 0, x, 0, x.count());
    int64_t inner = product(x.shape, static_cast<size_t>(indices.shape.back()), x.shape.size());
    return update(updates, reduction, y, [&](auto put) {
        return for_each_tuple(x, indices, 0, [&](int64_t tuple, int64_t to) { put(tuple, to, inner); });
    });
}

int64_t nonzero_count(const Array& x) {
    int64_t count = 0;
    with_type(x.type == "bool" ? "u8" : x.type, NumberTypes(),
              [&]<class T>() { count = cuvil::nonzero_count(x.count(), elements<T>(x)); });
    return count;
}

bool nonzero(const Array& x, const Result& y) {
    return with_type(x.type == "bool" ? "u8" : x.type, NumberTypes(), [&]<class T>() {
        nonzero_fill(static_cast<i64>(x.shape.size()), x.shape.data(), elements<T>(x), elements<i64>(y), 1, y.shape[1]);
    });
}

} // namespace cuvil::evaluation
