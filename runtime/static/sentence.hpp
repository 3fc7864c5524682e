// The sentence of a failure, written without a standard library.
#pragma once

#include "cuvil/cuvil.h"
#include "runtime/dtype_table.hpp"

namespace cuvil::rt {

// Text in memory of a fixed size: what is too long ends in dots.
class Sentence {
public:
    static constexpr int size = 512;

    explicit Sentence(char (&memory)[size]) : memory_(memory) { memory_[0] = 0; }

    Sentence& add(const char* text) {
        while (*text != 0) put(*text++);
        return *this;
    }
    Sentence& add(char c) {
        put(c);
        return *this;
    }
    Sentence& add(int64_t number) {
        char digits[20];
        int count = 0;
        uint64_t rest = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
        do digits[count++] = static_cast<char>('0' + rest % 10);
        while ((rest /= 10) != 0);
        if (number < 0) put('-');
        while (count > 0) put(digits[--count]);
        return *this;
    }
    // "[1,3,224,224]"
    Sentence& add_sizes(const int64_t* sizes, int32_t count) {
        put('[');
        for (int32_t i = 0; i < count; i++) {
            if (i > 0) put(',');
            add(sizes[i]);
        }
        put(']');
        return *this;
    }
    Sentence& add_dtype(cuvil_dtype dtype) {
        for (const NamedDtype& known : dtypes)
            if (known.dtype.code == dtype.code && known.dtype.bits == dtype.bits && known.dtype.lanes == dtype.lanes)
                return add(known.name);
        return add("dtype code ").add(int64_t{dtype.code}).add(" with ").add(int64_t{dtype.bits}).add(" bits");
    }

private:
    void put(char c) {
        if (used_ + 1 < size) {
            memory_[used_++] = c;
            memory_[used_] = 0;
        } else {
            memory_[size - 2] = memory_[size - 3] = memory_[size - 4] = '.';
        }
    }

    char* memory_;
    int used_ = 0;
};

} // namespace cuvil::rt
