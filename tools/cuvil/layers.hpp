// How long the steps of a module take.
#pragma once

#include "latency.hpp"
#include "session.hpp"

#include <string>
#include <vector>

namespace cuvil::cli {

struct Layer {
    std::string number, name, kernel, ops;
    std::string choice;  // what several kernels can compute; empty where there is one
    Latencies latencies; // of all that it did in a run
};

// The steps that a manifest has, not measured yet.
std::vector<Layer> layers_of(const nlohmann::json& manifest);
// Runs until it is enough, and adds the times of all steps. `layers`: those of the session's manifest.
void measure_layers(const Amount& amount, Session& session, const Feeds& feeds, std::vector<Layer>& layers);

} // namespace cuvil::cli
