#include "watch.hpp"

#include "status.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace cuvil::python {
namespace {

constexpr int64_t milliseconds = 1'000'000;
constexpr int64_t too_long_for_quick = 8 * milliseconds;
constexpr int64_t between_looks = 40 * milliseconds;

int64_t now(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// A clock that ticks every few milliseconds and costs next to nothing to read.
int64_t coarse_now() { return now(CLOCK_MONOTONIC_COARSE); }

// Python calls handlers of signals on its main thread alone.
bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

struct Watch {
    Cancellation own;
    Cancellation* cancellation;
    QuickRuns& quick;
    PyThreadState* released = nullptr;
    int64_t next_look;
    bool was_interrupted = false;

    void look() {
        if (!released) { // slower than was thought
            released = PyEval_SaveThread();
            quick.forget();
        } else if (!was_interrupted && is_main_thread()) {
            PyEval_RestoreThread(released);
            was_interrupted = PyErr_CheckSignals() != 0;
            if (was_interrupted) cancellation->cancel();
            released = PyEval_SaveThread(); // keeps the exception
        }
        next_look = coarse_now() + between_looks;
    }

    static void trace(void* context, int32_t step, int32_t is_end) {
        if (step >= 0 && is_end == 0) return;
        auto* watch = static_cast<Watch*>(context);
        if (coarse_now() >= watch->next_look) watch->look();
    }
};

} // namespace

void run_watched(int32_t (*run)(void* context, const cuvil_run_options* options), void* context,
                 Cancellation* cancellation, int64_t bytes, QuickRuns& quick) {
    const bool is_quick = quick.knows(bytes);
    Watch watch{.own = {},
                .cancellation = cancellation,
                .quick = quick,
                .next_look = coarse_now() + (is_quick ? too_long_for_quick : between_looks)};
    if (!cancellation) watch.cancellation = &watch.own;
    const cuvil_run_options options{sizeof options, &watch.cancellation->flag, Watch::trace, &watch};
    int64_t start = 0;
    if (!is_quick) {
        watch.released = PyEval_SaveThread();
        start = now(CLOCK_MONOTONIC);
    }
    const int32_t status = run(context, &options);
    if (!is_quick) quick.learn(bytes, now(CLOCK_MONOTONIC) - start);
    if (watch.released) PyEval_RestoreThread(watch.released);
    if (watch.was_interrupted) throw nb::python_error();
    check(status);
}

} // namespace cuvil::python
