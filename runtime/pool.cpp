#include "runtime/pool.hpp"

#include "runtime/futex.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <new>

namespace cuvil::rt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds worker_spin{20};
constexpr std::chrono::microseconds caller_spin{50};
// Each thread that is woken wakes two more, so the caller pays for two.
constexpr int32_t wakes_each = 2;

// A run waits for its turn at most so many times what the last one of its module took: enough for two calls on each
// processor. More would cost short runs beside long ones: one of 5 ms beside three of 22 ms on two processors ends
// after 27 ms, without turns after 10.
constexpr int patience = 2;

// The worker number of the step that this thread is inside of; -1 outside.
thread_local int32_t current_worker = -1;

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Waits at most `limit` for `ready`, without sleeping.
template <typename Ready> bool spin(std::chrono::microseconds limit, Ready ready) {
    const Clock::time_point end = Clock::now() + limit;
    do {
        for (int i = 0; i < 32; i++) {
            if (ready()) return true;
            pause();
        }
    } while (Clock::now() < end);
    return ready();
}

void run_alone(int64_t items, Task task, void* context, int32_t worker) {
    for (int64_t i = 0; i < items; i++) task(context, i, worker);
}

} // namespace

Pool& Pool::instance() {
    // Never destroyed: a thread that outlives main may still be running a module.
    alignas(Pool) static unsigned char memory[sizeof(Pool)];
    static Pool* pool = new (memory) Pool;
    return *pool;
}

