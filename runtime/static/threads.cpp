// Threads for statically linked models: a member of the archive of its own, which a program links only if it calls
// cuvil_threads. The idea is that of runtime/pool.hpp: whoever is awake claims the next chunk of a step from one word,
// and the caller waits only for chunks that others are running. So a worker that sleeps, or that fork() left behind in
// another process, is never waited for. Workers start at the first step for several threads, spin a little between
// steps and sleep otherwise; they live as long as the process.
#include "runtime/static/memory.hpp"
#include "runtime/step_word.hpp"

extern "C" {
// As in the headers of glibc and musl, for whose sizes this is written: pthread_t is a long, sigset_t has 128 bytes.
int pthread_create(unsigned long* thread, const void* attributes, void* (*start)(void*), void* argument);
int pthread_detach(unsigned long thread);
int pthread_sigmask(int how, const void* set, void* old);
long syscall(long number, ...);
}

namespace cuvil::rt {
namespace {

using Task = void (*)(void* context, int64_t item, int32_t worker);

constexpr int32_t most_threads = 64;
constexpr int spins = 500; // about 20 microseconds

// ---- Sleeping on a word

constexpr long futex_call = 202; // x86-64
constexpr int futex_wait_private = 128, futex_wake_private = 129;

void sleep_while(const uint32_t* word, uint32_t value) {
    syscall(futex_call, word, futex_wait_private, value, nullptr, nullptr, 0);
}
void wake(const uint32_t* word, int count) {
    syscall(futex_call, word, futex_wake_private, count, nullptr, nullptr, 0);
}

template <class T> T load(const T& word) { return __atomic_load_n(&word, __ATOMIC_SEQ_CST); }
template <class T> void store(T& word, T value) { __atomic_store_n(&word, value, __ATOMIC_SEQ_CST); }

template <class Ready> bool spin(Ready ready) {
    for (int i = 0; i < spins; i++) {
        if (ready()) return true;
        __builtin_ia32_pause();
    }
    return ready();
}

// ---- The step under way

struct Step {
    Task task;
    void* context;
    int64_t items, items_per_chunk;
    uint32_t chunks;
};

Step step;
alignas(8) uint64_t word; // of the step; its generation alone is what workers sleep on
int32_t threads_of_step;  // those with smaller numbers take part
uint32_t done;            // chunks
uint32_t caller_sleeps;
uint32_t sleepers;
uint32_t owned;  // by the call that has the workers; others at the same time run on their own thread
int32_t workers; // started; the owner's alone

const uint32_t* generation_word() { return reinterpret_cast<const uint32_t*>(&word) + 1; }
uint32_t generation() { return generation_of(load(word)); }

// The number of a chunk of this generation's step; false: none is left.
bool claim(uint32_t wanted, int32_t worker, uint32_t& chunk) {
    uint64_t seen = load(word);
    for (;;) {
        if (generation_of(seen) != wanted || chunks_left(seen) == 0) return false;
        // Read between the load of the word and the exchange, it is of this generation or the exchange fails.
        if (worker >= load(threads_of_step)) return false;
        const Claim mine = claim_of(seen, worker);
        chunk = mine.chunk;
        if (__atomic_compare_exchange_n(&word, &seen, mine.word, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return true;
    }
}

void work(uint32_t wanted, int32_t worker) {
    for (uint32_t chunk = 0; claim(wanted, worker, chunk);) {
        const uint32_t chunks = step.chunks; // once the last is done, the step may be the next one
        const int64_t begin = chunk * step.items_per_chunk;
        const int64_t left = step.items - begin;
        const int64_t end = begin + (left < step.items_per_chunk ? left : step.items_per_chunk);
        for (int64_t i = begin; i < end; i++) step.task(step.context, i, worker);
        // Either this sees that the caller sleeps, or the caller's last look sees the chunk done.
        if (__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST) == chunks && load(caller_sleeps) != 0) wake(&done, 1);
    }
}

void* worker_main(void* number) {
    const auto worker = static_cast<int32_t>(reinterpret_cast<intptr_t>(number));
    uint32_t seen = generation() - 1; // the step that it was started for may be under way
    for (;;) {
        const auto called = [&] { return generation() != seen; };
        if (!called() && (worker >= load(threads_of_step) || !spin(called))) {
            // Either the kernel sees the new generation, or whoever made it sees the sleeper.
            __atomic_add_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
            sleep_while(generation_word(), seen);
            __atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
            continue;
        }
        seen = generation();
        work(seen, worker);
    }
}

void start_workers(int32_t wanted) {
    if (workers >= wanted) return;
    unsigned long all[16], before[16], thread = 0; // signals belong to the program's own threads
    for (unsigned long& bits : all) bits = ~0ul;
    constexpr int set_mask = 2;
    pthread_sigmask(set_mask, all, before);
    while (workers < wanted) {
        void* number = reinterpret_cast<void*>(static_cast<intptr_t>(workers + 1));
        if (pthread_create(&thread, nullptr, worker_main, number) != 0) break;
        pthread_detach(thread);
        workers++;
    }
    pthread_sigmask(set_mask, before, nullptr);
}

void run_step(int32_t threads, int64_t items, Task task, void* context) {
    const int64_t items_per_chunk = (items - 1) / most_chunks + 1;
    const auto chunks = static_cast<uint32_t>((items - 1) / items_per_chunk + 1);
    const int32_t others =
        threads - 1 < static_cast<int32_t>(chunks) - 1 ? threads - 1 : static_cast<int32_t>(chunks) - 1;
    start_workers(others);
    step = {task, context, items, items_per_chunk, chunks};
    store(threads_of_step, threads);
    store(done, 0u);
    const uint32_t next = generation() + 1;
    store(word, step_word(next, chunks));
    // Sleepers with too large a number for this step may take a call to wake up, so then all are called.
    if (load(sleepers) != 0) wake(generation_word(), workers > others ? most_threads : others);

    work(next, 0);
    const auto all_done = [&] { return load(done) == chunks; };
    if (spin(all_done)) return;
    store(caller_sleeps, 1u);
    for (uint32_t seen = load(done); seen != chunks; seen = load(done)) sleep_while(&done, seen);
    store(caller_sleeps, 0u);
}

// ---- The host

void run_each(const cuvil_host* host, int64_t n, Task task, void* context) {
    const int32_t threads = *static_cast<const int32_t*>(host->data);
    if (n > 1 && threads > 1 && __atomic_exchange_n(&owned, 1u, __ATOMIC_SEQ_CST) == 0) {
        run_step(threads, n, task, context);
        store(owned, 0u);
        return;
    }
    for (int64_t i = 0; i < n; i++) task(context, i, 0);
}

// A host for each number of threads. Programs may copy one and put functions of their own in.
struct Hosts {
    constexpr Hosts() : each{}, counts{} {
        for (int32_t i = 0; i <= most_threads; i++) {
            counts[i] = i;
            each[i] = {sizeof(cuvil_host), run_each, allocate, release, call_nothing, nullptr, &counts[i]};
        }
    }
    cuvil_host each[most_threads + 1];
    int32_t counts[most_threads + 1];
};
constinit Hosts hosts;

} // namespace
} // namespace cuvil::rt

extern "C" [[gnu::weak, gnu::visibility("hidden")]] const cuvil_host* cuvil_threads(int32_t count) {
    using namespace cuvil::rt;
    return &hosts.each[count < 1 ? 1 : count > most_threads ? most_threads : count];
}
