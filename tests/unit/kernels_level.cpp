// The cases that the kernel tests run at each level. This file is compiled as an artifact's code is: without any header
// but the kernels', since an inline function of the standard library compiled for one level would replace those of the
// others.
#include "kernels_level.hpp"

#include "kernels/conv.hpp"
#include "kernels/conv_depthwise.hpp"
#include "kernels/depthwise.hpp"
#include "kernels/gemm.hpp"
#include "kernels/map.hpp"
#include "kernels/move.hpp"
#include "kernels/norm.hpp"
#include "kernels/pool.hpp"
#include "kernels/reduce.hpp"
#include "kernels/softmax.hpp"
#include "kernels/winograd.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

template <class T> const T* input(const void* const* in, int i) { return static_cast<const T*>(in[i]); }
template <class T> T* output(void* const* out, int i) { return static_cast<T*>(out[i]); }

// Runs f on values in vectors (p[1] = 0) or one by one (p[1] = 1), p[0] values.
template <class X, class Y, class F> void run_unary(const i64* p, const void* const* in, void* const* out, F f) {
    const X* x = input<X>(in, 0);
    Y* y = output<Y>(out, 0);
    if (p[1] == 0) {
        for (i64 i = 0; i < p[0]; i += lane_count) {
            const i64 lanes = smaller(lane_count, p[0] - i);
            store_lanes(y + i, f(load_lanes(x + i, lanes)), lanes);
        }
    } else {
        for (i64 i = 0; i < p[0]; i++) {
            y[i] = f(x[i]);
        }
    }
}

template <class X, class Y, class F> void run_binary(const i64* p, const void* const* in, void* const* out, F f) {
    const X* a = input<X>(in, 0);
    const X* b = input<X>(in, 1);
    Y* y = output<Y>(out, 0);
    if (p[1] == 0) {
        for (i64 i = 0; i < p[0]; i += lane_count) {
            const i64 lanes = smaller(lane_count, p[0] - i);
            store_lanes(y + i, f(load_lanes(a + i, lanes), load_lanes(b + i, lanes)), lanes);
        }
    } else {
        for (i64 i = 0; i < p[0]; i++) {
            y[i] = f(a[i], b[i]);
        }
    }
}

#define UNARY(name, function, X, Y)                                                                                    \
    {name, [](const i64* p, const void* const* in, void* const* out) {                                                 \
         run_unary<X, Y>(p, in, out, [](auto v) { return function; });                                                 \
     }}
#define BINARY(name, function, X, Y)                                                                                   \
    {name, [](const i64* p, const void* const* in, void* const* out) {                                                 \
         run_binary<X, Y>(p, in, out, [](auto a, auto b) { return function; });                                        \
     }}