Pool::Pool() { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

void Pool::add_user() {
    std::lock_guard lock(mutex_);
    users_++;
}

void Pool::remove_user() {
    std::lock_guard lock(mutex_);
    if (--users_ == 0) end_workers();
}

// At process exit, and when a host closes the library.
__attribute__((destructor)) void end_pool() {
    Pool& pool = Pool::instance();
    std::lock_guard lock(pool.mutex_);
    pool.exiting_ = true;
    pool.end_workers();
}

// Under mutex_. A run that is under way (in a thread that outlives main) goes on alone.
void Pool::end_workers() {
    ending_.store(true);
    const int32_t count = workers_.load();
    for (int32_t i = 1; i <= count; i++) {
        if (worker_[i].parked.exchange(0) == 1) futex_wake_one(worker_[i].parked);
        // A task that calls exit() arrives here as a worker.
        if (!pthread_equal(worker_[i].thread, pthread_self())) pthread_join(worker_[i].thread, nullptr);
    }
    workers_.store(0);
    most_workers_.store(max_threads - 1);
    ending_.store(false);
}

void Pool::start_workers(int32_t wanted) {
    if (workers_.load(std::memory_order_acquire) >= std::min(wanted, most_workers_.load(std::memory_order_relaxed)))
        return;
    std::lock_guard lock(mutex_);
    if (exiting_) return;
    // Signals belong to the threads of the host.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int32_t count = workers_.load();
    while (count < wanted) {
        Worker& worker = worker_[count + 1];
        worker.parked.store(0);
        void* index = reinterpret_cast<void*>(static_cast<intptr_t>(count + 1));
        if (pthread_create(&worker.thread, nullptr, worker_main, index) != 0) {
            most_workers_.store(count); // no more threads for this process: do not ask at every step
            break;
        }
        workers_.store(++count, std::memory_order_release);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void* Pool::worker_main(void* index_as_pointer) {
    const int32_t index = static_cast<int32_t>(reinterpret_cast<intptr_t>(index_as_pointer));
    char name[16];
    snprintf(name, sizeof name, "cuvil-%d", index);
    pthread_setname_np(pthread_self(), name);
    instance().worker_loop(index);
    return nullptr;
}

int64_t Pool::claim(uint32_t generation, int32_t worker) {
    uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
        if (generation_of(word) != generation || chunks_left(word) == 0) return -1;
        // Read between the load of the word and the exchange, it is of this generation or the exchange fails.
        if (worker >= threads_.load(std::memory_order_relaxed)) return -1;
        const Claim mine = claim_of(word, worker);
        if (word_.compare_exchange_weak(word, mine.word, std::memory_order_acq_rel, std::memory_order_acquire))
            return mine.chunk;
    }
}

// Runs chunks of the step until none is left.
void Pool::work(uint32_t generation, int32_t worker) {
    for (;;) {
        const int64_t chunk = claim(generation, worker);
        if (chunk < 0) return;
        const uint32_t chunks = chunks_; // once the last chunk is done, the fields may be those of the next step
        const int64_t begin = chunk * items_per_chunk_;
        const int64_t end = items_ - begin < items_per_chunk_ ? items_ : begin + items_per_chunk_;
        for (int64_t i = begin; i < end; i++) task_(context_, i, worker);
        // Either this sees that the caller sleeps, or the caller's last look sees the chunk done.
        if (done_.fetch_add(1) + 1 == chunks && caller_sleeps_.load()) futex_wake_one(done_);
    }
}

void Pool::run(int32_t threads, int64_t items, Task task, void* context) {
    const int64_t items_per_chunk = (items - 1) / most_chunks + 1;
    const uint32_t chunks = static_cast<uint32_t>((items - 1) / items_per_chunk + 1);
    const int32_t helpers = static_cast<int32_t>(std::min<int64_t>(threads - 1, int64_t{chunks} - 1));
    if (helpers > 0) start_workers(helpers);

    task_ = task;
    context_ = context;
    items_ = items;
    items_per_chunk_ = items_per_chunk;
    chunks_ = chunks;
    threads_.store(threads, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    const uint32_t next_generation = generation() + 1;
    word_.store(step_word(next_generation, chunks)); // in one order with the workers' `parked`
    wake(helpers, wakes_each);

    const int32_t outer = current_worker;
    current_worker = 0;
    work(next_generation, 0);
    current_worker = outer;
    wait_for_running_chunks(chunks);
}

void Pool::wait_for_running_chunks(uint32_t chunks) {
    auto all_done = [&] { return done_.load(std::memory_order_acquire) == chunks; };
    if (all_done() || spin(caller_spin, all_done)) return;
    caller_sleeps_.store(true);
    for (uint32_t seen; (seen = done_.load()) != chunks;) futex_wait(done_, seen);
    caller_sleeps_.store(false);
}

// Wakes up to `at_most` sleeping workers among the first `last`.
void Pool::wake(int32_t last, int32_t at_most) {
    last = std::min(last, workers_.load(std::memory_order_acquire));
    for (int32_t i = 1; i <= last && at_most > 0; i++) {
        if (worker_[i].parked.load() != 1 || worker_[i].parked.exchange(0) != 1) continue;
        futex_wake_one(worker_[i].parked);
        at_most--;
    }
}

void Pool::worker_loop(int32_t index) {
    uint32_t seen = generation() - 1; // the step that it was started for may be under way
    current_worker = index;
    while (wait_for_step(index, seen)) {
        seen = generation();
        work(seen, index);
    }
}

// True: there is a step after `seen`; false: end.
bool Pool::wait_for_step(int32_t index, uint32_t seen) {
    auto called = [&] { return generation() != seen || ending_.load(std::memory_order_acquire); };
    while (!called()) {
        const bool in_this_run = index < threads_.load(std::memory_order_relaxed);
        if (in_this_run && spin(worker_spin, called)) break;
        park(index, seen);
    }
    return !ending_.load(std::memory_order_acquire);
}

void Pool::park(int32_t index, uint32_t seen) {
    std::atomic<uint32_t>& parked = worker_[index].parked;
    parked.store(1);
    // Either this sees the new step, or its caller sees `parked`.
    if (generation_of(word_.load()) != seen || ending_.load()) {
        parked.store(0);
        return;
    }
    while (parked.load() == 1) futex_wait(parked, 1);
    const auto left = static_cast<int32_t>(chunks_left(word_.load(std::memory_order_acquire)));
    wake(std::min(threads_.load(std::memory_order_relaxed) - 1, left), wakes_each);
}

void Pool::before_fork() {
    instance().mutex_.lock();
    instance().turns_.before_fork();
}

void Pool::after_fork_in_parent() {
    instance().turns_.after_fork_in_parent();
    instance().mutex_.unlock();
}

// Only the thread that forked lives on, and it was in no step: whatever the others held is void.
void Pool::after_fork_in_child() {
    Pool& pool = instance();
    pool.workers_.store(0);
    pool.most_workers_.store(max_threads - 1);
    pool.owned_.store(false);
    pool.ending_.store(false);
    pool.caller_sleeps_.store(false);
    for (Worker& worker : pool.worker_) worker.parked.store(0);
    pool.turns_.after_fork_in_child();
    pool.mutex_.unlock();
}

void RunThreads::enter() {
    entered_ = true;
    if (threads_ == 1) return;
    outer_worker_ = current_worker;
    current_worker = -1;
}

void RunThreads::leave() {
    if (!entered_) return;
    entered_ = false;
    if (owner_) Pool::instance().release();
    owner_ = false;
    if (has_turn_) {
        Pool::instance().turns().give_back();
        last_ = Clock::now() - began_;
    }
    has_turn_ = false;
    if (threads_ != 1) current_worker = outer_worker_;
}

void RunThreads::take_turn() {
    // Inside a step of another run, which has one, there is nothing to wait for.
    Pool::instance().turns().take(outer_worker_ >= 0 ? Clock::duration{0} : patience * last_);
    has_turn_ = true;
    began_ = Clock::now();
}

void RunThreads::parallel_for(int64_t items, Task task, void* context) {
    if (threads_ == 1) return run_alone(items, task, context, 0);
    // Inside a step, this thread's share of the scratch memory is that of its worker number.
    if (current_worker >= 0) return run_alone(items, task, context, current_worker);
    if (items <= 1) return run_alone(items, task, context, 0);
    if (!has_turn_) take_turn();
    const int32_t others = std::max(Pool::instance().turns().running() - 1, 0);
    const int32_t threads = threads_ - others;
    if (threads <= 1 || (!owner_ && !(owner_ = Pool::instance().try_acquire())))
        return run_alone(items, task, context, 0);
    Pool::instance().run(threads, items, task, context);
}

} // namespace cuvil::rt
