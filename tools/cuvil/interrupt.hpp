// Ctrl-C: the first asks the work to stop, the second ends the process.
#pragma once

#include <atomic>

namespace cuvil::cli {

// Takes SIGINT and SIGTERM from here on; SIGPIPE becomes an error of the write.
void handle_signals();
// True once a signal came. Its address is what CompileOptions::cancel wants.
const std::atomic<bool>& interrupted();

// While one lives a signal ends the process at once: for a module's code, which does not ask, where nothing is to undo.
class EndsAtOnce {
public:
    EndsAtOnce();
    ~EndsAtOnce();
    EndsAtOnce(const EndsAtOnce&) = delete;
};

} // namespace cuvil::cli
