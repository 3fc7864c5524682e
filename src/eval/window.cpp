// Matrix products, convolutions and pooling.
#include "kernels/conv.hpp"

#include "eval/element_types.hpp"
#include "kernels/gemm.hpp"
#include "kernels/pool.hpp"

namespace cuvil::evaluation {

bool matmul(const Array& a, const Array& b, const Result& y) {
    size_t rank = a.shape.size();
    i64 m = a.shape[rank - 2], k = a.shape[rank - 1], n = b.shape.back();
    i64 stacks = 1;
    for (size_t i = 0; i + 2 < rank; i++) stacks *= a.shape[i];
    i64 b_step = b.shape.size() == 2 ? 0 : k * n;
    return with_type(y.type, NumberTypes(), [&]<class T>() {
        for (i64 i = 0; i < stacks; i++)
            matmul_any<T>(m, n, k, elements<T>(a) + i * m * k, k, 1, elements<T>(b) + i * b_step, n, 1,
                          elements<T>(y) + i * m * n, n);
    });
}

bool conv2d(const Array& x, const Array& weight, const Array* bias, const Window& w, int64_t groups, const Result& y) {
    ConvAny<2> p{x.shape[0], x.shape[1], weight.shape[0], groups, {}, {}, {}, {}, {}, {}};
    for (size_t i = 0; i < 2; i++) {
        p.in[i] = x.shape[2 + i];
        p.out[i] = y.shape[2 + i];
        p.kernel[i] = weight.shape[2 + i];
        p.stride[i] = w.strides[i];
        p.dilation[i] = w.dilations[i];
        p.pad[i] = w.pads[i];
    }
    return with_type(y.type, NumberTypes(), [&]<class T>() {
        for (i64 task = 0; task < conv_any_tasks(p); task++)
            conv_any<T, 2>(p, task, elements<T>(x), elements<T>(weight), bias ? elements<T>(*bias) : nullptr,
                           elements<T>(y));
    });
}

namespace {

PoolAny<2> pooling(const Array& x, const Window& w, bool count_include_pad, const Result& y) {
    PoolAny<2> p{x.shape[0] * x.shape[1], {}, {}, {}, {}, {}, {}, {}, count_include_pad};
    for (size_t i = 0; i < 2; i++) {
        p.in[i] = x.shape[2 + i];
        p.out[i] = y.shape[2 + i];
        p.kernel[i] = w.kernel[i];
        p.stride[i] = w.strides[i];
        p.dilation[i] = w.dilations[i];
        p.pad[i] = w.pads[i];
        p.pad_end[i] = w.pads[2 + i];
    }
    return p;
}

} // namespace

bool max_pool2d(const Array& x, const Window& window, const Result& y) {
    PoolAny<2> p = pooling(x, window, false, y);
    return with_type(y.type, NumberTypes(),
                     [&]<class T>() { pool_any<T, 2, Max>(p, {0, p.planes}, elements<T>(x), elements<T>(y)); });
}

bool avg_pool2d(const Array& x, const Window& window, bool count_include_pad, const Result& y) {
    PoolAny<2> p = pooling(x, window, count_include_pad, y);
    return with_type(y.type, FloatingTypes(),
                     [&]<class T>() { pool_any<T, 2, Mean>(p, {0, p.planes}, elements<T>(x), elements<T>(y)); });
}

} // namespace cuvil::evaluation
