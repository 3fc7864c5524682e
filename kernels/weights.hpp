#pragma once
// Weights in types narrower than f32. They save memory and the time of reading it; whoever multiplies with them makes
// f32 of them first, exactly.
#include "kernels/vector.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// The upper half of an f32.
struct bf16 {
    u16 bits;
};
// IEEE 754's binary16: a sign, 5 bits of exponent and 10 of mantissa.
struct f16 {
    u16 bits;
};

// 16 of them as f32; none is infinite or NaN.
INLINE vec<f32> load_weights(const f32* p) { return load(p); }
INLINE vec<f32> load_weights(const bf16* p) { return bits_as<vec<f32>>(convert<u32>(load(&p->bits)) << 16); }
INLINE vec<f32> load_weights(const f16* p) {
#if defined(__F16C__)
    using halves = _Float16 __attribute__((ext_vector_type(16)));
    return convert<f32>(bits_as<halves>(load(&p->bits)));
#else
    // Exponents count from 15 and not from 127. A subnormal number is what its mantissa adds to the smallest normal
    // one.
    const vec<u32> bits = convert<u32>(load(&p->bits));
    const vec<u32> sign = (bits & 0x8000) << 16, magnitude = (bits & 0x7fff) << 13;
    const vec<u32> normal = magnitude + (112 << 23), smallest = splat(u32(113) << 23);
    const vec<u32> subnormal = bits_as<vec<u32>>(bits_as<vec<f32>>(magnitude + smallest) - bits_as<vec<f32>>(smallest));
    return bits_as<vec<f32>>(select(magnitude < (1 << 23), subnormal, normal) | sign);
#endif
}
INLINE vec<f32> load_weights(const i8* p) { return convert<f32>(load(p)); }

// Packed matrices: [ceil(n / columns)][k][columns], stripes of 64 bytes for each k.
template <class W> inline constexpr i64 stripe_columns = 64 / sizeof(W);
template <class W> inline constexpr i64 stripe_panels = stripe_columns<W> / lane_count;

// A stripe of i8 begins with the scales of its columns, f32, by which the sums of its products are multiplied. The
// elements that they take:
template <class W> inline constexpr i64 stripe_head = 0;
template <> inline constexpr i64 stripe_head<i8> = stripe_columns<i8> * sizeof(f32);

// Elements of a stripe.
template <class W> constexpr i64 stripe_size(i64 k) { return stripe_head<W> + k * stripe_columns<W>; }

// Where the panel of that number lies among stripes that are so many elements apart.
template <class W> constexpr i64 panel_offset(i64 panel, i64 stripe_step) {
    return panel / stripe_panels<W> * stripe_step + panel % stripe_panels<W> * lane_count;
}

// The products of a row with 16 columns from `column` on, from the sums over what their panel holds.
template <class W>
INLINE vec<f32> scaled(vec<f32> sums, [[maybe_unused]] const W* packed, [[maybe_unused]] i64 column,
                       [[maybe_unused]] i64 stripe_step) {
    if constexpr (stripe_head<W> > 0) {
        const W* stripe = packed + column / stripe_columns<W> * stripe_step;
        return sums * load(reinterpret_cast<const f32*>(stripe) + column % stripe_columns<W>);
    } else {
        return sums;
    }
}

// Element (i, j) of a packed matrix of k rows.
template <class W> INLINE f32 packed_element(const W* packed, i64 k, i64 i, i64 j) {
    const i64 step = stripe_size<W>(k), column = j / lane_count * lane_count;
    const W* row = packed + stripe_head<W> + panel_offset<W>(j / lane_count, step) + i * stripe_columns<W>;
    return scaled(load_weights(row), packed, column, step)[j - column];
}

} // namespace CUVIL_ISA
} // namespace cuvil