#define FLOAT_MATH(T)                                                                                                  \
    UNARY("exp " #T, exp(v), T, T), UNARY("expm1 " #T, expm1(v), T, T), UNARY("log " #T, log(v), T, T),                \
        UNARY("log1p " #T, log1p(v), T, T), UNARY("tanh " #T, tanh(v), T, T), UNARY("sigmoid " #T, sigmoid(v), T, T),  \
        UNARY("erf " #T, erf(v), T, T), UNARY("sin " #T, sin(v), T, T), UNARY("cos " #T, cos(v), T, T),                \
        UNARY("tan " #T, tan(v), T, T), UNARY("asin " #T, asin(v), T, T), UNARY("acos " #T, acos(v), T, T),            \
        UNARY("atan " #T, atan(v), T, T), UNARY("sinh " #T, sinh(v), T, T), UNARY("cosh " #T, cosh(v), T, T),          \
        UNARY("asinh " #T, asinh(v), T, T), UNARY("acosh " #T, acosh(v), T, T), UNARY("atanh " #T, atanh(v), T, T),    \
        UNARY("gelu " #T, gelu(v), T, T), UNARY("gelu_tanh " #T, gelu_tanh(v), T, T),                                  \
        UNARY("silu " #T, silu(v), T, T), UNARY("mish " #T, mish(v), T, T),                                            \
        UNARY("hard_swish " #T, hard_swish(v), T, T), UNARY("relu " #T, relu(v), T, T),                                \
        UNARY("sign " #T, sign(v), T, T), UNARY("round " #T, round(v), T, T), UNARY("floor " #T, floor(v), T, T),      \
        UNARY("sqrt " #T, sqrt(v), T, T), UNARY("to i32 " #T, cast<i32>(v), T, i32),                                   \
        UNARY("to u8 " #T, cast<u8>(v), T, u8), UNARY("to i64 " #T, cast<i64>(v), T, i64),                             \
        UNARY("to u64 " #T, cast<u64>(v), T, u64), UNARY("to bool " #T, cast<bool>(v), T, bool),                       \
        BINARY("pow " #T, pow(a, b), T, T), BINARY("rem " #T, rem(a, b), T, T), BINARY("mod " #T, mod(a, b), T, T),    \
        BINARY("maximum " #T, maximum(a, b), T, T), BINARY("minimum " #T, minimum(a, b), T, T),                        \
        BINARY("less " #T, less(a, b), T, bool), BINARY("where " #T, where(greater_equal(a, b), a, b), T, T)
#define INTEGER_MATH(T)                                                                                                \
    BINARY("div " #T, div(a, b), T, T), BINARY("rem " #T, rem(a, b), T, T), BINARY("mod " #T, mod(a, b), T, T),        \
        BINARY("pow " #T, pow(a, b), T, T), BINARY("mul " #T, mul(a, b), T, T), BINARY("fma " #T, fma(a, b, a), T, T), \
        BINARY("shift_left " #T, shift_left(a, b), T, T), BINARY("shift_right " #T, shift_right(a, b), T, T),          \
        BINARY("equal " #T, equal(a, b), T, bool), UNARY("abs " #T, abs(v), T, T), UNARY("sign " #T, sign(v), T, T),   \
        UNARY("to f32 " #T, cast<f32>(v), T, f32), UNARY("to i16 " #T, cast<i16>(v), T, i16)

// p = m, n, k, ldc; in = a[m][k], packed b, bias[n]; out = c[m][ldc]. Tasks run in falling order.
template <class W, i64 N = unknown, i64 K = unknown>
void run_packed_gemm(const i64* p, const void* const* in, void* const* out) {
    const Gemm g = {p[0], p[1], p[2], p[2], p[3]};
    const f32* bias = input<f32>(in, 2);
    constexpr GemmTiles tiles = gemm_tiles<W>(unknown, N, K);
    for (i64 task = gemm_tasks(g, tiles) - 1; task >= 0; task--) {
        gemm_task<tiles>(g, task, input<f32>(in, 0), input<W>(in, 1), output<f32>(out, 0),
                         [=](vec<f32> v, At at) { return v + load_lanes(bias + at.channel, at.lanes); });
    }
}

// The same with b[k][n], which goes packed to out[1].
template <i64 N = unknown, i64 K = unknown> void run_gemm(const i64* p, const void* const* in, void* const* out) {
    f32* packed = output<f32>(out, 1);
    pack_b(p[2], p[1], input<f32>(in, 1), p[1], 1, packed);
    const void* const operands[] = {in[0], packed, in[2]};
    run_packed_gemm<f32, N, K>(p, operands, out);
}

// p = count, a multiple of 16; in = packed weights; out = the same as f32.
template <class W> void run_load_weights(const i64* p, const void* const* in, void* const* out) {
    for (i64 i = 0; i < p[0]; i += lane_count) {
        store(output<f32>(out, 0) + i, load_weights(input<W>(in, 0) + i));
    }
}

// The same product without bias, in the largest tiles of p[4] panels.
template <i64 Panels> void run_tiles(const i64* p, const void* const* in, void* const* out) {
    if constexpr (Panels > 0) {
        if (p[4] != Panels) {
            run_tiles<Panels - 1>(p, in, out);
            return;
        }
        constexpr i64 rows = rows_that_fit(Panels);
        if constexpr (rows > 0) {
            constexpr Tiles largest = {rows, Panels, (u32(2) << rows) - 2, (u32(2) << Panels) - 2};
            constexpr GemmTiles tiles = {largest, largest};
            const Gemm g = {p[0], p[1], p[2], p[2], p[3]};
            f32* packed = output<f32>(out, 1);
            pack_b(g.k, g.n, input<f32>(in, 1), g.n, 1, packed);
            for (i64 task = gemm_tasks(g, tiles) - 1; task >= 0; task--) {
                gemm_task<tiles>(g, task, input<f32>(in, 0), packed, output<f32>(out, 0), Identity());
            }
        }
    }
}

// p = m, n, k, panels of a stripe; out = rows and panels of the tiles chosen, the counts of rows and of panels that
// occur, and rows_that_fit for 1 .. most_panels.
void run_choose_tiles(const i64* p, const void* const*, void* const* out) {
    const Tiles tiles = choose_tiles(p[0], p[1], p[2], p[3]);
    i64* y = output<i64>(out, 0);
    *y++ = tiles.rows;
    *y++ = tiles.panels;
    *y++ = tiles.row_counts;
    *y++ = tiles.panel_counts;
    for (i64 panels = 1; panels <= most_panels; panels++) {
        *y++ = rows_that_fit(panels);
    }
}

template <class T> void run_matmul_any(const i64* p, const void* const* in, void* const* out) {
    const i64 n = p[1], k = p[2];
    matmul_any<T>(p[0], n, k, input<T>(in, 0), k, 1, input<T>(in, 1), p[4] ? 1 : n, p[4] ? k : 1, output<T>(out, 0),
                  p[3]);
}

Conv2d conv_of(const i64* p) {
    return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14]};
}

// relu(v + bias) + 0.5, or as a light epilogue without that.
template <bool IsLight> auto test_epilogue(const f32* bias) {
    if constexpr (IsLight) {
        return Known<Addend::none, Clamp>{bias, nullptr, {0, __builtin_inff()}};
    } else {
        return [=](vec<f32> v, At at) { return relu(v + load(bias + at.channel)) + splat(0.5f); };
    }
}

// Calls f with the window of a depthwise convolution that has tiles of its own, as a constant, or with any_window.
template <Window... W, class F> void with_window(const Conv2d& c, F f) {
    const bool is_known =
        ((c.dilation_w == 1 && c.s == W.columns && c.stride_w == W.stride && (f.template operator()<W>(), true)) ||
         ...);
    if (!is_known) {
        f.template operator()<any_window>();
    }
}
template <class F> void with_test_window(const Conv2d& c, F f) {
    with_window<Window{3, 1}, Window{3, 2}, Window{5, 1}, Window{5, 2}, Window{7, 1}>(c, f);
}

// p = the fields of Conv2d, the halo of y, and that of x beyond the padding; in = x, weights, bias (filled up); out = y
// plain, y blocked, packed weights, x with a halo. Width: in groups of as many channels.
template <int Block, int Width = 0, bool IsLight = false>
void run_conv(const i64* p, const void* const* in, void* const* out) {
    const Conv2d c = conv_of(p);
    const i64 halo = p[15], extra = p[16];
    const i64 bottom = larger(0, (c.oh - 1) * c.stride_h + (c.r - 1) * c.dilation_h + 1 - c.pad_top - c.h) + extra;
    const i64 right = larger(0, (c.ow - 1) * c.stride_w + (c.s - 1) * c.dilation_w + 1 - c.pad_left - c.w) + extra;
    const Blocked yl = {c.k, c.oh, c.ow, halo, halo, halo, halo};
    f32* packed = output<f32>(out, 2);
    f32* framed = output<f32>(out, 3);
    f32* y = output<f32>(out, 1);
    const f32* bias = input<f32>(in, 2);
    if constexpr (Width > 0) {
        pack_narrow(c.k, Width, c.r, c.s, input<f32>(in, 1), packed);
    } else {
        pack_conv(c.k, c.c, c.r, c.s, Block, input<f32>(in, 1), packed);
    }
    const auto epilogue = test_epilogue<IsLight>(bias);
    constexpr Tiles tiles = conv2d_tiles(unknown, unknown, unknown, unknown);
    if constexpr (Block == 16) {
        const Blocked xl = {c.c, c.h, c.w, c.pad_top + extra, c.pad_left + extra, bottom, right};
        relayout_to_blocked(c.n, xl, {0, c.n * xl.blocks()}, input<f32>(in, 0), framed);
        if constexpr (Width > 0) {
            const auto run = [&]<Window W>() {
                for (i64 task = narrow_conv_tasks(c, Width) - 1; task >= 0; task--) {
                    narrow_conv_task<Width, W>(c, task, framed, xl, packed, y, yl, epilogue);
                }
            };
            if constexpr (Width == 1) {
                with_test_window(c, run);
            } else {
                run.template operator()<any_window>();
            }
        }
        for (i64 task = Width > 0 ? -1 : conv2d_tasks(c, tiles) - 1; task >= 0; task--) {
            conv2d_task<Block, tiles>(c, task, framed, xl, packed, y, yl, epilogue);
        }
    } else {
        const Padded xl = {c.c, c.h, c.w, c.pad_top + extra, c.pad_left + extra, bottom, right};
        relayout_to_padded(c.n, xl, {0, c.n * c.c}, input<f32>(in, 0), framed);
        for (i64 task = conv2d_tasks(c, tiles) - 1; task >= 0; task--) {
            conv2d_task<Block, tiles>(c, task, framed, xl, packed, y, yl, epilogue);
        }
    }
    relayout_to_plain(c.n, yl, {0, c.n * yl.blocks()}, y, output<f32>(out, 0));
}

// Two convolutions, the second one depthwise, as one step and as two. p = the fields of both, the halo of y, and that
// of x beyond the padding; in = x, weights and bias of the first, of the second one (filled up); out = y blocked as it
// is made by one step, by two, packed weights of the first, of the second one, x and the image between with a halo,
// scratch memory. Any content may be in all of them.
template <int Block, bool IsLight> void run_conv_depthwise(const i64* p, const void* const* in, void* const* out) {
    const Conv2d a = conv_of(p), b = conv_of(p + 15);
    const i64 halo = p[30], extra = p[31];
    const auto frame_of = [](const Conv2d& c, i64 more) {
        const i64 bottom = (c.oh - 1) * c.stride_h + (c.r - 1) * c.dilation_h + 1 - c.pad_top - c.h;
        const i64 right = (c.ow - 1) * c.stride_w + (c.s - 1) * c.dilation_w + 1 - c.pad_left - c.w;
        return Blocked{
            c.c, c.h, c.w, c.pad_top + more, c.pad_left + more, larger(0, bottom) + more, larger(0, right) + more};
    };
    const Blocked xl = frame_of(a, extra), between = frame_of(b, 0);
    const Blocked yl = {b.k, b.oh, b.ow, halo, halo, halo, halo};
    f32 *packed = output<f32>(out, 2), *packed_b = output<f32>(out, 3), *framed = output<f32>(out, 4);
    pack_conv(a.k, a.c, a.r, a.s, Block, input<f32>(in, 1), packed);
    pack_narrow(b.k, 1, b.r, b.s, input<f32>(in, 3), packed_b);
    const auto first = test_epilogue<IsLight>(input<f32>(in, 2)), second = test_epilogue<IsLight>(input<f32>(in, 4));
    constexpr Tiles tiles = conv2d_tiles(unknown, unknown, unknown, unknown);
    constexpr Tiles narrow_tiles = conv_depthwise_tiles(unknown, 48, unknown);
    const auto run = [&](const auto& layout) {
        for (i64 task = conv2d_tasks(a, tiles) - 1; task >= 0; task--) {
            conv2d_task<Block, tiles>(a, task, framed, layout, packed, output<f32>(out, 5), between, first);
        }
        with_test_window(b, [&]<Window W>() {
            for (i64 task = narrow_conv_tasks(b, 1) - 1; task >= 0; task--) {
                narrow_conv_task<1, W>(b, task, output<f32>(out, 5), between, packed_b, output<f32>(out, 1), yl,
                                       second);
            }
            for (i64 n = 0; n < b.n; n++) {
                for (i64 task = cut_conv_depthwise(a, b, narrow_tiles.panels).tasks() - 1; task >= 0; task--) {
                    conv_depthwise_task<Block, narrow_tiles, W>(a, b, n, task, framed, layout, packed, first, packed_b,
                                                                output<f32>(out, 6), output<f32>(out, 0), yl, second);
                }
            }
        });
    };
    if constexpr (Block == 16) {
        relayout_to_blocked(a.n, xl, {0, a.n * xl.blocks()}, input<f32>(in, 0), framed);
        run(xl);
    } else {
        const Padded layout = {a.c, a.h, a.w, xl.top, xl.left, xl.bottom, xl.right};
        relayout_to_padded(a.n, layout, {0, a.n * a.c}, input<f32>(in, 0), framed);
        run(layout);
    }
}

// As run_conv; out[4] = scratch memory, that any content may be in.
template <WinogradScheme W> void run_winograd(const i64* p, const void* const* in, void* const* out) {
    const Conv2d c = conv_of(p);
    const i64 halo = p[15], extra = p[16];
    const Blocked xl = {c.c, c.h, c.w, c.pad_top + extra, c.pad_left + extra, extra, extra + 1};
    const Blocked yl = {c.k, c.oh, c.ow, halo, halo, halo, halo};
    f32 *y = output<f32>(out, 1), *packed = output<f32>(out, 2), *framed = output<f32>(out, 3);
    f32* scratch = output<f32>(out, 4);
    const f32* bias = input<f32>(in, 2);
    pack_winograd<W>(c.k, c.c, input<f32>(in, 1), packed);
    relayout_to_blocked(c.n, xl, {0, c.n * xl.blocks()}, input<f32>(in, 0), framed);
    const auto epilogue = [=](vec<f32> v, At at) { return relu(v + load(bias + at.channel)) + splat(0.5f); };
    const WinogradCut cut = cut_winograd<W>(c);
    for (i64 first = 0; first < cut.blocks; first += cut.at_once) {
        const i64 blocks = smaller(cut.at_once, cut.blocks - first);
        for (i64 i = cut.parts > 1 ? blocks * cut.channel_blocks - 1 : -1; i >= 0; i--) {
            const i64 slot = i / cut.channel_blocks;
            const i64 block = i % cut.channel_blocks;
            winograd_inputs<W>(c, cut, first + slot, {block, block + 1}, framed, xl, cut.v(scratch, slot));
        }
        for (i64 task = blocks * cut.parts - 1; task >= 0; task--) {
            winograd_task<W, winograd_tiles<W>(unknown, unknown, unknown)>(c, cut, first, task, framed, xl, packed,
                                                                           scratch, y, yl, epilogue);
        }
    }
    relayout_to_plain(c.n, yl, {0, c.n * yl.blocks()}, y, output<f32>(out, 0));
}

// p = n, c, k, groups, then in, out, kernel, stride, dilation, pad, each Rank long; in = x, weights, bias; out = y.
template <class T, int Rank> void run_conv_any(const i64* p, const void* const* in, void* const* out) {
    ConvAny<Rank> c{p[0], p[1], p[2], p[3], {}, {}, {}, {}, {}, {}};
    for (int d = 0; d < Rank; d++) {
        const i64* q = p + 4 + d;
        c.in[d] = q[0], c.out[d] = q[Rank], c.kernel[d] = q[2 * Rank];
        c.stride[d] = q[3 * Rank], c.dilation[d] = q[4 * Rank], c.pad[d] = q[5 * Rank];
    }
    for (i64 task = conv_any_tasks(c) - 1; task >= 0; task--) {
        conv_any<T, Rank>(c, task, input<T>(in, 0), input<T>(in, 1), input<T>(in, 2), output<T>(out, 0));
    }
}

// p = n, c, h, w, oh, ow, kernel, stride, dilation, pad, kind (0 largest, 1 mean, 2 mean with padding, 3 global mean),
// pad at the end; in = x; out = y plain, y blocked, x blocked. Kinds from 10 on take the plain kernels instead.
void run_pool(const i64* p, const void* const* in, void* const* out) {
    const f32* x = input<f32>(in, 0);
    if (p[10] >= 10) {
        const PoolAny<2> any = {p[0] * p[1],  {p[2], p[3]}, {p[4], p[5]},   {p[6], p[6]}, {p[7], p[7]},
                                {p[8], p[8]}, {p[9], p[9]}, {p[11], p[11]}, p[10] == 12};
        if (p[10] == 10) {
            pool_any<f32, 2, Max>(any, {0, any.planes}, x, output<f32>(out, 0));
        } else {
            pool_any<f32, 2, Mean>(any, {0, any.planes}, x, output<f32>(out, 0));
        }
        return;
    }
    const Blocked xl = {p[1], p[2], p[3], 1, 0, 2, 1};
    const Blocked yl = {p[1], p[4], p[5], 0, 1, 1, 2};
    const Pool2d pool = {p[0], p[1], p[2], p[3], p[4], p[5], p[6],  p[6],
                         p[7], p[7], p[8], p[8], p[9], p[9], p[11], p[11]};
    f32* framed = output<f32>(out, 2);
    relayout_to_blocked(p[0], xl, {0, p[0] * xl.blocks()}, x, framed);
    if (p[10] == 3) {
        for (i64 task = 0; task < global_avg_pool_tasks(p[0], xl); task++) {
            global_avg_pool_task(xl, task, framed, output<f32>(out, 0));
        }
        return;
    }
    f32* y = output<f32>(out, 1);
    for (i64 task = pool2d_tasks(pool) - 1; task >= 0; task--) {
        if (p[10] == 0) {
            max_pool2d_task(pool, task, framed, xl, y, yl);
        } else {
            avg_pool2d_task(pool, task, framed, xl, y, yl, p[10] == 2);
        }
    }
    relayout_to_plain(p[0], yl, {0, p[0] * yl.blocks()}, y, output<f32>(out, 0));
}

// p = shape[3], strides of x0 and x1, parts; y = relu(x0 + x1), in `parts` ranges.
void run_map3(const i64* p, const void* const* in, void* const* out) {
    const i64 shape[3] = {p[0], p[1], p[2]};
    const i64 rows = map_rows(shape);
    for (i64 part = p[9] - 1; part >= 0; part--) {
        map(
            shape, chunk(rows, p[9], part), output<f32>(out, 0), [](auto a, auto b) { return relu(add(a, b)); },
            Operand<3, f32>{input<f32>(in, 0), {p[3], p[4], p[5]}},
            Operand<3, f32>{input<f32>(in, 1), {p[6], p[7], p[8]}});
    }
}

// p = n, stride of x1, parts; y (bool) = x0 < x1 and not x2, z = where(x2, x0, x1) as i64.
void run_map1(const i64* p, const void* const* in, void* const* out) {
    const i64 shape[1] = {p[0]};
    for (i64 part = p[2] - 1; part >= 0; part--) {
        const Range range = chunk(map_rows(shape), p[2], part);
        const Operand<1, f32> a{input<f32>(in, 0), {1}}, b{input<f32>(in, 1), {p[1]}};
        const Operand<1, bool> c{input<bool>(in, 2), {1}};
        map(
            shape, range, output<bool>(out, 0),
            [](auto x, auto y, auto z) { return logical_and(less(x, y), logical_not(z)); }, a, b, c);
        map(
            shape, range, output<i64>(out, 1), [](auto x, auto y, auto z) { return cast<i64>(where(z, x, y)); }, a, b,
            c);
    }
}

// p = n, c, h, w, top, left, bottom, right; in = x; out = y phased.
void run_relayout_to_phased(const i64* p, const void* const* in, void* const* out) {
    const Blocked l = phased(p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
    for (i64 image = p[0] - 1; image >= 0; image--) {
        relayout_to_phased(p[0], p[2], p[3], l, {image, image + 1}, input<f32>(in, 0), output<f32>(out, 0));
    }
}

// p = n, c, h, w; y = x * scale[channel] + 1, on blocked tensors; out = y plain, y, x.
void run_map_blocked(const i64* p, const void* const* in, void* const* out) {
    const Blocked yl = {p[1], p[2], p[3], 2, 1, 0, 1};
    const Range planes = {0, blocked_planes(p[0], yl)};
    f32 *y = output<f32>(out, 1), *same = output<f32>(out, 2);
    relayout_to_blocked(p[0], yl, planes, input<f32>(in, 0), same);
    map_blocked(
        yl, p[0], planes, y, [](auto a, auto s) { return fma(a, s, splat(1.0f)); }, Same{same},
        PerChannel{input<f32>(in, 1)});
    relayout_to_plain(p[0], yl, planes, y, output<f32>(out, 0));
}

// p = outer, n, inner, parts.
template <class Op, class T> void run_reduce(const i64* p, const void* const* in, void* const* out) {
    for (i64 part = p[3] - 1; part >= 0; part--) {
        reduce<Op>(p[0], p[1], p[2], chunk(p[0] * p[2], p[3], part), input<T>(in, 0), output<T>(out, 0));
    }
}

template <bool Log, class T> void run_softmax(const i64* p, const void* const* in, void* const* out) {
    for (i64 part = p[3] - 1; part >= 0; part--) {
        const Range range = chunk(p[0] * p[2], p[3], part);
        if constexpr (Log) {
            log_softmax(p[0], p[1], p[2], range, input<T>(in, 0), output<T>(out, 0));
        } else {
            softmax(p[0], p[1], p[2], range, input<T>(in, 0), output<T>(out, 0));
        }
    }
}

// p = rows, n, parts, whether there are scale and bias; in = x, scale, bias.
template <bool Layer, class T> void run_norm(const i64* p, const void* const* in, void* const* out) {
    const T* x = input<T>(in, 0);
    const T* scale = p[3] ? input<T>(in, 1) : nullptr;
    const T* bias = p[3] ? input<T>(in, 2) : nullptr;
    for (i64 part = p[2] - 1; part >= 0; part--) {
        const Range rows = chunk(p[0], p[2], part);
        if constexpr (Layer) {
            layer_norm<T>(p[1], T(1e-5), rows, x, scale, bias, output<T>(out, 0));
        } else {
            rms_norm<T>(p[1], T(1e-5), rows, x, scale, output<T>(out, 0));
        }
    }
}

void run_argmax(const i64* p, const void* const* in, void* const* out) {
    arg_extreme<true, false>(p[1], p[2], {0, p[0] * p[2]}, input<f32>(in, 0), output<i64>(out, 0));
}

// p = shape[3], strides of y, strides of x, parts.
template <class T> void run_copy(const i64* p, const void* const* in, void* const* out) {
    const i64 shape[3] = {p[0], p[1], p[2]};
    for (i64 part = p[9] - 1; part >= 0; part--) {
        copy_strided<3, T>(shape, chunk(map_rows(shape), p[9], part), output<T>(out, 0), {p[3], p[4], p[5]},
                           input<T>(in, 0), {p[6], p[7], p[8]});
    }
}

// p = outer, axis, inner, count; in = x, indices; out = y, the returned position.
void run_gather(const i64* p, const void* const* in, void* const* out) {
    *output<i64>(out, 1) =
        gather(p[0], p[1], p[2], p[3], {0, p[0] * p[3]}, input<f32>(in, 0), input<i64>(in, 1), output<f32>(out, 0));
}

// p = axis, inner, count; in = x, indices; out = y, the returned position, x packed.
void run_gather_packed(const i64* p, const void* const* in, void* const* out) {
    f32* packed = output<f32>(out, 2);
    pack_b(p[1], p[0], input<f32>(in, 0), 1, p[1], packed);
    *output<i64>(out, 1) = gather_packed(p[0], p[1], {0, p[2]}, packed, input<i64>(in, 1), output<f32>(out, 0));
}

// The same where the table comes packed.
template <class W> void run_gather_narrow(const i64* p, const void* const* in, void* const* out) {
    gather_packed(p[0], p[1], {0, p[2]}, input<W>(in, 0), input<i64>(in, 1), output<f32>(out, 0));
}

// p = shape[2]; out = indices [2][count], the count.
void run_nonzero(const i64* p, const void* const* in, void* const* out) {
    const i64 count = nonzero_count(p[0] * p[1], input<f32>(in, 0));
    *output<i64>(out, 1) = count;
    nonzero_fill(2, p, input<f32>(in, 0), output<i64>(out, 0), 1, count);
}

} // namespace CUVIL_ISA
} // namespace cuvil

using namespace cuvil;

extern const NamedCase CUVIL_JOIN(kernel_cases_, CUVIL_ISA)[] = {
    FLOAT_MATH(f32),
    FLOAT_MATH(f64),
    INTEGER_MATH(i8),
    INTEGER_MATH(u8),
    INTEGER_MATH(i32),
    INTEGER_MATH(i64),
    INTEGER_MATH(u64),
    {"gemm", run_gemm<>},
    {"gemm 777 x 1031", run_gemm<777, 1031>},
    {"gemm bf16", run_packed_gemm<bf16>},
    {"gemm f16", run_packed_gemm<f16>},
    {"gemm i8", run_packed_gemm<i8>},
    {"load f16", run_load_weights<f16>},
    {"tiles", run_tiles<most_panels>},
    {"choose_tiles", run_choose_tiles},
    {"matmul f64", run_matmul_any<f64>},
    {"matmul i32", run_matmul_any<i32>},
    {"conv 16", run_conv<16>},
    {"conv 1", run_conv<1>},
    {"conv 16 light", run_conv<16, 0, true>},
    {"conv 1 light", run_conv<1, 0, true>},
    {"conv narrow 1", run_conv<16, 1>},
    {"conv narrow 1 light", run_conv<16, 1, true>},
    {"conv narrow 2", run_conv<16, 2>},
    {"conv narrow 4", run_conv<16, 4>},
    {"conv narrow 8", run_conv<16, 8>},
    {"conv_depthwise_scratch",
     [](const i64* p, const void* const*, void* const* out) {
         const Conv2d a = conv_of(p), b = conv_of(p + 15);
         *output<i64>(out, 0) = larger(cut_conv_depthwise(a, b, 1).scratch(), cut_conv_depthwise(a, b, 2).scratch());
     }},
    {"conv depthwise 16", run_conv_depthwise<16, false>},
    {"conv depthwise 16 light", run_conv_depthwise<16, true>},
    {"conv depthwise 1", run_conv_depthwise<1, false>},
    {"conv depthwise 1 light", run_conv_depthwise<1, true>},
    {"winograd_scratch",
     [](const i64* p, const void* const*, void* const* out) {
         const Conv2d c = conv_of(p);
         *output<i64>(out, 0) =
             c.r == 4 ? winograd_scratch<WinogradScheme{4, 1, 4}>(c)
             : c.stride_h == 1
                 ? larger(winograd_scratch<WinogradScheme{2, 1}>(c), winograd_scratch<WinogradScheme{4, 1}>(c))
                 : larger(winograd_scratch<WinogradScheme{2, 2}>(c), winograd_scratch<WinogradScheme{4, 2}>(c));
     }},
    {"conv winograd 2", run_winograd<WinogradScheme{2, 1}>},
    {"conv winograd 4", run_winograd<WinogradScheme{4, 1}>},
    {"conv winograd 2 stride 2", run_winograd<WinogradScheme{2, 2}>},
    {"conv winograd 4 stride 2", run_winograd<WinogradScheme{4, 2}>},
    {"conv winograd 4 of 4 taps", run_winograd<WinogradScheme{4, 1, 4}>},
    {"relayout_to_phased", run_relayout_to_phased},
    {"conv_any 1", run_conv_any<f32, 1>},
    {"conv_any 2", run_conv_any<f32, 2>},
    {"conv_any 3", run_conv_any<f64, 3>},
    {"conv_any i32", run_conv_any<i32, 2>},
    {"pool", run_pool},
    {"map3", run_map3},
    {"map1", run_map1},
    {"map_blocked", run_map_blocked},
    {"sum f32", run_reduce<Sum, f32>},
    {"sum i32", run_reduce<Sum, i32>},
    {"mean f32", run_reduce<Mean, f32>},
    {"mean f64", run_reduce<Mean, f64>},
    {"max f32", run_reduce<Max, f32>},
    {"min i32", run_reduce<Min, i32>},
    {"prod f32", run_reduce<Prod, f32>},
    {"sum_square f32", run_reduce<SumSquare, f32>},
    {"softmax f32", run_softmax<false, f32>},
    {"softmax f64", run_softmax<false, f64>},
    {"log_softmax f32", run_softmax<true, f32>},
    {"layer_norm f32", run_norm<true, f32>},
    {"layer_norm f64", run_norm<true, f64>},
    {"rms_norm f32", run_norm<false, f32>},
    {"rms_norm f64", run_norm<false, f64>},
    {"argmax", run_argmax},
    {"copy f32", run_copy<f32>},
    {"copy u8", run_copy<u8>},
    {"gather", run_gather},
    {"gather_packed", run_gather_packed},
    {"gather_packed bf16", run_gather_narrow<bf16>},
    {"gather_packed f16", run_gather_narrow<f16>},
    {"gather_packed i8", run_gather_narrow<i8>},
    {"nonzero", run_nonzero},
    {nullptr, nullptr},
};
