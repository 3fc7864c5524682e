#include "interrupt.hpp"

#include "console.hpp"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace cuvil::cli {
namespace {

std::atomic<bool> flag{false}, ends_at_once{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may write nothing else");

void handle(int) {
    flag = true;
    if (!ends_at_once) return;
    constexpr std::string_view message = "Interrupted.\n";
    (void)!::write(STDERR_FILENO, message.data(), message.size());
    _exit(Interrupted);
}

} // namespace

void handle_signals() {
    struct sigaction action{};
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);
}

const std::atomic<bool>& interrupted() { return flag; }

EndsAtOnce::EndsAtOnce() { ends_at_once = true; }
EndsAtOnce::~EndsAtOnce() { ends_at_once = false; }

} // namespace cuvil::cli
