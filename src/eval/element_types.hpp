// From the name of an element type to code for it.
#pragma once

#include "eval/arrays.hpp"
#include "kernels/vector.hpp"

namespace cuvil::evaluation {

// fma is exact on every processor, but a call of the C library where code has to run on all of them. A function with
// this mark has the instruction; it may be called where has_quick_fma() says so, and gives the same bits.
#if defined(__x86_64__)
#define WITH_FMA [[gnu::target("avx2,fma")]]
inline bool has_quick_fma() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
#define WITH_FMA
inline bool has_quick_fma() { return false; }
#endif

template <class T> inline constexpr std::string_view type_name = "";
template <> inline constexpr std::string_view type_name<f64> = "f64";
template <> inline constexpr std::string_view type_name<f32> = "f32";
template <> inline constexpr std::string_view type_name<i64> = "i64";
template <> inline constexpr std::string_view type_name<i32> = "i32";
template <> inline constexpr std::string_view type_name<i16> = "i16";
template <> inline constexpr std::string_view type_name<i8> = "i8";
template <> inline constexpr std::string_view type_name<u64> = "u64";
template <> inline constexpr std::string_view type_name<u32> = "u32";
template <> inline constexpr std::string_view type_name<u16> = "u16";
template <> inline constexpr std::string_view type_name<u8> = "u8";
template <> inline constexpr std::string_view type_name<bool> = "bool";

template <class... T> struct Types {};
using FloatingTypes = Types<f64, f32>;
using IntegerTypes = Types<i64, i32, i16, i8, u64, u32, u16, u8>;
using NumberTypes = Types<f64, f32, i64, i32, i16, i8, u64, u32, u16, u8>;
using AllTypes = Types<f64, f32, i64, i32, i16, i8, u64, u32, u16, u8, bool>;

// Calls f.operator()<T>() for the type of that name; false if it is not among them.
template <class F, class... T> bool with_type(std::string_view name, Types<T...>, F f) {
    return ((name == type_name<T> && (f.template operator()<T>(), true)) || ...);
}

// Calls it with an integer of that many bytes: for code that moves elements and looks at none.
template <class F> bool with_size(size_t bytes, F f) {
    switch (bytes) {
    case 1: f.template operator()<u8>(); return true;
    case 2: f.template operator()<u16>(); return true;
    case 4: f.template operator()<u32>(); return true;
    case 8: f.template operator()<u64>(); return true;
    default: return false;
    }
}

template <class T> const T* elements(const Array& x) { return reinterpret_cast<const T*>(x.data); }
template <class T> T* elements(const Result& y) { return reinterpret_cast<T*>(y.data); }

} // namespace cuvil::evaluation
