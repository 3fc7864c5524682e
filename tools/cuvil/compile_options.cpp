#include "compile_options.hpp"

#include "command.hpp"
#include "interrupt.hpp"
#include "support/nearest.hpp"
#include "tuning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace cuvil::cli {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// "; --target cpu-x86-64 has it", or nothing.
std::string target_with(const std::string& level) {
    for (const Target& target : targets())
        if (contains(target.levels, level)) return fmt::format("; --target {} has it", target.name);
    return "";
}

void expect_pass(const std::string& name, const char* option, bool takes_all) {
    std::vector<std::string> names = pass_names();
    if (takes_all) names.emplace_back("all");
    if (!contains(names, name))
        throw UsageError(fmt::format("{}: no pass '{}'; the passes are {}", option, name, fmt::join(names, ", ")));
}

} // namespace

void CompileArguments::add_to(CLI::App& verb) {
    verb.add_option("--target", target_,
                    fmt::format("cpu-x86-64, or native: this CPU only; see cuvil targets (default: {})", target_))
        ->option_text("TARGET");
    verb.add_option("--isa", levels_, "Only these levels of the target, as v3,v4 (default: all)")
        ->option_text("LEVELS")
        ->delimiter(',')
        ->allow_extra_args(false);
    verb.add_option("-O,--opt-level", opt_level_, "O0 to O3: effort of the compiler, never other results (default: O2)")
        ->option_text("LEVEL");
    verb.add_option("--optimize-for", optimize_for_,
                    "latency (default): the shortest run; size: the smallest file, and less memory while running")
        ->option_text("WHAT");
    verb.add_option("--precision", precision_,
                    "What matrices of weights are kept in: f32 (default), bf16-weights, f16-weights or int8-weights; "
                    "all is computed in f32, and convolutions keep f32")
        ->option_text("WHAT");
    verb.add_option("--tuning", tuning_, "Kernels to take where there are several, as cuvil tune wrote them")
        ->option_text("FILE");
    verb.add_option("-j,--jobs", jobs_,
                    "Threads that compile (default: all cores); the file is the same for any number")
        ->check(number_from(1u))
        ->option_text("N");
    verb.add_flag("--no-cache", no_cache_, "Compile all code anew; see cuvil cache");
    add_repeatable(verb, "--input-shape", input_shapes_, "Fix the sizes of an input, as x:1x3x224x224; repeatable")
        ->option_text("NAME:SIZES");
    add_repeatable(verb, "--dynamic", dynamic_shapes_,
                   "All sizes of an input, as x:N,3,H,W: names for those that are open; repeatable")
        ->option_text("NAME:SIZES");
    add_repeatable(verb, "--attach", attachments_, "Put this file into the module, too; repeatable")
        ->option_text("FILE");
    add_repeatable(verb, "--print-after", print_after_, "Print the IR after this pass, or after all; repeatable")
        ->option_text("PASS");
    add_repeatable(verb, "--disable-pass", disabled_passes_, "Leave this pass out; repeatable")->option_text("PASS");
    verb.add_flag("--fill-weights", fill_weights_, "Make up numbers for weights that IR text names without their data");
    verb.add_flag("--time-passes", time_passes_, "Say how long each pass takes, and how often it changes something");
    verb.add_flag("--trace-inference", trace_inference_,
                  "Say which types and sizes InferencePass finds, round by round");
    verb.add_option("--stop-after", stop_after_, "Stop after this pass and write the IR")->option_text("PASS");
}

