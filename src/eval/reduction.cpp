// Ops that combine elements along axes.
#include "kernels/reduce.hpp"

#include "eval/element_types.hpp"
#include "kernels/math.hpp"
#include "kernels/norm.hpp"
#include "kernels/softmax.hpp"

#include <algorithm>
#include <optional>

namespace cuvil::evaluation {
namespace {

using Ints = std::vector<int64_t>;

// Sizes before, along and behind neighbouring axes [first, last).
struct Extent {
    int64_t outer = 1, n = 1, inner = 1;
};

Extent extent_of(const Ints& shape, size_t first, size_t last) {
    Extent e;
    for (size_t i = 0; i < shape.size(); i++) (i < first ? e.outer : i < last ? e.n : e.inner) *= shape[i];
    return e;
}

template <class Op, class List> bool reduce_extent(List types, const Extent& e, const Array& x, const Result& y) {
    return with_type(x.type, types, [&]<class T>() {
        cuvil::reduce<Op, T>(e.outer, e.n, e.inner, {0, e.outer * e.inner}, elements<T>(x), elements<T>(y));
    });
}

bool reduce_extent(std::string_view family, const Extent& e, const Array& x, const Result& y) {
    if (family == "Sum") return reduce_extent<Sum>(NumberTypes(), e, x, y);
    if (family == "Mean") return reduce_extent<Mean>(NumberTypes(), e, x, y);
    if (family == "Max") return reduce_extent<Max>(NumberTypes(), e, x, y);
    if (family == "Min") return reduce_extent<Min>(NumberTypes(), e, x, y);
    if (family == "Prod") return reduce_extent<Prod>(NumberTypes(), e, x, y);
    return false;
}

bool are_neighbours(const Ints& axes) {
    for (size_t i = 1; i < axes.size(); i++)
        if (axes[i] != axes[i - 1] + 1) return false;
    return true;
}

// x with the given axes moved to the end, all in order. `storage` holds its elements.
std::optional<Array> moved_to_end(const Array& x, const Ints& axes, std::vector<uint64_t>& storage) {
    Ints perm;
    for (int64_t i = 0; i < static_cast<int64_t>(x.shape.size()); i++)
        if (!std::ranges::binary_search(axes, i)) perm.push_back(i);
    perm.insert(perm.end(), axes.begin(), axes.end());
    Ints shape;
    for (int64_t axis : perm) shape.push_back(x.shape[static_cast<size_t>(axis)]);
    storage.resize(static_cast<size_t>(x.count()) * x.element_size / sizeof(uint64_t) + 1);
    Result moved{x.type, x.element_size, shape, reinterpret_cast<std::byte*>(storage.data())};
    if (!transpose(x, perm, moved)) return std::nullopt;
    return Array{x.type, x.element_size, shape, moved.data};
}

} // namespace

bool reduce(std::string_view family, const Array& x, const Ints& axes, const Result& y) {
    Ints sorted = axes;
    std::ranges::sort(sorted);
    sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
    if (are_neighbours(sorted)) {
        size_t first = sorted.empty() ? x.shape.size() : static_cast<size_t>(sorted.front());
        return reduce_extent(family, extent_of(x.shape, first, first + sorted.size()), x, y);
    }
    std::vector<uint64_t> storage;
    auto moved = moved_to_end(x, sorted, storage);
    if (!moved) return false;
    size_t first = x.shape.size() - sorted.size();
    return reduce_extent(family, extent_of(moved->shape, first, x.shape.size()), *moved, y);
}

bool softmax(std::string_view op, const Array& x, int64_t axis, const Result& y) {
    auto first = static_cast<size_t>(axis);
    Extent e = extent_of(x.shape, first, first + 1);
    return with_type(x.type, FloatingTypes(), [&]<class T>() {
        Range columns{0, e.outer * e.inner};
        if (op == "log_softmax")
            log_softmax<T>(e.outer, e.n, e.inner, columns, elements<T>(x), elements<T>(y));
        else if (op == "hardmax")
            hardmax<T>(e.outer, e.n, e.inner, columns, elements<T>(x), elements<T>(y));
        else
            cuvil::softmax<T>(e.outer, e.n, e.inner, columns, elements<T>(x), elements<T>(y));
    });
}

bool layer_norm(const Array& x, const Array* scale, const Array* bias, int64_t axis, double epsilon, const Result& y) {
    Extent e = extent_of(x.shape, static_cast<size_t>(axis), x.shape.size());
    return with_type(x.type, FloatingTypes(), [&]<class T>() {
        cuvil::layer_norm<T>(e.n, static_cast<T>(epsilon), {0, e.outer}, elements<T>(x),
                             scale ? elements<T>(*scale) : nullptr, bias ? elements<T>(*bias) : nullptr,
                             elements<T>(y));
    });
}

bool rms_norm(const Array& x, const Array* scale, int64_t axis, double epsilon, const Result& y) {
    Extent e = extent_of(x.shape, static_cast<size_t>(axis), x.shape.size());
    return with_type(x.type, FloatingTypes(), [&]<class T>() {
        cuvil::rms_norm<T>(e.n, static_cast<T>(epsilon), {0, e.outer}, elements<T>(x),
                           scale ? elements<T>(*scale) : nullptr, elements<T>(y));
    });
}

// By the definition, in its order.
bool batch_norm(std::span<const Array> x, double epsilon, const Result& y) {
    Extent e = extent_of(x[0].shape, 1, 2);
    return with_type(y.type, FloatingTypes(), [&]<class T>() {
        for (i64 plane = 0; plane < e.outer * e.n; plane++) {
            i64 channel = plane % e.n;
            T scale = elements<T>(x[1])[channel], bias = elements<T>(x[2])[channel], mean = elements<T>(x[3])[channel];
            T deviation = sqrt(elements<T>(x[4])[channel] + static_cast<T>(epsilon));
            for (i64 i = plane * e.inner; i < (plane + 1) * e.inner; i++)
                elements<T>(y)[i] = (elements<T>(x[0])[i] - mean) / deviation * scale + bias;
        }
    });
}

} // namespace cuvil::evaluation
