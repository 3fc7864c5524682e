#include "runtime/pool.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace cuvil::rt {
namespace {

using namespace std::chrono_literals;

struct Count {
    std::vector<std::atomic<int32_t>> calls;
    int32_t threads;
    std::atomic<bool> bad_worker{false};
    explicit Count(int64_t items, int32_t thread_count) : calls(items), threads(thread_count) {}
    static void task(void* context, int64_t item, int32_t worker) {
        auto* self = static_cast<Count*>(context);
        if (worker < 0 || worker >= self->threads) self->bad_worker = true;
        self->calls[item]++;
    }
    bool each(int32_t times) const {
        return !bad_worker && std::all_of(calls.begin(), calls.end(), [&](const auto& n) { return n == times; });
    }
};

// Counts as a loaded module and as one run of it.
class PoolRun {
public:
    explicit PoolRun(int32_t threads) : threads_(threads) {
        Pool::instance().add_user();
        threads_.enter();
    }
    ~PoolRun() {
        threads_.leave();
        Pool::instance().remove_user();
    }
    void step(int64_t items, Task task, void* context) { threads_.parallel_for(items, task, context); }

private:
    RunThreads threads_;
};

TEST(Pool, EachItemRunsOnce) {
    for (int32_t threads : {1, 2, 3, 8}) {
        PoolRun run(threads);
        for (int64_t items : {0, 1, 2, 7, 64, 65535, 65536, 200001}) {
            Count count(items, threads);
            run.step(items, Count::task, &count);
            EXPECT_TRUE(count.each(1)) << threads << " threads, " << items << " items";
        }
    }
    EXPECT_EQ(Pool::instance().worker_count(), 0) << "the last user's end is the workers' end";
}

TEST(Pool, ManyShortSteps) {
    PoolRun run(4);
    Count count(5, 4);
    for (int i = 0; i < 20000; i++) run.step(5, Count::task, &count);
    EXPECT_TRUE(count.each(20000));
}

TEST(Pool, StepsAfterPausesOfAllLengths) {
    PoolRun run(2);
    Count count(8, 2);
    for (int i = 0; i < 200; i++) {
        std::this_thread::sleep_for(std::chrono::microseconds(i));
        run.step(8, Count::task, &count);
    }
    EXPECT_TRUE(count.each(200));
}

TEST(Pool, TheThreadCountMayChangeFromRunToRun) {
    Pool::instance().add_user();
    for (int i = 0; i < 2000; i++) {
        const int32_t threads = 2 + i % 7;
        PoolRun run(threads);
        Count count(16, threads);
        run.step(16, Count::task, &count);
        ASSERT_TRUE(count.each(1)) << i;
    }
    EXPECT_LE(Pool::instance().worker_count(), 7);
    Pool::instance().remove_user();
}

TEST(Pool, SecondCallRunsOnItsOwnThread) {
    PoolRun first(2);
    Count warm(2, 2);
    first.step(2, Count::task, &warm); // owns the workers until its end
    std::thread([] {
        PoolRun second(2);
        struct Seen {
            std::thread::id thread = std::this_thread::get_id();
            std::atomic<bool> foreign{false};
        } seen;
        auto task = [](void* context, int64_t, int32_t worker) {
            auto* s = static_cast<Seen*>(context);
            if (std::this_thread::get_id() != s->thread || worker != 0) s->foreign = true;
        };
        second.step(1000, task, &seen);
        EXPECT_FALSE(seen.foreign);
    }).join();
}

TEST(Pool, ManyCallersAtOnce) {
    std::vector<std::thread> callers;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 8; i++)
        callers.emplace_back([&] {
            for (int round = 0; round < 300; round++) {
                PoolRun run(3);
                Count count(20, 3);
                for (int step = 0; step < 5; step++) run.step(20, Count::task, &count);
                if (!count.each(5)) wrong++;
            }
        });
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0);
}

