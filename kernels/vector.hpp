#pragma once
// The vector of 16 lanes that every kernel is written in, and the few operations on it that differ by level.
//
// A kernel header is compiled once per ISA level, with CUVIL_ISA defined as v2, v3 or v4 (x86-64-v2, ...), into a
// module that has no libc, and once as `eval` into the compiler itself, which folds constants with it. Each level has a
// namespace of its own, since a linker would silently keep one copy of a template that two levels share.
//
// LLVM splits the 16 lanes into the registers that a level has, so the source is the same for all of them. So are the
// bits, on every level with fma: a kernel fixes the order of its operations, never lets the compiler contract a
// multiplication and an addition, and says `fma` where it means one. v2 has no fma instruction; there `fma` rounds
// twice.
#ifndef CUVIL_ISA
#define CUVIL_ISA eval
#endif

#define CUVIL_JOIN_TEXT(a, b) a##b
#define CUVIL_JOIN(a, b) CUVIL_JOIN_TEXT(a, b)
#define CUVIL_IS_EVAL_eval 1
#define CUVIL_IS_EVAL CUVIL_JOIN(CUVIL_IS_EVAL_, CUVIL_ISA)

#define INLINE [[gnu::always_inline]] inline
#define UNROLL _Pragma("clang loop unroll(full)")

#pragma clang fp contract(off)
// A vector that a level has no register for is passed in memory. All such functions are inlined, so no ABI is at stake.
#pragma clang diagnostic ignored "-Wpsabi"

