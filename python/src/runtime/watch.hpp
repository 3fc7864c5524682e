// A run as Python sees it: other threads may go on, and Ctrl-C is heard.
#pragma once

#include "raise.hpp"

#include "cuvil/cuvil.h"

#include <atomic>

namespace cuvil::python {

// Another thread's word that a run shall end.
struct Cancellation {
    int32_t flag = 0;
    void cancel() { __atomic_store_n(&flag, 1, __ATOMIC_RELAXED); }
};

// Releasing the interpreter costs a model of a microsecond little while nobody wants it, and up to 5 milliseconds when
// another thread computes in Python: that thread keeps it for so long. Runs that are known to be quick therefore keep
// it. Quick is what took less than 20 microseconds, or what got no more bytes than such a run.
class QuickRuns {
public:
    bool knows(int64_t bytes) const { return bytes <= most_bytes_.load(std::memory_order_relaxed); }
    void learn(int64_t bytes, int64_t nanoseconds) {
        if (nanoseconds < 20'000 && !knows(bytes)) most_bytes_.store(bytes, std::memory_order_relaxed);
    }
    void forget() { most_bytes_.store(-1, std::memory_order_relaxed); }

private:
    std::atomic<int64_t> most_bytes_{-1};
};

// Calls `run`, a run of the loader's with these options, with the interpreter released, unless the inputs' `bytes` say
// that the run is quick. On the main thread, handlers of signals are called between steps, about every 40 milliseconds;
// what they raise ends the run and is thrown, as is a failure of the run. `cancellation` may be null.
void run_watched(int32_t (*run)(void* context, const cuvil_run_options* options), void* context,
                 Cancellation* cancellation, int64_t bytes, QuickRuns& quick);

} // namespace cuvil::python
