// The threads that statically linked models may have: each item once, whatever the number of threads and callers.
#include "cuvil/cuvil.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

extern "C" const cuvil_host* cuvil_threads(int32_t count);

namespace {

struct Seen {
    explicit Seen(int64_t n) : times(static_cast<size_t>(n)), largest_worker(0) {}
    std::vector<std::atomic<int>> times;
    std::atomic<int32_t> largest_worker;

    static void count(void* context, int64_t item, int32_t worker) {
        Seen& seen = *static_cast<Seen*>(context);
        seen.times[static_cast<size_t>(item)]++;
        int32_t largest = seen.largest_worker;
        while (worker > largest && !seen.largest_worker.compare_exchange_weak(largest, worker)) {
        }
    }
    bool each_once() const {
        for (const auto& n : times)
            if (n != 1) return false;
        return true;
    }
};

bool runs(int32_t threads, int64_t n) {
    const cuvil_host* host = cuvil_threads(threads);
    Seen seen(n);
    host->parallel_for(host, n, Seen::count, &seen);
    return seen.each_once() && seen.largest_worker < threads;
}

TEST(StaticThreads, EveryItemRunsOnce) {
    for (int32_t threads : {1, 2, 3, 8})
        for (int64_t n : {0, 1, 2, 7, 64, 1000, 70000, 200000}) EXPECT_TRUE(runs(threads, n)) << threads << ' ' << n;
}

TEST(StaticThreads, StepsFollowEachOtherClosely) {
    for (int step = 0; step < 20000; step++) ASSERT_TRUE(runs(2 + step % 3, 1 + step % 9)) << step;
}

TEST(StaticThreads, CallersDoNotWaitForEachOther) {
    std::vector<std::thread> callers;
    std::atomic<int> wrong = 0;
    for (int caller = 0; caller < 4; caller++)
        callers.emplace_back([&, caller] {
            for (int step = 0; step < 2000; step++)
                if (!runs(1 + (caller + step) % 4, 1 + step % 50)) wrong++;
        });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0);
}

TEST(StaticThreads, SleepersAreWoken) {
    for (int step = 0; step < 20; step++) {
        usleep(2000);
        ASSERT_TRUE(runs(4, 100));
    }
}

TEST(StaticThreads, AChildOfForkGoesOnAlone) {
    ASSERT_TRUE(runs(4, 100));
    const pid_t child = fork();
    if (child == 0) _exit(runs(4, 1000) ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(StaticThreads, TheNumberIsBounded) {
    EXPECT_EQ(cuvil_threads(0), cuvil_threads(1));
    EXPECT_EQ(cuvil_threads(-5), cuvil_threads(1));
    EXPECT_EQ(cuvil_threads(1000), cuvil_threads(64));
    EXPECT_NE(cuvil_threads(2), cuvil_threads(3));
    const cuvil_host* host = cuvil_threads(2);
    void* block = host->alloc(host, 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    host->free(host, block);
    EXPECT_EQ(host->alloc(host, UINT64_MAX), nullptr);
}

} // namespace
