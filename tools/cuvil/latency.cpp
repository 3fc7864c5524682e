#include "latency.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace cuvil::cli {

void Latencies::add(double seconds) {
    seconds_.push_back(seconds);
    is_sorted_ = false;
}

double Latencies::total() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

double Latencies::mean() const { return total() / static_cast<double>(count()); }

double Latencies::percentile(double percent) const {
    if (!is_sorted_) std::sort(seconds_.begin(), seconds_.end());
    is_sorted_ = true;
    const auto rank = static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(count())));
    return seconds_[std::clamp<size_t>(rank, 1, count()) - 1];
}

void measure(const Amount& amount, const std::function<void()>& run, Latencies& out) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    Clock::time_point start = begin;
    for (int i = 1;; i++) {
        run();
        const Clock::time_point end = Clock::now();
        out.add(std::chrono::duration<double>(end - start).count());
        const bool is_enough = amount.iterations > 0
                                   ? i >= amount.iterations
                                   : std::chrono::duration<double>(end - begin).count() >= amount.seconds;
        if (is_enough) return;
        start = Clock::now();
    }
}

} // namespace cuvil::cli
