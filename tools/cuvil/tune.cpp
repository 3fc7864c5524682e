// cuvil tune: measures the kernels among which a model leaves a choice.
#include "command.hpp"
#include "compile_options.hpp"
#include "describe_plan.hpp"
#include "layers.hpp"
#include "output.hpp"
#include "plan/winograd.hpp"
#include "runtime/thread_count.hpp"
#include "session.hpp"
#include "src/stages.hpp"
#include "tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

namespace cuvil::cli {
namespace {

struct Options {
    explicit Options() : compile("native") {}
    CompileArguments compile;
    std::string file, output;
    std::vector<std::string> sizes;
    int threads = 1;
    double seconds = 1;
};

// The machine changes while a benchmark runs, so the candidates take turns.
constexpr int turns = 5;

// Which kernel is the default's, and seconds of all steps that compute the same thing, by kernel.
struct Choice {
    std::string standard;
    std::map<std::string, double> seconds;
};

// A module in which every choice fell on one kernel.
struct Candidate {
    std::string kernel;
    std::string module;
    std::unique_ptr<Session> session;
    std::optional<Feeds> feeds;
    std::vector<Layer> layers;
};

Candidate candidate(const Options& o, const CompileOptions& options, const std::string& kernel, const Kernels& kernels,
                    Console& console) {
    CompileOptions forced = options;
    forced.kernels = kernels;
    Candidate c{kernel, compiled(o.file, forced, console), nullptr, {}, {}};
    c.session = std::make_unique<Session>(o.file, c.module, o.threads);
    c.feeds = take_feeds(c.session->inputs(), {}, {}, "random", {.sizes = parse_symbols(o.sizes)});
    c.layers = layers_of(c.session->manifest());
    return c;
}

// The candidates take less than it by this much, or the default stays: what a measurement may err by.
constexpr double least_gain = 0.03;

std::string quickest(const Choice& choice) {
    const auto best = std::ranges::min_element(choice.seconds, {}, [](const auto& entry) { return entry.second; });
    return best->second < (1 - least_gain) * choice.seconds.at(choice.standard) ? best->first : choice.standard;
}

std::string choice_text(const std::string& what, const Choice& choice) {
    std::string text = what + "\n";
    const std::string taken = quickest(choice);
    for (const auto& [kernel, seconds] : choice.seconds)
        text += fmt::format("  {} {:<18} {:>9}{}\n", kernel == taken ? '*' : ' ', kernel, duration_text(seconds),
                            kernel == choice.standard ? "  as estimated" : "");
    return text;
}

int tune(const Options& o, Console& console) {
    std::filesystem::path output = o.output;
    if (output.empty()) output = std::filesystem::path(o.file).replace_extension(".tuning.json");
    expect_output(output, o.file);
    const CompileOptions options = o.compile.options(console);

    Diagnostics diag;
    std::map<std::string, Choice> choices;
    for (const Layer& layer : layers_of(planned_manifest(imported({.path = o.file}, options, diag), o.file, diag)))
        if (!layer.choice.empty()) choices[layer.choice].standard = layer.kernel;
    if (choices.empty()) {
        console.out(fmt::format("{} leaves no choice: all its steps have one kernel\n", o.file));
        return Done;
    }
    std::vector<Candidate> candidates;
    for (const std::string_view kernel : convolution_kernels) {
        Kernels kernels;
        for (const auto& [what, choice] : choices) kernels[what] = kernel;
        candidates.push_back(candidate(o, options, std::string(kernel), kernels, console));
    }
    for (int turn = 0; turn < turns; turn++)
        for (Candidate& c : candidates) measure_layers({0, o.seconds / turns}, *c.session, *c.feeds, c.layers);
    for (const Candidate& c : candidates)
        for (const Layer& layer : c.layers)
            if (!layer.choice.empty()) choices[layer.choice].seconds[c.kernel] += layer.latencies.percentile(50);

    Kernels found;
    std::string text;
    for (const auto& [what, choice] : choices) {
        found[what] = quickest(choice);
        text += choice_text(what, choice);
    }
    write_output(output, tuning_text(found));
    console.out(text + fmt::format("{}: for cuvil compile --tuning\n", output.string()));
    return Done;
}

} // namespace

Action add_tune(CLI::App& verb) {
    auto o = std::make_shared<Options>();
    verb.add_option("model", o->file, "An .onnx or .cuir file")->required()->option_text("MODEL");
    verb.add_option("-o,--output", o->output, "The tuning file (default: MODEL's name with .tuning.json)")
        ->option_text("FILE");
    verb.add_option("-t,--threads", o->threads, "Threads of the runs that are measured (default: 1)")
        ->check(number_from(1, rt::max_threads))
        ->option_text("N");
    add_repeatable(verb, "--size", o->sizes, "An open size of the random inputs, as N=8; repeatable")
        ->option_text("NAME=N");
    verb.add_option("-d,--duration", o->seconds, "Seconds to measure each kernel (default: 1)")
        ->check(number_from(0.0))
        ->option_text("SECONDS");
    o->compile.add_to(verb);
    verb.footer(R"(
Compiles the model once with each kernel that convolutions of 3 x 3 leave a choice of, measures their steps here, and
writes which were the quickest. Such a file is an input of cuvil compile: with it, the same model gives the same module
on every machine. A kernel must be 3 % quicker than the one that cuvil would take, or that one stays. Results may differ
in their last bits from those of a module that was compiled without it.

Examples:
  cuvil tune resnet18.onnx && cuvil compile resnet18.onnx --tuning resnet18.tuning.json
  cuvil tune yolov8n.onnx --threads 2 --duration 5 -o two-threads.json)");
    return [o](Console& console) { return tune(*o, console); };
}

} // namespace cuvil::cli
