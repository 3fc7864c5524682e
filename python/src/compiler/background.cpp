#include "background.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace cuvil::python {
namespace {

using Dumps = std::vector<std::pair<std::string, std::string>>;

struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    Dumps dumps;
    bool done = false;
    std::exception_ptr failure;
    std::atomic<bool> cancel{false};

    // Waits for news; true when the work is done and all dumps are taken.
    bool wait(Dumps& taken) {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, std::chrono::milliseconds(50), [this] { return done || !dumps.empty(); });
        std::swap(taken, dumps);
        return done;
    }
};

CompileOptions options_of(const CompileArguments& a, Shared& shared) {
    CompileOptions options;
    options.target = a.target;
    options.levels = a.levels;
    options.opt_level = a.opt_level;
    options.optimize_for = a.optimize_for == "size" ? OptimizeFor::Size : OptimizeFor::Latency;
    options.precision = std::ranges::find(precisions(), a.precision, &std::pair<std::string, Precision>::first)->second;
    options.jobs = a.jobs;
    if (a.use_cache) options.cache_folder = default_cache_folder();
    options.kernels = a.kernels;
    options.input_shapes = a.input_shapes;
    options.dynamic_shapes = a.dynamic_shapes;
    options.attachments.assign(a.attachments.begin(), a.attachments.end());
    options.print_after = a.print_after;
    options.disabled_passes = a.disabled_passes;
    options.stop_after = a.stop_after;
    options.cancel = &shared.cancel;
    options.dump = [&shared](std::string_view pass, std::string_view text) {
        const std::lock_guard lock(shared.mutex);
        shared.dumps.emplace_back(pass, text);
        shared.changed.notify_one();
    };
    return options;
}

} // namespace

void run_in_background(const CompileArguments& arguments, nb::handle dump,
                       const std::function<void(const CompileOptions&)>& work) {
    Shared shared;
    const CompileOptions options = options_of(arguments, shared);
    std::jthread worker([&] {
        try {
            work(options);
        } catch (...) {
            shared.failure = std::current_exception();
        }
        const std::lock_guard lock(shared.mutex);
        shared.done = true;
        shared.changed.notify_one();
    });
    std::exception_ptr python_failure;
    for (bool done = false; !done;) {
        Dumps dumps;
        {
            const nb::gil_scoped_release release;
            done = shared.wait(dumps);
        }
        if (python_failure) continue; // only waits for the work to stop
        try {
            for (const auto& [pass, text] : dumps) dump(pass.c_str(), text.c_str());
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        } catch (const nb::python_error&) {
            python_failure = std::current_exception();
            shared.cancel = true;
        }
    }
    worker.join();
    if (python_failure) std::rethrow_exception(python_failure);
    if (shared.failure) std::rethrow_exception(shared.failure);
}

} // namespace cuvil::python
