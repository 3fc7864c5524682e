#include "layers.hpp"

#include <chrono>
#include <map>

namespace cuvil::cli {
namespace {

// The time of each step of a run; one in a loop counts each time.
class Stopwatch {
public:
    using Clock = std::chrono::steady_clock;

    static void trace(void* context, int32_t step, int32_t is_end) {
        auto& self = *static_cast<Stopwatch*>(context);
        if (step < 0) return;
        if (!is_end) {
            self.started_[step] = Clock::now();
        } else {
            self.seconds_[step] += std::chrono::duration<double>(Clock::now() - self.started_[step]).count();
        }
    }

    std::map<int32_t, double> take() { return std::exchange(seconds_, {}); }

private:
    std::map<int32_t, Clock::time_point> started_;
    std::map<int32_t, double> seconds_;
};

std::string word_of(const nlohmann::json& step, const char* key) {
    const auto found = step.find(key);
    if (found == step.end()) return "";
    if (!found->is_array()) return found->is_string() ? found->get<std::string>() : found->dump();
    std::string words;
    for (const auto& word : *found) words += (words.empty() ? "" : " ") + word.get<std::string>();
    return words;
}

} // namespace

std::vector<Layer> layers_of(const nlohmann::json& manifest) {
    std::vector<Layer> layers;
    for (const auto& step : manifest.value("steps", nlohmann::json::array()))
        layers.push_back({word_of(step, "number"),
                          word_of(step, "name"),
                          word_of(step, "kernel"),
                          word_of(step, "ops"),
                          word_of(step, "choice"),
                          {}});
    return layers;
}

void measure_layers(const Amount& amount, Session& session, const Feeds& feeds, std::vector<Layer>& layers) {
    Stopwatch watch;
    const cuvil_run_options options{sizeof options, nullptr, Stopwatch::trace, &watch};
    Latencies ignored;
    const auto run = [&] {
        session.run(feeds.values, &options);
        const std::map<int32_t, double> seconds = watch.take();
        for (size_t i = 0; i < layers.size(); i++) {
            const auto found = seconds.find(std::stoi(layers[i].number));
            layers[i].latencies.add(found == seconds.end() ? 0 : found->second);
        }
    };
    measure(amount, run, ignored);
}

} // namespace cuvil::cli
