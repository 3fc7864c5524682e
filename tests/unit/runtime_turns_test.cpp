#include "runtime/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace cuvil::rt {
namespace {

using namespace std::chrono_literals;

void wait_until_waiting(const Turns& turns, int32_t count) {
    while (turns.waiting() != count) std::this_thread::yield();
}

TEST(Turns, NoMoreRunThanMayAtOnce) {
    Turns turns(2);
    std::atomic<int32_t> inside{0}, most{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 6; i++)
        callers.emplace_back([&] {
            for (int run = 0; run < 200; run++) {
                turns.take(1h);
                const int32_t now = ++inside;
                for (int32_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                }
                std::this_thread::yield();
                inside--;
                turns.give_back();
            }
        });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(most, 2);
    EXPECT_EQ(turns.running(), 0);
    EXPECT_EQ(turns.waiting(), 0);
}

TEST(Turns, FirstComeFirstServed) {
    Turns turns(1);
    turns.take(0s);
    std::vector<int> order; // each writes while it has the one turn
    std::vector<std::thread> callers;
    for (int i = 0; i < 5; i++) {
        callers.emplace_back([&, i] {
            turns.take(1h);
            order.push_back(i);
            turns.give_back();
        });
        wait_until_waiting(turns, i + 1);
    }
    turns.give_back();
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(Turns, WhoLosesPatienceRunsBesideTheOthers) {
    Turns turns(1);
    turns.take(0s);
    turns.take(1ms); // nobody gives back
    EXPECT_EQ(turns.running(), 2);
    std::thread third([&] {
        turns.take(1h);
        turns.give_back();
    });
    wait_until_waiting(turns, 1);
    turns.give_back();
    EXPECT_EQ(turns.waiting(), 1) << "one is left, and only one may run";
    turns.give_back();
    third.join();
    EXPECT_EQ(turns.running(), 0);
}

TEST(Turns, WhoLosesPatienceLeavesTheQueueInOrder) {
    Turns turns(1);
    turns.take(0s);
    std::vector<int> order;
    std::vector<std::thread> callers;
    auto call = [&](int i) {
        turns.take(1h);
        order.push_back(i);
        turns.give_back();
    };
    callers.emplace_back(call, 0);
    wait_until_waiting(turns, 1);
    std::thread impatient([&] { turns.take(300ms); });
    wait_until_waiting(turns, 2);
    callers.emplace_back(call, 1);
    impatient.join();
    wait_until_waiting(turns, 2);
    turns.give_back();
    turns.give_back();
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(order, (std::vector<int>{0, 1}));
}

TEST(Turns, ATurnFromBeforeAForkIsForgotten) {
    Turns turns(1);
    turns.take(0s);
    turns.before_fork();
    turns.after_fork_in_child();
    EXPECT_EQ(turns.running(), 0);
    turns.give_back();
    EXPECT_EQ(turns.running(), 0);
}

} // namespace
} // namespace cuvil::rt
