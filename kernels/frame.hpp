#pragma once
// What an emitted program needs besides kernels: the state of one run, and the way to the host. A run is a straight
// line of steps; each finds its tensors in the frame's table of buffers and its sizes in the table of dims.
#include "cuvil/cuvil.h"
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// A block from the host begins with room for a shape, so that it can leave the module as an output.
inline constexpr i64 block_header = 64;

// A block from the host, and how deep the region stands at whose end it is released.
struct HeldBlock {
    u8* block;
    i64 depth;
};

// The run-time failure word: the smallest (check, position) that any task reported, all ones while there is none.
inline constexpr u64 no_failure = ~u64(0);

struct Frame {
    const cuvil_call* call;
    i64* d; // dims: as bind() computed them, and those that become known while running
    u8** b; // buffers
    i32 status = CUVIL_OK;
    HeldBlock* held = nullptr; // in a block of its own
    i64 held_count = 0, held_capacity = 0;

    template <class T> T* at(i64 buffer) const { return reinterpret_cast<T*>(b[buffer]); }

    // Runs one step; false: leave the program.
    INLINE bool run(i32 number, void (*step)(Frame&)) {
        const cuvil_host* host = call->host;
        if (host->trace != nullptr) {
            host->trace(host, number, 0);
        }
        step(*this);
        if (host->trace != nullptr) {
            host->trace(host, number, 1);
        }
        return going();
    }

    INLINE bool going() {
        if (status != CUVIL_OK) {
            return false;
        }
        if (call->cancel != nullptr && __atomic_load_n(call->cancel, __ATOMIC_RELAXED) != 0) {
            status = CUVIL_ERROR_CANCELLED;
            return false;
        }
        return true;
    }

    // Below this many multiplications, or bytes moved, a second thread costs more than it saves even if it is awake: a
    // step that one thread does by itself leaves its results in that thread's cache.
    static constexpr i64 worth_sharing = 20000;

    // f(i) for each i in 0 .. n, on the host's threads if the work (in such units) is worth it.
    template <class F> INLINE void parallel(i64 n, i64 work, F f) {
        if (n <= 1 || call->threads <= 1 || work < worth_sharing) {
            for (i64 i = 0; i < n; i++) {
                f(i);
            }
            return;
        }
        call->host->parallel_for(call->host, n, [](void* context, i64 i, i32) { (*static_cast<F*>(context))(i); }, &f);
    }

    // f(range) for pieces of 0 .. n, of about 16384 units of work each.
    template <class F> INLINE void parallel_ranges(i64 n, i64 work, F f) {
        const i64 parts = larger(1, smaller(n, work / 16384));
        parallel(parts, work, [=](i64 i) { f(chunk(n, parts, i)); });
    }

    // ---- Failures that depend on data

    INLINE u64* failure() const { return static_cast<u64*>(call->workspace); }