namespace cuvil {
inline namespace CUVIL_ISA {

using i64 = __INT64_TYPE__;
using i32 = __INT32_TYPE__;
using i16 = __INT16_TYPE__;
using i8 = __INT8_TYPE__;
using u64 = __UINT64_TYPE__;
using u32 = __UINT32_TYPE__;
using u16 = __UINT16_TYPE__;
using u8 = __UINT8_TYPE__;
using f32 = float;
using f64 = double;

inline constexpr i64 lane_count = 16;

// 16 values of T. There is no vec<bool>: elements of type bool are bytes 0 and 1 in memory and lanes of vec<u8>.
template <class T> using vec = T __attribute__((ext_vector_type(16)));

// What stands for an element of T in a vector.
template <class T> struct LaneOf {
    using type = T;
};
template <> struct LaneOf<bool> {
    using type = u8;
};
// The vector that holds 16 elements of a tensor of T.
template <class T> using lanes_of = vec<typename LaneOf<T>::type>;

// `Shape<V>` says of a scalar or a vector V (of any width: halves occur) what its element is, and names the type of the
// same shape over another one.
template <class V> struct Shape {
    using element = V;
    template <class U> using over = U;
    static constexpr bool is_vector = false;
};
template <class T, int N> struct Shape<T __attribute__((ext_vector_type(N)))> {
    using element = T;
    template <class U> using over = typename LaneOf<U>::type __attribute__((ext_vector_type(N)));
    static constexpr bool is_vector = true;
};
template <class V> using element_of = typename Shape<V>::element;
template <class V> inline constexpr bool is_vector = Shape<V>::is_vector;

template <class A, class B> inline constexpr bool is_same = false;
template <class A> inline constexpr bool is_same<A, A> = true;
template <class T> inline constexpr bool is_float = is_same<T, f32> || is_same<T, f64>;
template <class T> inline constexpr bool is_signed = T(-1) < T(0);

template <int Bytes> struct IntegerOf;
template <> struct IntegerOf<1> {
    using with_sign = i8;
    using without_sign = u8;
};
template <> struct IntegerOf<2> {
    using with_sign = i16;
    using without_sign = u16;
};
template <> struct IntegerOf<4> {
    using with_sign = i32;
    using without_sign = u32;
};
template <> struct IntegerOf<8> {
    using with_sign = i64;
    using without_sign = u64;
};
// The integers as wide as an element of V, in the shape of V.
template <class V>
using signed_of = typename Shape<V>::template over<typename IntegerOf<sizeof(element_of<V>)>::with_sign>;
template <class V>
using unsigned_of = typename Shape<V>::template over<typename IntegerOf<sizeof(element_of<V>)>::without_sign>;

template <class To, class From> INLINE To bits_as(From v) { return __builtin_bit_cast(To, v); }

// Each lane, converted as C++ converts it: the value must be in range. `cast` in math.hpp is defined for all values.
template <class To, class V> INLINE typename Shape<V>::template over<To> convert(V v) {
    if constexpr (is_vector<V>) {
        return __builtin_convertvector(v, typename Shape<V>::template over<To>);
    } else {
        return static_cast<To>(v);
    }
}

template <class T> INLINE lanes_of<T> splat(T s) { return (lanes_of<T>)(s); }
// Converting the bool itself would set all bits.
template <> INLINE vec<u8> splat(bool s) { return (vec<u8>)(u8(s)); }

// c ? a : b, lane by lane. For vectors `c` is what a comparison of vectors with lanes as wide as those of V gives.
template <class C, class V> INLINE V select(C c, V a, V b) { return c ? a : b; }

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || CUVIL_IS_EVAL
inline constexpr bool has_fma = true;
#else
inline constexpr bool has_fma = false;
#endif

// a * b + c. Floats: rounded once (v2: twice). Integers wrap.
template <class V> INLINE V fma(V a, V b, V c) {
    using T = element_of<V>;
    if constexpr (is_float<T>) {
        if constexpr (has_fma) {
            return __builtin_elementwise_fma(a, b, c);
        } else {
            return a * b + c;
        }
    } else {
        // In 64 bits without sign neither promotion nor overflow is an issue.
        if constexpr (is_vector<V>) {
            return a * b + c;
        } else {
            return static_cast<T>(static_cast<u64>(a) * static_cast<u64>(b) + static_cast<u64>(c));
        }
    }
}

// Memory is aligned as its elements are, and a bool is read as the byte it is.
template <class T> struct [[gnu::packed, gnu::may_alias]] Unaligned {
    lanes_of<T> lanes;
};

template <class T> INLINE lanes_of<T> load(const T* p) { return reinterpret_cast<const Unaligned<T>*>(p)->lanes; }

template <class T> INLINE void store(T* p, lanes_of<T> v) { reinterpret_cast<Unaligned<T>*>(p)->lanes = v; }

// Copies 0 to 127 bytes.
[[gnu::noinline]] inline void copy_tail(u8* to, const u8* from, i64 bytes) {
    for (; bytes >= 16; bytes -= 16, to += 16, from += 16) {
        __builtin_memcpy_inline(to, from, 16);
    }
    if (bytes & 8) {
        __builtin_memcpy_inline(to, from, 8);
        to += 8, from += 8;
    }
    if (bytes & 4) {
        __builtin_memcpy_inline(to, from, 4);
        to += 4, from += 4;
    }
    if (bytes & 2) {
        __builtin_memcpy_inline(to, from, 2);
        to += 2, from += 2;
    }
    if (bytes & 1) {
        *to = *from;
    }
}

// The first n elements (0 <= n <= 16) at p; the other lanes are 0. Nothing beyond the n elements is read.
template <class T> INLINE lanes_of<T> load_lanes(const T* p, i64 n) {
    if (n >= lane_count) {
        return load(p);
    }
    lanes_of<T> v = lanes_of<T>(0);
    copy_tail(reinterpret_cast<u8*>(&v), reinterpret_cast<const u8*>(p), n * static_cast<i64>(sizeof(T)));
    return v;
}

// Writes the first n lanes (0 <= n <= 16), and nothing beyond them.
template <class T> INLINE void store_lanes(T* p, lanes_of<T> v, i64 n) {
    if (n >= lane_count) {
        store(p, v);
        return;
    }
    copy_tail(reinterpret_cast<u8*>(p), reinterpret_cast<const u8*>(&v), n * static_cast<i64>(sizeof(T)));
}

// 16 elements a stride apart, the first n of them (the other lanes are 0). Strides 0 and 1 take the quick way.
template <class T> INLINE lanes_of<T> load_strided(const T* p, i64 stride, i64 n) {
    if (stride == 1) {
        return load_lanes(p, n);
    }
    if (stride == 0) {
        return splat(*p);
    }
    lanes_of<T> v = lanes_of<T>(0);
    for (i64 i = 0; i < n; i++) {
        v[i] = p[i * stride];
    }
    return v;
}

// Calls f(i, lanes) for the pieces of 0 .. n: 16 lanes from i on, and what is left of n at the end.
template <class F> INLINE void for_lanes(i64 n, F f) {
    i64 i = 0;
    for (; i + lane_count <= n; i += lane_count) {
        [[clang::always_inline]] f(i, lane_count);
    }
    if (i < n) {
        [[clang::always_inline]] f(i, n - i);
    }
}

// 0, 1, ..., 15.
template <class T> INLINE vec<T> lane_numbers() { return vec<T>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }

// `v` in the first n lanes, `other` in the rest.
template <class V> INLINE V select_lanes(i64 n, V v, V other) {
    using I = element_of<signed_of<V>>;
    return select(lane_numbers<I>() < vec<I>(static_cast<I>(n)), v, other);
}

// Turns 16 rows of 16 values into columns, in four rounds that shuffle rows i and i + 8 into each other.
INLINE void transpose_lanes(vec<f32> (&rows)[lane_count]) {
    UNROLL for (int round = 0; round < 4; round++) {
        vec<f32> next[lane_count];
        UNROLL for (int i = 0; i < lane_count / 2; i++) {
            const vec<f32> a = rows[i], b = rows[i + lane_count / 2];
            next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            next[2 * i + 1] =
                __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        UNROLL for (int i = 0; i < lane_count; i++) { rows[i] = next[i]; }
    }
}

// The one tree in which the 16 lanes are combined: lane i with i + 8, then i + 4, i + 2, i + 1.
template <class V, class F> INLINE element_of<V> combine_lanes(V v, F f) {
    auto v8 = f(v.lo, v.hi);
    auto v4 = f(v8.lo, v8.hi);
    auto v2 = f(v4.lo, v4.hi);
    return static_cast<element_of<V>>(f(v2.lo, v2.hi));
}

template <class V> INLINE element_of<V> sum_lanes(V v) {
    return combine_lanes(v, [](auto a, auto b) {
        using T = decltype(a);
        if constexpr (is_same<T, i32> || is_same<T, i64>) {
            return static_cast<T>(static_cast<u64>(a) + static_cast<u64>(b));
        } else {
            return a + b;
        }
    });
}

} // namespace CUVIL_ISA
} // namespace cuvil
