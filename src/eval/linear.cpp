// Matrix products.
#include "kernels/gemm.hpp"

#include "eval/element_types.hpp"
#include "kernels/eliminate.hpp"
#include "kernels/softmax.hpp"

#include <vector>

namespace cuvil::evaluation {

namespace {

// A stack of products; `b_step` leads from one right side to the next.
template <class T> INLINE void products(i64 stacks, i64 m, i64 n, i64 k, const T* a, const T* b, i64 b_step, T* y) {
    for (i64 i = 0; i < stacks; i++)
        matmul_any<T>(m, n, k, a + i * m * k, k, 1, b + i * b_step, n, 1, y + i * m * n, n);
}
template <class T>
WITH_FMA void products_quickly(i64 stacks, i64 m, i64 n, i64 k, const T* a, const T* b, i64 b_step, T* y) {
    products(stacks, m, n, k, a, b, b_step, y);
}

// The one of the two that is right here.
template <class T> auto products_for_this_processor() {
    return is_float<T> && has_quick_fma() ? products_quickly<T> : products<T>;
}

} // namespace

bool matmul(const Array& a, const Array& b, const Result& y) {
    size_t rank = a.shape.size();
    i64 m = a.shape[rank - 2], k = a.shape[rank - 1], n = b.shape.back();
    i64 stacks = 1;
    for (size_t i = 0; i + 2 < rank; i++) stacks *= a.shape[i];
    i64 b_step = b.shape.size() == 2 ? 0 : k * n;
    return with_type(y.type, NumberTypes(), [&]<class T>() {
        products_for_this_processor<T>()(stacks, m, n, k, elements<T>(a), elements<T>(b), b_step, elements<T>(y));
    });
}

bool eliminate(const Array& x, const Result& y) {
    i64 n = x.shape.back(), count = n == 0 ? 0 : x.count() / (n * n);
    return with_type(y.type, FloatingTypes(), [&]<class T>() {
        for (i64 i = 0; i < count; i++) cuvil::eliminate(n, elements<T>(x) + i * n * n, elements<T>(y) + i * n * n);
    });
}

// By the definition: all scores of a head, softmax, and a product.
bool attention(const Array& q, const Array& k, const Array& v, const Array* mask, const Attending& how,
               const Result& y) {
    size_t rank = q.shape.size();
    const i64 rows = q.shape[rank - 2], depth = q.shape[rank - 1], keys = k.shape.back(), width = v.shape.back();
    i64 heads = 1;
    for (size_t i = 0; i + 2 < rank; i++) heads *= q.shape[i];
    const auto scale = static_cast<f32>(how.scale), fill = static_cast<f32>(how.fill);
    const auto multiply = products_for_this_processor<f32>();
    std::vector<f32> scores(static_cast<size_t>(rows * keys));
    for (i64 head = 0; head < heads; head++) {
        multiply(1, rows, keys, depth, elements<f32>(q) + head * rows * depth, elements<f32>(k) + head * depth * keys,
                 0, scores.data());
        for (i64 i = 0; i < rows * keys; i++) {
            f32& score = scores[static_cast<size_t>(i)];
            const i64 at = head * rows * keys + i;
            score = score * scale;
            if (mask && mask->type == "bool")
                score = elements<bool>(*mask)[at] ? score : fill;
            else if (mask)
                score = score + elements<f32>(*mask)[at];
        }
        cuvil::softmax<f32>(rows, keys, 1, {0, rows}, scores.data(), scores.data());
        for (f32& weight : scores)
            if (how.nan_to_zero && weight != weight) weight = 0;
        multiply(1, rows, width, keys, scores.data(), elements<f32>(v) + head * keys * width, 0,
                 elements<f32>(y) + head * rows * width);
    }
    return true;
}

} // namespace cuvil::evaluation
