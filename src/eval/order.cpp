// Ops that rank elements along an axis, or go through it step by step.
#include "kernels/sort.hpp"

#include "eval/element_types.hpp"
#include "kernels/cumulative.hpp"
#include "kernels/reduce.hpp"
#include "kernels/suppress.hpp"

namespace cuvil::evaluation {
namespace {

// Sizes before, along and behind an axis.
struct Extent {
    i64 outer = 1, n = 1, inner = 1;
};

Extent extent_of(const std::vector<int64_t>& shape, int64_t axis) {
    Extent e;
    for (size_t i = 0; i < shape.size(); i++) {
        auto at = static_cast<int64_t>(i);
        (at < axis ? e.outer : at == axis ? e.n : e.inner) *= shape[i];
    }
    return e;
}

} // namespace

bool arg_extreme(const Array& x, int64_t axis, bool is_largest, bool takes_last, const Result& y) {
    Extent e = extent_of(x.shape, axis);
    Range outputs{0, e.outer * e.inner};
    if (e.n == 0) return outputs.size() == 0;
    return with_type(x.type, NumberTypes(), [&]<class T>() {
        auto run = [&]<bool Largest, bool Last>() {
            cuvil::arg_extreme<Largest, Last>(e.n, e.inner, outputs, elements<T>(x), elements<i64>(y));
        };
        if (is_largest)
            takes_last ? run.template operator()<true, true>() : run.template operator()<true, false>();
        else
            takes_last ? run.template operator()<false, true>() : run.template operator()<false, false>();
    });
}

bool top_k(const Array& x, int64_t axis, bool takes_largest, const Result& y) {
    Extent e = extent_of(x.shape, axis);
    i64 k = y.shape[static_cast<size_t>(axis)];
    Range columns{0, e.outer * e.inner};
    if (k > e.n) return false;
    return with_type(x.type, NumberTypes(), [&]<class T>() {
        if (takes_largest)
            cuvil::top_k<true>(e.n, k, e.inner, columns, elements<T>(x), elements<i64>(y));
        else
            cuvil::top_k<false>(e.n, k, e.inner, columns, elements<T>(x), elements<i64>(y));
    });
}

bool sort_rows(const Array& x, const Result& y) {
    return with_type(x.type == "bool" ? "u8" : x.type, NumberTypes(),
                     [&]<class T>() { cuvil::sort_rows(x.shape[0], x.shape[1], elements<T>(x), elements<i64>(y)); });
}

bool cumulate(std::string_view family, const Array& x, int64_t axis, bool exclusive, bool reverse, const Result& y) {
    Extent e = extent_of(x.shape, axis);
    Range columns{0, e.outer * e.inner};
    auto run = [&]<class Op, bool Exclusive, bool Reverse>() {
        return with_type(x.type, NumberTypes(), [&]<class T>() {
            cuvil::cumulate<Op, Exclusive, Reverse>(e.n, e.inner, columns, elements<T>(x), elements<T>(y));
        });
    };
    auto run_of = [&]<class Op>() {
        if (exclusive)
            return reverse ? run.template operator()<Op, true, true>() : run.template operator()<Op, true, false>();
        return reverse ? run.template operator()<Op, false, true>() : run.template operator()<Op, false, false>();
    };
    return family == "Sum" ? run_of.template operator()<Sum>() : run_of.template operator()<Prod>();
}

bool suppress(std::span<const Array> x, const Array* score_threshold, bool is_centered, const Result& y) {
    const Array &boxes = x[0], &scores = x[1], &order = x[2];
    if (order.type != "i64" || x[3].type != "i64") return false;
    i64 classes = scores.shape[1], n = scores.shape[2];
    for (i64 i = 0; i < scores.shape[0] * classes; i++)
        suppress_overlaps(n, elements<f32>(boxes) + i / classes * n * 4, is_centered, elements<f32>(scores) + i * n,
                          elements<i64>(order) + i * n, *elements<i64>(x[3]), *elements<f32>(x[4]),
                          score_threshold != nullptr, score_threshold ? *elements<f32>(*score_threshold) : 0.0f,
                          elements<bool>(y) + i * n);
    return true;
}

} // namespace cuvil::evaluation
