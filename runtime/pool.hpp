// The threads of the process: one pool for all modules.
//
// A step, one parallel_for, is cut into chunks, and whoever is awake claims the next chunk from one 64-bit word (see
// step_word.hpp). The caller claims too, and when nothing is left it waits only for the chunks that others are running.
// A worker that was asleep, or that the system runs elsewhere, is never waited for: beside a busy neighbour a run costs
// about what it costs on one thread. The generation makes a late worker's claim fail: without it a worker that read the
// word before a step ended could run the old function on a chunk of the next.
//
// A barrier per step with a fixed share for each thread is as fast on a quiet machine and up to five times slower on a
// busy one, since each step then waits for the unluckiest thread. Pinning gains nothing here.
//
// Workers start at the first step that any module runs on several threads, spin for 20 microseconds between the steps
// of a run, and sleep otherwise. They end when the last module is unloaded, and at exit. A child of fork() starts with
// none.
#pragma once

#include "runtime/step_word.hpp"
#include "runtime/thread_count.hpp"
#include "runtime/turns.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace cuvil::rt {

using Task = void (*)(void* context, int64_t item, int32_t worker);

class Pool {
public:
    static Pool& instance();

    // A module counts as a user from load to unload; workers live only while there are users. No step may run when the
    // last user leaves.
    void add_user();
    void remove_user();

    // One run at a time owns the workers; whoever does not get them computes on its own thread.
    bool try_acquire() { return !owned_.load(std::memory_order_relaxed) && !owned_.exchange(true); }
    void release() { owned_.store(false, std::memory_order_release); }

    // By the owner: calls task(context, i, worker) once for each i in [0, items), items >= 1, with worker in
    // [0, threads), 2 <= threads <= max_threads; the calling thread is worker 0. Returns after all.
    void run(int32_t threads, int64_t items, Task task, void* context);

    int32_t worker_count() const { return workers_.load(); }

    // Of the runs that are worth several threads.
    Turns& turns() { return turns_; }

private:
    struct alignas(64) Worker {
        std::atomic<uint32_t> parked{0}; // 1 while asleep; whoever sets it to 0 has to wake
        pthread_t thread{};
    };

    Pool();
    int64_t claim(uint32_t generation, int32_t worker); // -1: none left, or another generation
    void work(uint32_t generation, int32_t worker);
    void start_workers(int32_t wanted);
    void end_workers();
    void wake(int32_t last, int32_t at_most);
    void worker_loop(int32_t index);
    bool wait_for_step(int32_t index, uint32_t seen);
    void park(int32_t index, uint32_t seen);
    void wait_for_running_chunks(uint32_t chunks);
    uint32_t generation() const { return generation_of(word_.load(std::memory_order_acquire)); }

    static void before_fork();
    static void after_fork_in_parent();
    static void after_fork_in_child();
    static void* worker_main(void* index);
    friend void end_pool();

    // The step: plain fields are written before word_ publishes them, and not again before all its chunks are done.
    alignas(64) std::atomic<uint64_t> word_{0};
    std::atomic<int32_t> threads_{0};
    Task task_ = nullptr;
    void* context_ = nullptr;
    int64_t items_ = 0;
    int64_t items_per_chunk_ = 0;
    uint32_t chunks_ = 0;

    alignas(64) std::atomic<uint32_t> done_{0}; // chunks finished; the caller sleeps on it
    std::atomic<bool> caller_sleeps_{false};

    Turns turns_{default_thread_count()};

    alignas(64) std::atomic<bool> owned_{false};
    std::atomic<bool> ending_{false};
    std::atomic<int32_t> workers_{0}; // worker_[1] to worker_[workers_] exist
    std::atomic<int32_t> most_workers_{max_threads - 1};
    std::mutex mutex_; // starting, ending, users_
    int64_t users_ = 0;
    bool exiting_ = false;
    std::array<Worker, max_threads> worker_;
};

// The pool as one run sees it: takes a turn, and the workers, at the first step worth it, and gives them back at the
// end of the run. Each other run that has a turn leaves it one thread less.
class RunThreads {
public:
    explicit RunThreads(int32_t threads) : threads_(threads) {}
    ~RunThreads() { leave(); }
    RunThreads(const RunThreads&) = delete;
    RunThreads& operator=(const RunThreads&) = delete;

    // Brackets a run. A run may begin inside a step of another one: its worker numbers are its own.
    void enter();
    void leave();

    void parallel_for(int64_t items, Task task, void* context);

private:
    using Clock = std::chrono::steady_clock;

    void take_turn();

    int32_t threads_;
    bool owner_ = false;
    bool entered_ = false;
    bool has_turn_ = false;
    Clock::time_point began_; // of this run, once it has a turn
    Clock::duration last_{0}; // what the last run took from there
    int32_t outer_worker_ = -1;
};

} // namespace cuvil::rt