    // Called by tasks; the smallest position stands, whatever the order of the tasks.
    INLINE void report(i64 check, i64 position) const {
        const u64 word = (static_cast<u64>(check) << 40) | static_cast<u64>(position);
        u64 seen = __atomic_load_n(failure(), __ATOMIC_RELAXED);
        while (word < seen &&
               !__atomic_compare_exchange_n(failure(), &seen, word, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
    }

    // After all tasks: the position that was reported, or -1.
    INLINE i64 reported() const {
        const u64 word = *failure();
        return word == no_failure ? -1 : static_cast<i64>(word & ((u64(1) << 40) - 1));
    }

    INLINE void fail(i64 check, i64 a = 0, i64 b = 0, i64 c = 0) {
        status = CUVIL_ERROR_MODEL;
        if (call->failure != nullptr) {
            *call->failure = {check, {a, b, c, 0, 0, 0}};
        }
    }

    // ---- Blocks from the host, for sizes that only data shows

    INLINE u8* raw_alloc(i64 bytes) {
        auto* block = static_cast<u8*>(bytes < 0 ? nullptr : call->host->alloc(call->host, static_cast<u64>(bytes)));
        if (block == nullptr) {
            status = CUVIL_ERROR_MEMORY;
        }
        return block;
    }

    INLINE void raw_free(void* block) {
        if (block != nullptr) {
            call->host->free(call->host, block);
        }
    }

    // Memory of a tensor, until the end of the region at `depth` or of the run. nullptr, with a status, when the host
    // has no more, and for a negative size: one that does not fit into 64 bits.
    [[gnu::noinline]] u8* alloc(i64 bytes, i64 depth) {
        if (held_count == held_capacity) {
            const i64 capacity = larger(16, 2 * held_capacity);
            auto* more = reinterpret_cast<HeldBlock*>(raw_alloc(capacity * static_cast<i64>(sizeof(HeldBlock))));
            if (more == nullptr) {
                return nullptr;
            }
            for (i64 i = 0; i < held_count; i++) {
                more[i] = held[i];
            }
            raw_free(held);
            held = more;
            held_capacity = capacity;
        }
        u8* block = raw_alloc(bytes < 0 || bytes > INT64_MAX - block_header ? -1 : block_header + bytes);
        if (block == nullptr) {
            return nullptr;
        }
        held[held_count++] = {block, depth};
        return block + block_header;
    }

    // Takes the block of `data` out of the frame's care; the caller owns it now.
    [[gnu::noinline]] u8* disown(const u8* data) {
        for (i64 i = 0; i < held_count; i++) {
            if (held[i].block + block_header == data) {
                u8* block = held[i].block;
                held[i] = held[--held_count];
                return block;
            }
        }
        return nullptr;
    }

    INLINE void release(const u8* data) { raw_free(disown(data)); }

    // The end of a region: its blocks, and those of the regions inside, go back.
    [[gnu::noinline]] void release_region(i64 depth) {
        i64 kept = 0;
        for (i64 i = 0; i < held_count; i++) {
            if (held[i].depth < depth) {
                held[kept++] = held[i];
            } else {
                raw_free(held[i].block);
            }
        }
        held_count = kept;
    }

    // Appends to a block that grows by doubling; `data` is nullptr at first.
    [[gnu::noinline]] void append(u8*& data, i64& used, i64& capacity, const u8* more, i64 bytes, i64 depth) {
        if (data == nullptr || used + bytes > capacity) {
            const i64 wanted = larger(2 * capacity, used + bytes);
            u8* grown = alloc(wanted, depth);
            if (grown == nullptr) {
                return;
            }
            copy(grown, data, used);
            if (data != nullptr) {
                release(data);
            }
            data = grown;
            capacity = wanted;
        }
        copy(data + used, more, bytes);
        used += bytes;
    }

    INLINE i32 finish() {
        release_region(0);
        raw_free(held);
        return status;
    }

    // ---- Inputs and outputs

    // The data of input i, or of the constant that stands in when the caller gives none.
    INLINE u8* input(i64 i, const u8* fallback = nullptr) const {
        const cuvil_value& v = call->in[i];
        if (v.tag == CUVIL_NONE) {
            return const_cast<u8*>(fallback);
        }
        return static_cast<u8*>(v.as.tensor.data) + v.as.tensor.byte_offset;
    }

    INLINE u8* output(i64 i) const {
        const cuvil_value& v = call->out[i];
        return static_cast<u8*>(v.as.tensor.data) + v.as.tensor.byte_offset;
    }

    // Hands data of a run-time size to the caller: a block of the frame's goes as it is, other memory is copied.
    [[gnu::noinline]] void give(i64 i, u8* data, cuvil_dtype dtype, i64 bytes, const i64* shape, i32 rank) {
        u8* block = disown(data);
        if (block == nullptr) {
            u8* fresh = alloc(bytes, 0);
            if (fresh == nullptr) {
                return;
            }
            copy(fresh, data, bytes);
            block = disown(fresh);
        }
        auto* header = reinterpret_cast<i64*>(block);
        for (i32 k = 0; k < rank; k++) {
            header[k] = shape[k];
        }
        cuvil_value& v = call->out[i];
        v.tag = CUVIL_TENSOR;
        v.owner = block;
        v.as.tensor = {block + block_header, 1, 0, rank, dtype, header, nullptr, 0};
    }

    // Copies strings to the caller, in the given shape of as many elements.
    [[gnu::noinline]] void give_strings(i64 i, const cuvil_strings& from, const i64* given, i32 rank) {
        i64 count = 1;
        for (i32 k = 0; k < rank; k++) {
            count *= given[k];
        }
        const i64 bytes = from.offsets[count];
        const i64 offsets_size = (count + 1) * static_cast<i64>(sizeof(i64));
        const i64 shape_size = rank * static_cast<i64>(sizeof(i64));
        u8* block = raw_alloc(offsets_size + shape_size + bytes + 1);
        if (block == nullptr) {
            return;
        }
        auto* shape = reinterpret_cast<i64*>(block + offsets_size);
        auto* text = reinterpret_cast<char*>(block + offsets_size + shape_size);
        copy(block, reinterpret_cast<const u8*>(from.offsets), offsets_size);
        copy(reinterpret_cast<u8*>(shape), reinterpret_cast<const u8*>(given), shape_size);
        copy(reinterpret_cast<u8*>(text), reinterpret_cast<const u8*>(from.bytes), bytes);
        cuvil_value& v = call->out[i];
        v.tag = CUVIL_STRINGS;
        v.owner = block;
        v.as.strings = {reinterpret_cast<i64*>(block), text, rank, shape};
    }

    [[gnu::noinline]] static void copy(u8* to, const u8* from, i64 bytes) {
        if (to == from) {
            return;
        }
        i64 i = 0;
        for (; i + 64 <= bytes; i += 64) {
            __builtin_memcpy_inline(to + i, from + i, 64);
        }
        for (; i < bytes; i++) {
            to[i] = from[i];
        }
    }
};

// floor(a / b); 0 for b = 0, where a check that comes later fails.
constexpr i64 floordiv(i64 a, i64 b) {
    if (b == 0) {
        return 0;
    }
    const i64 q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

// The same arithmetic for sizes that nobody has checked yet.
struct CheckedSizes {
    bool overflow = false;

    INLINE i64 add(i64 a, i64 b) {
        i64 r = 0;
        overflow |= __builtin_add_overflow(a, b, &r);
        return r;
    }
    INLINE i64 mul(i64 a, i64 b) {
        i64 r = 0;
        overflow |= __builtin_mul_overflow(a, b, &r);
        return r;
    }
    INLINE i64 div(i64 a, i64 b) {
        if (b == 0 || (a == INT64_MIN && b == -1)) {
            overflow = true;
            return 0;
        }
        return floordiv(a, b);
    }
    // Bytes of a slot of the workspace.
    INLINE i64 aligned(i64 bytes) { return add(bytes, 63) & ~i64(63); }
};

} // namespace CUVIL_ISA
} // namespace cuvil
