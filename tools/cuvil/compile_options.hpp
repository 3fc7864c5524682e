// The options of a compilation, for the verbs that compile.
#pragma once

#include "command.hpp"
#include "cuvil/compile.hpp"

#include <memory>
#include <string>
#include <vector>

namespace cuvil::cli {

class CompileArguments {
public:
    explicit CompileArguments(std::string target = "cpu-x86-64") : target_(std::move(target)) {}
    void add_to(CLI::App& verb);
    // Throws UsageError for what no model could make right. Dumps, progress and Ctrl-C are connected to the console.
    CompileOptions options(Console& console) const;

private:
    std::string target_;
    std::vector<std::string> levels_;
    std::string opt_level_ = "O2", optimize_for_ = "latency", precision_ = "f32", tuning_;
    unsigned jobs_ = 0;
    bool no_cache_ = false;
    std::vector<std::string> input_shapes_, dynamic_shapes_, attachments_;
    std::vector<std::string> print_after_;
    std::vector<std::string> disabled_passes_;
    std::string stop_after_;
    bool time_passes_ = false;
    bool trace_inference_ = false;
    bool fill_weights_ = false;
};

// "x:1x3x224x224" -> {"x", {1, 3, 224, 224}}; the last colon parts them, nothing behind it means rank 0. Throws
// UsageError, which names the option.
std::pair<std::string, std::vector<int64_t>> parse_input_shape(const std::string& text, std::string_view option);
// "x:N,3,H,W" -> {"x", {"N", "3", "H", "W"}}. Throws UsageError.
std::pair<std::string, std::vector<std::string>> parse_dynamic(const std::string& text);
// "1x3x224x224"; throws UsageError.
std::vector<int64_t> parse_sizes(const std::string& text);

} // namespace cuvil::cli