TEST(Pool, NestedStepsRunInPlace) {
    PoolRun run(4);
    struct Nest {
        PoolRun* run;
        std::atomic<int64_t> total{0};
        std::atomic<bool> moved{false};
    } nest{&run};
    run.step(
        16,
        [](void* context, int64_t, int32_t worker) {
            auto* outer = static_cast<Nest*>(context);
            struct Inner {
                Nest* nest;
                std::thread::id thread;
                int32_t worker;
            } inner{outer, std::this_thread::get_id(), worker};
            outer->run->step(
                10,
                [](void* c, int64_t, int32_t w) {
                    auto* in = static_cast<Inner*>(c);
                    in->nest->total++;
                    if (in->thread != std::this_thread::get_id() || in->worker != w) in->nest->moved = true;
                },
                &inner);
        },
        &nest);
    EXPECT_EQ(nest.total, 160);
    EXPECT_FALSE(nest.moved);
}

TEST(Pool, AWorkerThatDoesNotComeIsNotWaitedFor) {
    // All of a step is done by whoever is awake: with the one worker held inside a chunk, the caller does the rest.
    PoolRun run(2);
    struct Held {
        std::atomic<int> by_caller{0};
        std::atomic<bool> held{false}, release{false};
    } held;
    run.step(
        50,
        [](void* context, int64_t, int32_t worker) {
            auto* h = static_cast<Held*>(context);
            if (worker == 1) {
                h->held = true;
                while (!h->release) std::this_thread::yield();
                return;
            }
            for (int i = 0; i < 2000 && !h->held; i++) std::this_thread::sleep_for(1ms); // until the worker came
            if (++h->by_caller == 49) h->release = true;
        },
        &held);
    EXPECT_EQ(held.by_caller, 49);
}

TEST(Pool, OfTwoThreadsEachKeepsItsEnd) {
    PoolRun run(2);
    for (int i = 0; i < 1000; i++) {
        std::vector<int32_t> worker_of(17, -1);
        run.step(
            17,
            [](void* context, int64_t item, int32_t worker) {
                (*static_cast<std::vector<int32_t>*>(context))[static_cast<size_t>(item)] = worker;
            },
            &worker_of);
        EXPECT_TRUE(std::is_sorted(worker_of.begin(), worker_of.end())) << "the caller begins at 0, the worker at 16";
        EXPECT_GE(worker_of.front(), 0);
    }
}

TEST(Pool, BothThreadsTakePart) {
    PoolRun run(2);
    std::atomic<int> by_worker{0};
    for (int i = 0; i < 100 && by_worker == 0; i++)
        run.step(
            20,
            [](void* context, int64_t, int32_t worker) {
                if (worker == 1) ++*static_cast<std::atomic<int>*>(context);
                std::this_thread::sleep_for(100us);
            },
            &by_worker);
    EXPECT_GT(by_worker, 0);
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

TEST(Pool, IdleWorkersSleep) {
    PoolRun run(4);
    Count count(100, 4);
    run.step(100, Count::task, &count);
    std::this_thread::sleep_for(20ms);
    const double before = cpu_seconds();
    std::this_thread::sleep_for(300ms);
    EXPECT_LT(cpu_seconds() - before, 0.02);
}

TEST(Pool, AForkedChildStartsWithNone) {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the sanitizer knows no threads in a child of a process with threads";
#endif
    Pool::instance().add_user();
    std::atomic<bool> stop{false};
    std::thread busy([&] { // holds the pool at the moment of most forks
        while (!stop) {
            PoolRun run(3);
            Count count(50, 3);
            run.step(50, Count::task, &count);
        }
    });
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            if (Pool::instance().worker_count() != 0) _exit(2);
            RunThreads threads(4);
            Count count(1000, 4);
            threads.enter();
            for (int step = 0; step < 10; step++) threads.parallel_for(1000, Count::task, &count);
            threads.leave();
            _exit(!count.each(10) ? 1 : Pool::instance().worker_count() == 3 ? 0 : 3);
        }
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0) << i;
    }
    stop = true;
    busy.join();
    Pool::instance().remove_user();
}

TEST(Pool, ARunMayForkBetweenItsSteps) {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "the sanitizer knows no threads in a child of a process with threads";
#endif
    PoolRun run(3);
    Count before(50, 3);
    run.step(50, Count::task, &before);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        Count after(1000, 3);
        run.step(1000, Count::task, &after);
        _exit(!after.each(1) ? 1 : Pool::instance().worker_count() > 2 ? 2 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

} // namespace
} // namespace cuvil::rt
