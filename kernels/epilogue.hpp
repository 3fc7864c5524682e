#pragma once
// What a kernel does with each value before it stores it. An epilogue is any function `vec<f32> e(vec<f32>, At)`. The
// light ones have a few instructions and one type for many steps, so that the micro-kernels have a copy for each type
// and apply them in registers; all others get their values by way of memory.
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

template <class E> inline constexpr bool is_light = false;

// Between two bounds, low <= 0 <= high; a NaN stays one.
struct Clamp {
    f32 low, high;

    INLINE vec<f32> operator()(vec<f32> v) const {
        v = select(splat(low) > v, splat(low), v);
        return select(splat(high) < v, splat(high), v);
    }
};
struct HardSwish {
    INLINE vec<f32> operator()(vec<f32> v) const { return hard_swish(v); }
};

// f(v + bias + addend): one bias per channel, filled up to a multiple of 16 with zeros, and, if `Adds`, an image in the
// layout of the output. Channels that are not real get 0.
template <bool Adds, class Activation> struct Light {
    const f32 *bias, *addend;
    Activation f;

    INLINE vec<f32> operator()(vec<f32> v, At at) const {
        v = v + load(bias + at.channel);
        if constexpr (Adds) {
            v = v + load(addend + at.offset);
        }
        return f(v);
    }
};
template <bool Adds, class Activation> inline constexpr bool is_light<Light<Adds, Activation>> = true;

} // namespace CUVIL_ISA
} // namespace cuvil
