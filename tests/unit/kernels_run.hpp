#pragma once
// Runs a case of kernels_level.cpp at every level that the CPU has, checks that v3, v4 and eval agree to the bit, and
// hands each level's output to a check.
#include "kernels_level.hpp"

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

struct KernelLevel {
    const char* name;
    const NamedCase* cases;
    bool has_fma;
};

// The levels that run here, and a line for each that does not.
inline const std::vector<KernelLevel>& kernel_levels() {
    static const std::vector<KernelLevel> levels = [] {
        std::vector<KernelLevel> found = {{"eval", kernel_cases_eval, true}};
        const auto add = [&](bool supported, KernelLevel level) {
            if (supported) {
                found.push_back(level);
            } else {
                std::printf("this CPU has no x86-64-%s: its kernels are not run\n", level.name);
            }
        };
        add(__builtin_cpu_supports("x86-64-v2"), {"v2", kernel_cases_v2, false});
        add(__builtin_cpu_supports("x86-64-v3"), {"v3", kernel_cases_v3, true});
        add(__builtin_cpu_supports("x86-64-v4"), {"v4", kernel_cases_v4, true});
        return found;
    }();
    return levels;
}

// A buffer with bytes behind it that must not change.
class Buffer {
public:
    explicit Buffer(size_t size) : size_(size), bytes_(size + guard, 0xa5) {}

    void* data() { return bytes_.data(); }
    template <class T> const T* as() const { return reinterpret_cast<const T*>(bytes_.data()); }
    size_t size() const { return size_; }
    bool is_intact() const {
        for (size_t i = size_; i < bytes_.size(); i++) {
            if (bytes_[i] != 0xa5) {
                return false;
            }
        }
        return true;
    }
    bool operator==(const Buffer& other) const { return bytes_ == other.bytes_; }

private:
    static constexpr size_t guard = 256;
    size_t size_;
    std::vector<unsigned char> bytes_;
};

inline KernelCase find_case(const KernelLevel& level, const std::string& name) {
    for (const NamedCase* c = level.cases; c->name != nullptr; c++) {
        if (name == c->name) {
            return c->run;
        }
    }
    return nullptr;
}

// `output_sizes` are bytes. Only the first `compared` outputs must agree between levels (others may be scratch).
inline void run_levels(const std::string& name, const std::vector<long>& p, const std::vector<const void*>& in,
                       const std::vector<size_t>& output_sizes,
                       const std::function<void(const KernelLevel&, const std::vector<Buffer>&)>& check,
                       size_t compared = 1) {
    std::vector<Buffer> first;
    for (const KernelLevel& level : kernel_levels()) {
        SCOPED_TRACE(name + " at level " + level.name);
        KernelCase run = find_case(level, name);
        ASSERT_NE(run, nullptr);
        std::vector<Buffer> out;
        for (size_t size : output_sizes) {
            out.emplace_back(size);
        }
        std::vector<void*> pointers;
        for (Buffer& buffer : out) {
            pointers.push_back(buffer.data());
        }
        run(p.data(), in.data(), pointers.data());
        for (size_t i = 0; i < out.size(); i++) {
            EXPECT_TRUE(out[i].is_intact()) << "written beyond the end of output " << i;
        }
        check(level, out);
        if (!level.has_fma) {
            continue;
        }
        if (first.empty()) {
            first = out;
        }
        for (size_t i = 0; i < compared && i < out.size(); i++) {
            EXPECT_TRUE(out[i] == first[i]) << "output " << i << " differs from that of level eval";
        }
    }
}

// Values in -1 .. 1, the same on every run.
template <class T = float> std::vector<T> random_values(size_t n, unsigned seed = 1) {
    std::mt19937 generator(seed);
    std::vector<T> values(n);
    for (T& v : values) {
        v = static_cast<T>(static_cast<double>(generator()) / 2147483648.0 - 1.0);
    }
    return values;
}

// Integers of all sizes.
template <class T> std::vector<T> random_integers(size_t n, unsigned seed = 1) {
    std::mt19937_64 generator(seed);
    std::vector<T> values(n);
    for (T& v : values) {
        v = static_cast<T>(static_cast<std::int64_t>(generator()) >> (generator() % 64));
    }
    return values;
}
