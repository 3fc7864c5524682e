#pragma once
// The four functions that a compiler may call on its own, for modules that have no libc. They are hidden, and stand in
// one object of a module. A loop over bytes suffices: kernels copy with vectors of their own, and what arrives here is
// the occasional struct.
#include "kernels/vector.hpp"

extern "C" {

[[gnu::visibility("hidden")]] void* memcpy(void* to, const void* from, __SIZE_TYPE__ n) {
    auto* t = static_cast<unsigned char*>(to);
    auto* f = static_cast<const unsigned char*>(from);
    for (; n >= 16; n -= 16, t += 16, f += 16) {
        __builtin_memcpy_inline(t, f, 16);
    }
    for (; n > 0; n--) {
        *t++ = *f++;
    }
    return to;
}

[[gnu::visibility("hidden")]] void* memmove(void* to, const void* from, __SIZE_TYPE__ n) {
    auto* t = static_cast<unsigned char*>(to);
    auto* f = static_cast<const unsigned char*>(from);
    if (t <= f) {
        for (__SIZE_TYPE__ i = 0; i < n; i++) {
            t[i] = f[i];
        }
    } else {
        while (n > 0) {
            n--;
            t[n] = f[n];
        }
    }
    return to;
}

[[gnu::visibility("hidden")]] void* memset(void* to, int value, __SIZE_TYPE__ n) {
    auto* t = static_cast<unsigned char*>(to);
    const auto byte = static_cast<unsigned char>(value);
    const cuvil::vec<unsigned char> bytes = cuvil::splat(byte);
    for (; n >= 16; n -= 16, t += 16) {
        __builtin_memcpy_inline(t, &bytes, 16);
    }
    for (; n > 0; n--) {
        *t++ = byte;
    }
    return to;
}

[[gnu::visibility("hidden")]] int memcmp(const void* a, const void* b, __SIZE_TYPE__ n) {
    auto* x = static_cast<const unsigned char*>(a);
    auto* y = static_cast<const unsigned char*>(b);
    for (; n > 0; n--, x++, y++) {
        if (*x != *y) {
            return *x - *y;
        }
    }
    return 0;
}

} // extern "C"
