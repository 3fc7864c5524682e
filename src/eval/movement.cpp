// Ops that move elements: each is strided copies.
#include "kernels/move.hpp"

#include "eval/element_types.hpp"
#include "kernels/math.hpp"

#include <algorithm>

namespace cuvil::evaluation {
namespace {

constexpr int most_axes = 8;
using Ints = std::vector<int64_t>;

Ints row_major(const Ints& shape) {
    Ints strides(shape.size());
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
    return strides;
}

// The index space of a copy, axis by axis, with the steps that both sides take.
struct Walk {
    Ints shape, y_strides, x_strides;
};

// Drops axes of size 1 and joins those that both sides walk without a gap.
Walk merged(const Walk& walk) {
    Walk out;
    for (size_t i = 0; i < walk.shape.size(); i++) {
        int64_t size = walk.shape[i], y = walk.y_strides[i], x = walk.x_strides[i];
        if (size == 1) continue;
        if (!out.shape.empty() && out.y_strides.back() == size * y && out.x_strides.back() == size * x) {
            out.shape.back() *= size;
            out.y_strides.back() = y;
            out.x_strides.back() = x;
        } else {
            out.shape.push_back(size);
            out.y_strides.push_back(y);
            out.x_strides.push_back(x);
        }
    }
    return out;
}

template <int R, class T> void copy_axes(const Walk& walk, T* y, const T* x) {
    i64 shape[R], y_strides[R], x_strides[R];
    size_t missing = R - walk.shape.size();
    for (size_t i = 0; i < R; i++) {
        shape[i] = i < missing ? 1 : walk.shape[i - missing];
        y_strides[i] = i < missing ? 0 : walk.y_strides[i - missing];
        x_strides[i] = i < missing ? 0 : walk.x_strides[i - missing];
    }
    copy_strided<R, T>(shape, {0, map_rows(shape)}, y, y_strides, x, x_strides);
}

// Offsets are in elements.
bool copy(const Walk& walk, const Result& y, int64_t y_offset, const Array& x, int64_t x_offset) {
    if (std::ranges::find(walk.shape, 0) != walk.shape.end()) return true;
    Walk less = merged(walk);
    if (less.shape.size() > most_axes) return false;
    return with_size(y.element_size, [&]<class T>() {
        T* to = elements<T>(y) + y_offset;
        const T* from = elements<T>(x) + x_offset;
        if (less.shape.size() <= 1)
            copy_axes<1>(less, to, from);
        else
            copy_axes<most_axes>(less, to, from);
    });
}

int64_t offset_of(const Ints& index, const Ints& strides) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); i++) offset += index[i] * strides[i];
    return offset;
}

} // namespace

bool transpose(const Array& x, const Ints& perm, const Result& y) {
    Ints x_strides = row_major(x.shape), permuted;
    for (int64_t axis : perm) permuted.push_back(x_strides[static_cast<size_t>(axis)]);
    return copy({y.shape, row_major(y.shape), permuted}, y, 0, x, 0);
}

bool broadcast(const Array& x, const Result& y) {
    Ints x_strides = row_major(x.shape), strides(y.shape.size(), 0);
    size_t added = y.shape.size() - x.shape.size();
    for (size_t i = 0; i < x.shape.size(); i++) strides[added + i] = x.shape[i] == 1 ? 0 : x_strides[i];
    return copy({y.shape, row_major(y.shape), strides}, y, 0, x, 0);
}

bool slice(const Array& x, const Ints& starts, const Ints& steps, const Result& y) {
    Ints x_strides = row_major(x.shape), strides = x_strides;
    for (size_t i = 0; i < strides.size(); i++) strides[i] *= steps[i];
    return copy({y.shape, row_major(y.shape), strides}, y, 0, x, offset_of(starts, x_strides));
}

bool concat(std::span<const Array> x, int64_t axis, const Result& y) {
    Ints y_strides = row_major(y.shape);
    int64_t at = 0;
    for (const Array& part : x) {
        if (!copy({part.shape, y_strides, row_major(part.shape)}, y, at * y_strides[static_cast<size_t>(axis)], part,
                  0))
            return false;
        at += part.shape[static_cast<size_t>(axis)];
    }
    return true;
}

bool pad(const Array& x, const Ints& low, double value, const Result& y) {
    bool filled =
        with_type(y.type, NumberTypes(), [&]<class T>() { std::fill_n(elements<T>(y), y.count(), cast<T>(value)); });
    if (!filled) return false;
    Ints y_strides = row_major(y.shape);
    return copy({x.shape, y_strides, row_major(x.shape)}, y, offset_of(low, y_strides), x, 0);
}

bool range(const Array& start, const Array& delta, const Result& y) {
    return with_type(y.type, NumberTypes(), [&]<class T>() {
        fill_range<T>({0, y.count()}, *elements<T>(start), *elements<T>(delta), elements<T>(y));
    });
}

} // namespace cuvil::evaluation
