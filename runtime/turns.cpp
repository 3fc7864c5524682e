#include "runtime/turns.hpp"

namespace cuvil::rt {

void Turns::take(std::chrono::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    if (running_ < at_once_) {
        running_++;
        return;
    }
    Waiter self;
    *place_of(nullptr) = &self;
    waiting_++;
    if (self.called.wait_for(lock, patience, [&] { return self.has_turn; })) return;
    *place_of(&self) = self.next;
    waiting_--;
    running_++;
}

Turns::Waiter** Turns::place_of(const Waiter* waiter) {
    Waiter** place = &first_;
    while (*place != waiter) place = &(*place)->next;
    return place;
}

void Turns::give_back() {
    std::lock_guard lock(mutex_);
    if (!first_ || running_ > at_once_) {
        if (running_ > 0) running_--; // 0: the turn was taken before a fork()
        return;
    }
    Waiter& next = *first_;
    first_ = next.next;
    waiting_--;
    next.has_turn = true;
    next.called.notify_one(); // still under the lock: without it the waiter could be gone
}

void Turns::after_fork_in_child() {
    running_ = 0;
    waiting_ = 0;
    first_ = nullptr;
    mutex_.unlock();
}

} // namespace cuvil::rt
