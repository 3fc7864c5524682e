// How long runs took.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cuvil::cli {

class Latencies {
public:
    void add(double seconds);
    size_t count() const { return seconds_.size(); }
    double total() const;
    double mean() const;
    double least() const { return percentile(0); }
    // The least time within which `percent` of the runs were done.
    double percentile(double percent) const;

private:
    mutable std::vector<double> seconds_;
    mutable bool is_sorted_ = false;
};

// When to stop: after `iterations` runs, or, where that is 0, when `seconds` are over.
struct Amount {
    int iterations = 0;
    double seconds = 0;
};

// Runs until it is enough, at least once.
void measure(const Amount& amount, const std::function<void()>& run, Latencies& out);

} // namespace cuvil::cli
