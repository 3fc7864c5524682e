// Ops that combine elements along axes.
#include "kernels/reduce.hpp"

#include "eval/element_types.hpp"
#include "kernels/softmax.hpp"

#include <algorithm>
#include <numeric>

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

bool softmax(const Array& x, int64_t axis, bool logarithm, const Result& y) {
    auto first = static_cast<size_t>(axis);
    Extent e = extent_of(x.shape, first, first + 1);
    return with_type(x.type, FloatingTypes(), [&]<class T>() {
        Range columns{0, e.outer * e.inner};
        if (logarithm)
            log_softmax<T>(e.outer, e.n, e.inner, columns, elements<T>(x), elements<T>(y));
        else
            cuvil::softmax<T>(e.outer, e.n, e.inner, columns, elements<T>(x), elements<T>(y));
    });
}

} // namespace cuvil::evaluation
