// Convolutions and pooling.
#include "kernels/conv.hpp"

#include "eval/element_types.hpp"
#include "kernels/conv_transpose.hpp"
#include "kernels/pool.hpp"

namespace cuvil::evaluation {
namespace {

// Calls f.operator()<Rank>() for images of two or three axes.
template <class F> bool with_axes(size_t axes, F f) {
    switch (axes) {
    case 2: return f.template operator()<2>();
    case 3: return f.template operator()<3>();
    default: return false;
    }
}

// `in` and `out` are the sizes of images, channels aside.
template <int Rank>
ConvAny<Rank> convolution(const Array& x, int64_t groups, const Window& w, const int64_t* in, const int64_t* out,
                          const int64_t* kernel, int64_t outputs) {
    ConvAny<Rank> p{x.shape[0], x.shape[1], outputs, groups, {}, {}, {}, {}, {}, {}};
    for (size_t i = 0; i < Rank; i++) {
        p.in[i] = in[i];
        p.out[i] = out[i];
        p.kernel[i] = kernel[i];
        p.stride[i] = w.strides[i];
        p.dilation[i] = w.dilations[i];
        p.pad[i] = w.pads[i];
    }
    return p;
}

template <int Rank> PoolAny<Rank> pooling(const Array& x, const Window& w, bool count_include_pad, const Result& y) {
    PoolAny<Rank> p{x.shape[0] * x.shape[1], {}, {}, {}, {}, {}, {}, {}, count_include_pad};
    for (size_t i = 0; i < Rank; i++) {
        p.in[i] = x.shape[2 + i];
        p.out[i] = y.shape[2 + i];
        p.kernel[i] = w.kernel[i];
        p.stride[i] = w.strides[i];
        p.dilation[i] = w.dilations[i];
        p.pad[i] = w.pads[i];
        p.pad_end[i] = w.pads[Rank + i];
    }
    return p;
}

template <class T, int Rank>
INLINE void conv_all(const ConvAny<Rank>& p, const T* x, const T* weights, const T* bias, T* y) {
    for (i64 task = 0; task < conv_any_tasks(p); task++) conv_any<T, Rank>(p, task, x, weights, bias, y);
}
template <class T, int Rank>
WITH_FMA void conv_all_quickly(const ConvAny<Rank>& p, const T* x, const T* weights, const T* bias, T* y) {
    conv_all(p, x, weights, bias, y);
}

template <class T, int Rank>
INLINE void conv_transpose_all(const ConvAny<Rank>& p, const T* x, const T* weights, const T* bias, T* y) {
    for (i64 task = 0; task < conv_any_tasks(p); task++) conv_transpose_any<T, Rank>(p, task, x, weights, bias, y);
}
template <class T, int Rank>
WITH_FMA void conv_transpose_all_quickly(const ConvAny<Rank>& p, const T* x, const T* weights, const T* bias, T* y) {
    conv_transpose_all(p, x, weights, bias, y);
}

} // namespace

bool conv(const Array& x, const Array& weight, const Array* bias, const Window& w, int64_t groups, const Result& y) {
    return with_axes(x.shape.size() - 2, [&]<int Rank>() {
        auto p = convolution<Rank>(x, groups, w, &x.shape[2], &y.shape[2], &weight.shape[2], y.shape[1]);
        return with_type(y.type, NumberTypes(), [&]<class T>() {
            auto run = is_float<T> && has_quick_fma() ? conv_all_quickly<T, Rank> : conv_all<T, Rank>;
            run(p, elements<T>(x), elements<T>(weight), bias ? elements<T>(*bias) : nullptr, elements<T>(y));
        });
    });
}

bool conv_transpose(const Array& x, const Array& weight, const Array* bias, const Window& w, int64_t groups,
                    const Result& y) {
    return with_axes(x.shape.size() - 2, [&]<int Rank>() {
        auto p = convolution<Rank>(x, groups, w, &x.shape[2], &y.shape[2], &weight.shape[2], y.shape[1]);
        return with_type(y.type, NumberTypes(), [&]<class T>() {
            auto run =
                is_float<T> && has_quick_fma() ? conv_transpose_all_quickly<T, Rank> : conv_transpose_all<T, Rank>;
            run(p, elements<T>(x), elements<T>(weight), bias ? elements<T>(*bias) : nullptr, elements<T>(y));
        });
    });
}

bool col2im(const Array& x, const Window& w, const std::vector<int64_t>& counts, const Result& y) {
    return with_axes(counts.size(), [&]<int Rank>() {
        auto p = convolution<Rank>(x, 1, w, counts.data(), &y.shape[2], w.kernel.data(), y.shape[1]);
        p.c = y.shape[1];
        return with_type(y.type, NumberTypes(),
                         [&]<class T>() { cuvil::col2im<T, Rank>(p, {0, p.n * p.c}, elements<T>(x), elements<T>(y)); });
    });
}

bool max_pool2d(const Array& x, const Window& window, const Result& y) {
    auto p = pooling<2>(x, window, false, y);
    return with_type(y.type, NumberTypes(),
                     [&]<class T>() { pool_any<T, 2, Max>(p, {0, p.planes}, elements<T>(x), elements<T>(y)); });
}

bool avg_pool2d(const Array& x, const Window& window, bool count_include_pad, const Result& y) {
    auto p = pooling<2>(x, window, count_include_pad, y);
    return with_type(y.type, FloatingTypes(),
                     [&]<class T>() { pool_any<T, 2, Mean>(p, {0, p.planes}, elements<T>(x), elements<T>(y)); });
}

bool sum_pool2d(const Array& x, const Window& window, const Result& y) {
    auto p = pooling<2>(x, window, false, y);
    return with_type(y.type, NumberTypes(),
                     [&]<class T>() { pool_any<T, 2, Sum>(p, {0, p.planes}, elements<T>(x), elements<T>(y)); });
}

bool pool_indices(const Array& x, const Window& window, bool column_major, const Result& y) {
    return with_axes(x.shape.size() - 2, [&]<int Rank>() {
        auto p = pooling<Rank>(x, window, false, y);
        return with_type(x.type, NumberTypes(), [&]<class T>() {
            cuvil::pool_indices<T, Rank>(p, {0, p.planes}, column_major, elements<T>(x), elements<i64>(y));
        });
    });
}

} // namespace cuvil::evaluation
