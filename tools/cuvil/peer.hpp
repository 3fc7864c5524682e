// ONNX Runtime beside Cuvil: a child process runs Python with the same model and inputs.
#pragma once

#include "latency.hpp"
#include "npy.hpp"
#include "session.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace cuvil::cli {

class Peer {
public:
    // Loads the model with `threads` threads. Throws InputError: no Python with onnxruntime, or its words of refusal.
    Peer(const std::string& model, const std::vector<Port>& inputs, const Feeds& feeds, int threads);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    const std::string& name() const { return name_; } // "onnxruntime 1.27.0"
    void measure(const Amount& amount, Latencies& out);
    // Outputs of the model, or values inside of it, by their names. Throws InputError where it gives none.
    std::vector<Array> values(const std::vector<std::string>& names);

private:
    nlohmann::json ask(const nlohmann::json& request);
    bool start(const std::string& python, const std::vector<std::string>& arguments);
    std::string read_line();
    void end();

    std::filesystem::path folder_; // of the inputs
    std::string name_;
    int process_ = -1, to_ = -1, from_ = -1;
    std::string buffered_;
};

} // namespace cuvil::cli
