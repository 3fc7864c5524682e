#pragma once
// What a kernel does with each value before it stores it. An epilogue is any function `vec<f32> e(vec<f32>, At)`. The
// known ones are one type for many steps, so that steps share the code around them; of these, the light ones have a few
// instructions, and the micro-kernels apply them in registers. All others get their values by way of memory.
#include "kernels/activation.hpp"
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// What an epilogue learns of the 16 values it is given: the column or channel of the first, its offset in the output
// buffer, and how many of them are real, of which alone other tensors may be read (see load_lanes).
struct At {
    i64 channel, offset, lanes;
};

// The epilogue that changes nothing.
struct Identity {
    INLINE vec<f32> operator()(vec<f32> v, At) const { return v; }
};

// ---- Known epilogues

// Between two bounds, low <= 0 <= high; a NaN stays one.
struct Clamp {
    static constexpr bool is_light = true;
    f32 low, high;

    INLINE vec<f32> operator()(vec<f32> v) const {
        v = select(splat(low) > v, splat(low), v);
        return select(splat(high) < v, splat(high), v);
    }
};
struct HardSwish {
    static constexpr bool is_light = true;
    INLINE vec<f32> operator()(vec<f32> v) const { return hard_swish(v); }
};
struct Silu {
    static constexpr bool is_light = false;
    INLINE vec<f32> operator()(vec<f32> v) const { return silu(v); }
};

// Where an image in the layout of the output is added.
enum class Addend { none, before, after };

// f(v + bias), and perhaps an image before or after f: one bias per channel, filled up to a multiple of 16 with zeros.
// Channels that are not real get 0.
template <Addend A, class F> struct Known {
    const f32 *bias, *addend;
    F f;

    INLINE vec<f32> operator()(vec<f32> v, At at) const {
        v = v + load(bias + at.channel);
        if constexpr (A == Addend::before) {
            v = v + load(addend + at.offset);
        }
        v = f(v);
        if constexpr (A == Addend::after) {
            v = v + load(addend + at.offset);
        }
        return v;
    }
};

template <class E> inline constexpr bool is_light = false;
template <Addend A, class F> inline constexpr bool is_light<Known<A, F>> = F::is_light;

} // namespace CUVIL_ISA
} // namespace cuvil
