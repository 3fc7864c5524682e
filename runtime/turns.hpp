// Turns on the processors, for runs that come at the same time.
//
// As many runs hold a turn as there are processors; others wait, first come, first served. Left to the system, four
// runs of 5 ms on two processors would be cut into its slices of 3 ms and more: the median is 10 ms, and one in a
// hundred ends after 26. In turns each waits for one other, whichever it is: the median is 11, and one in a hundred
// ends after 20.
//
// A short run must not wait for long ones for long: after its patience it computes beside the others, as if there were
// no turns.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace cuvil::rt {

class Turns {
public:
    // At most `at_once` runs have a turn, unless they lose patience.
    explicit Turns(int32_t at_once) : at_once_(at_once) {}

    // Returns with the turn, or after `patience` without: give_back() either way.
    void take(std::chrono::nanoseconds patience);
    void give_back();

    // Those between take() and give_back(), without those who wait. Whoever was there before a fork() is forgotten.
    int32_t running() const { return running_.load(std::memory_order_relaxed); }
    int32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

    // Around fork(): in the child nobody runs and nobody waits.
    void before_fork() { mutex_.lock(); }
    void after_fork_in_parent() { mutex_.unlock(); }
    void after_fork_in_child();

private:
    struct Waiter { // on the stack of who waits
        std::condition_variable called;
        bool has_turn = false;
        Waiter* next = nullptr;
    };
    Waiter** place_of(const Waiter* waiter); // the pointer to it; of nullptr: the end of the queue

    const int32_t at_once_;
    std::mutex mutex_;
    Waiter* first_ = nullptr;
    std::atomic<int32_t> running_{0};
    std::atomic<int32_t> waiting_{0};
};

} // namespace cuvil::rt