CompileOptions CompileArguments::options(Console& console) const {
    CompileOptions options;
    options.target = target_ == "host" ? "native" : target_;
    const auto target =
        std::find_if(targets().begin(), targets().end(), [&](const Target& t) { return t.name == options.target; });
    if (target == targets().end()) {
        std::vector<std::string> names;
        for (const Target& t : targets()) names.push_back(t.name);
        throw UsageError(fmt::format("no target '{}'{}; see cuvil targets", target_, did_you_mean(target_, names)));
    }
    for (const std::string& level : levels_)
        if (!contains(target->levels, level))
            throw UsageError(fmt::format("--isa: {} has no level '{}'; its levels are {}{}", target->name, level,
                                         fmt::join(target->levels, ", "), target_with(level)));
    options.levels = levels_;

    options.opt_level = opt_level_.size() == 1 ? "O" + opt_level_ : opt_level_;
    if (!contains({"O0", "O1", "O2", "O3"}, options.opt_level))
        throw UsageError(fmt::format("--opt-level: no level '{}'; the levels are O0, O1, O2 and O3", opt_level_));
    options.optimize_for = choice<OptimizeFor>("--optimize-for", optimize_for_,
                                               {{"latency", OptimizeFor::Latency}, {"size", OptimizeFor::Size}});
    options.precision = choice<Precision>("--precision", precision_, precisions());
    if (!tuning_.empty()) options.kernels = read_tuning(tuning_);
    options.jobs = jobs_;
    if (!no_cache_) options.cache_folder = default_cache_folder();

    for (const std::string& text : input_shapes_) options.input_shapes.insert(parse_input_shape(text, "--input-shape"));
    for (const std::string& text : dynamic_shapes_) {
        auto [name, sizes] = parse_dynamic(text);
        if (options.input_shapes.contains(name))
            throw UsageError(fmt::format("input '{}' has both --input-shape and --dynamic", name));
        options.dynamic_shapes.insert({std::move(name), std::move(sizes)});
    }
    options.attachments.assign(attachments_.begin(), attachments_.end());
    for (const std::string& name : print_after_) expect_pass(name, "--print-after", true);
    for (const std::string& name : disabled_passes_) expect_pass(name, "--disable-pass", false);
    if (!stop_after_.empty()) expect_pass(stop_after_, "--stop-after", false);
    options.print_after = print_after_;
    options.disabled_passes = disabled_passes_;
    options.stop_after = stop_after_;
    options.fill_weights = fill_weights_;

    options.dump = [&console](std::string_view pass, std::string_view ir) {
        console.err(fmt::format("# IR after {}\n{}\n", pass, ir));
    };
    if (time_passes_) options.pass_done = [&console](const PassReport& report) { console.err(text_of(report) + "\n"); };
    if (trace_inference_)
        options.trace_inference = [&console](std::string_view line) { console.err(fmt::format("{}\n", line)); };
    options.progress = [&console](const Progress& progress) { console.progress(progress); };
    options.cancel = &interrupted();
    return options;
}

std::vector<int64_t> parse_sizes(const std::string& text) {
    std::vector<int64_t> sizes;
    const char *at = text.data(), *end = at + text.size();
    while (at != end) {
        int64_t size = 0;
        const auto [next, error] = std::from_chars(at, end, size);
        const bool more = next != end && (*next == 'x' || *next == ',') && next + 1 != end;
        if (error != std::errc() || size < 0 || (next != end && !more))
            throw UsageError(fmt::format("'{}' is no shape; write sizes as 1x3x224x224", text));
        sizes.push_back(size);
        at = more ? next + 1 : next;
    }
    return sizes;
}

std::pair<std::string, std::vector<int64_t>> parse_input_shape(const std::string& text, std::string_view option) {
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0)
        throw UsageError(fmt::format("{}: '{}' is not of the form NAME:1x3x224x224", option, text));
    return {text.substr(0, colon), parse_sizes(text.substr(colon + 1))};
}

std::pair<std::string, std::vector<std::string>> parse_dynamic(const std::string& text) {
    const auto fail = [&] {
        throw UsageError(
            fmt::format("--dynamic: '{}' is not of the form NAME:N,3,H,W; a size is a number or a name", text));
    };
    const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) fail();
    std::vector<std::string> sizes;
    for (size_t at = colon + 1; at < text.size();) {
        const size_t comma = std::min(text.find(',', at), text.size());
        const std::string size = text.substr(at, comma - at);
        const bool is_number = !size.empty() && std::all_of(size.begin(), size.end(), is_digit);
        const bool is_name = !size.empty() && is_letter(size[0]) &&
                             std::all_of(size.begin(), size.end(), [&](char c) { return is_letter(c) || is_digit(c); });
        if ((!is_number && !is_name) || comma + 1 == text.size()) fail();
        sizes.push_back(size);
        at = comma + 1;
    }
    return {text.substr(0, colon), std::move(sizes)};
}

} // namespace cuvil::cli
