#include "interrupt.hpp"

#include <csignal>

namespace cuvil::cli {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may write nothing else");

} // namespace

void handle_signals() {
    struct sigaction action{};
    action.sa_handler = [](int) { flag = true; };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);
}

const std::atomic<bool>& interrupted() { return flag; }

} // namespace cuvil::cli
