// cuvil run: a module on arrays from files or the command line.
#include "cuvil/compile.hpp"
#include "cuvil/cuvil.h"

#include "command.hpp"
#include "compile_options.hpp"
#include "feeds.hpp"
#include "interrupt.hpp"
#include "support/nearest.hpp"
#include "text_of_value.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <list>

namespace cuvil::cli {
namespace {

struct Options {
    std::string file;
    std::vector<std::string> positional;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    int threads = 0;
    int repeat = 0;
};

// Module and values of one run, given back at the end.
struct Loaded {
    cuvil_module* module = nullptr;
    std::vector<cuvil_value> out;

    Loaded() = default;
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;
    ~Loaded() {
        release();
        if (module) cuvil_unload(module);
    }
    void release() {
        for (cuvil_value& value : out) cuvil_value_release(&value);
    }
};

void check(int32_t status) {
    if (status == CUVIL_ERROR_CANCELLED) throw Cancelled();
    if (status != CUVIL_OK) throw InputError(cuvil_error_message());
}

bool is_model(const std::string& path) {
    const std::string suffix = std::filesystem::path(path).extension();
    return suffix == ".onnx" || suffix == ".cuir";
}

void load(const Options& o, Console& console, Loaded& loaded) {
    if (!is_model(o.file)) return check(cuvil_load(o.file.c_str(), o.threads, &loaded.module));
    CompileOptions options;
    options.target = "native";
    options.cancel = &interrupted();
    options.progress = [&](const Progress& progress) { console.progress(progress); };
    Diagnostics diag;
    const std::string file = bytes(compile({.path = o.file}, options, diag));
    console.end_progress();
    console.show(diag);
    check(cuvil_load_memory(file.data(), file.size(), o.threads, &loaded.module));
}

std::vector<std::string> names_of(const std::vector<Port>& ports) {
    std::vector<std::string> names;
    for (const Port& port : ports) names.push_back(port.name);
    return names;
}

std::string list_of(const std::vector<Port>& ports) {
    std::vector<std::string> texts;
    for (const Port& port : ports) texts.push_back(port.text());
    return fmt::format("{}", fmt::join(texts, ", "));
}

// The port that "NAME=REST" names. Names may hold '=', so the longest that fits is taken; the only port also answers to
// `alias`.
std::optional<size_t> named_port(const std::string& text, const std::vector<Port>& ports, std::string_view alias,
                                 std::string& rest) {
    std::optional<size_t> best;
    for (size_t i = 0; i < ports.size(); i++)
        if (text.starts_with(ports[i].name + "=") && (!best || ports[i].name.size() > ports[*best].name.size()))
            best = i;
    if (!best && ports.size() == 1 && text.starts_with(std::string(alias) + "=")) {
        rest = text.substr(alias.size() + 1);
        return 0;
    }
    if (best) rest = text.substr(ports[*best].name.size() + 1);
    return best;
}

// "x.npy" for "@x.npy" where the meaning is plain.
std::string with_at(const std::string& text) { return text.ends_with(".npy") && text[0] != '@' ? "@" + text : text; }

struct Feeds {
    std::list<Feed> feeds;
    std::vector<cuvil_value> values;
};

void take_feeds(const Options& o, const std::vector<Port>& inputs, Feeds& out) {
    out.values.assign(inputs.size(), cuvil_value{});
    std::vector<std::optional<std::string>> texts(inputs.size());
    const auto give = [&](size_t i, std::string text) {
        if (texts[i]) throw UsageError(fmt::format("input '{}' is given twice", inputs[i].name));
        texts[i] = std::move(text);
    };
    std::vector<std::string> unnamed;
    std::vector<std::string> all = o.inputs;
    all.insert(all.end(), o.positional.begin(), o.positional.end());
    for (const std::string& text : all) {
        std::string rest;
        if (const std::optional<size_t> i = named_port(text, inputs, "input", rest)) {
            give(*i, rest);
            continue;
        }
        const std::string name = text.substr(0, text.find('='));
        if (name != text && !name.starts_with('@') && !name.starts_with(" ["))
            throw UsageError(fmt::format("no input '{}'{}; the inputs are {}", name,
                                         did_you_mean(name, names_of(inputs)), list_of(inputs)));
        unnamed.push_back(text);
    }
    size_t next = 0;
    for (std::string& text : unnamed) {
        if (text.starts_with(" [")) text.erase(0, 1); // see main.cpp
        while (next < inputs.size() && texts[next]) next++;
        if (next == inputs.size()) throw UsageError(fmt::format("too many inputs; the module has {}", list_of(inputs)));
        give(next, std::move(text));
    }
    for (size_t i = 0; i < inputs.size(); i++) {
        if (texts[i]) {
            out.feeds.emplace_back(parse_feed(with_at(*texts[i]), inputs[i]));
            out.values[i] = out.feeds.back().value();
        } else if (!inputs[i].optional) {
            throw UsageError(fmt::format("input {0} is missing; give it as --input {1}=@FILE.npy or {1}=random:SIZES",
                                         inputs[i].text(), inputs[i].name));
        }
    }
}

struct Sink {
    size_t output;
    std::string place; // "@y.npy", "-"; empty: shown in short
};

std::vector<Sink> take_sinks(const Options& o, const std::vector<Port>& outputs) {
    std::vector<Sink> sinks;
    for (const std::string& text : o.outputs) {
        std::string rest;
        if (const std::optional<size_t> i = named_port(text, outputs, "output", rest)) {
            rest = with_at(rest);
            if (rest != "-" && (!rest.starts_with('@') || rest.size() == 1))
                throw UsageError(fmt::format("--output: '{}' is not of the form NAME=@FILE.npy or NAME=-", text));
            sinks.push_back({*i, rest});
            continue;
        }
        const std::vector<std::string> names = names_of(outputs);
        const auto name = std::find(names.begin(), names.end(), text);
        if (text == "-") {
            for (size_t i = 0; i < outputs.size(); i++) sinks.push_back({i, "-"});
        } else if (name != names.end()) {
            sinks.push_back({static_cast<size_t>(name - names.begin()), "-"});
        } else if (outputs.size() == 1 && with_at(text).starts_with('@')) {
            sinks.push_back({0, with_at(text)});
        } else {
            const std::string wrong = text.substr(0, text.find('='));
            throw UsageError(fmt::format("no output '{}'{}; the outputs are {}", wrong, did_you_mean(wrong, names),
                                         list_of(outputs)));
        }
    }
    if (sinks.empty())
        for (size_t i = 0; i < outputs.size(); i++) sinks.push_back({i, ""});
    return sinks;
}

void give(const Sink& sink, const Port& port, const cuvil_value& value, Console& console) {
    if (sink.place.starts_with('@')) {
        const std::string path = sink.place.substr(1);
        try {
            write_npy(path, value);
        } catch (const NpyError& error) {
            throw InputError(fmt::format("output '{}': {}", port.name, error.what()));
        } catch (const std::system_error& error) {
            throw InputError(fmt::format("cannot write {}: {}", path, error.code().message()));
        }
        if (!console.is_quiet()) console.out(fmt::format("{}: {} -> {}\n", port.name, type_text(value), path));
        return;
    }
    if (sink.place == "-") return console.out(elements_text(value, 0) + "\n");
    if (!console.is_quiet())
        console.out(fmt::format("{}: {}\n{}\n", port.name, type_text(value), elements_text(value, 12)));
}

void run_once(Loaded& loaded, const Feeds& feeds) {
    loaded.release();
    const EndsAtOnce ends;
    if (interrupted()) throw Cancelled();
    check(cuvil_run(loaded.module, feeds.values.data(), loaded.out.data()));
}

std::string latency_text(std::vector<double> seconds) {
    std::sort(seconds.begin(), seconds.end());
    const auto quantile = [&](double q) {
        return duration_text(seconds[static_cast<size_t>(q * static_cast<double>(seconds.size() - 1))]);
    };
    return fmt::format("latency over {} runs: median {}, least {}, 90 % {}, 99 % {}, most {}\n", seconds.size(),
                       quantile(0.5), quantile(0), quantile(0.9), quantile(0.99), quantile(1));
}

void measure(const Options& o, Loaded& loaded, const Feeds& feeds, Console& console) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> seconds;
    for (int i = 0; i < o.repeat; i++) {
        const Clock::time_point start = Clock::now();
        run_once(loaded, feeds);
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    console.out(latency_text(std::move(seconds)));
}

int run(const Options& o, Console& console) {
    if (o.threads < 0 || o.repeat < 0) throw UsageError("--threads and --repeat take positive numbers");
    Loaded loaded;
    load(o, console, loaded);
    const nlohmann::json manifest = nlohmann::json::parse(cuvil_manifest(loaded.module));
    const std::vector<Port> inputs = ports(manifest.at("inputs")), outputs = ports(manifest.at("outputs"));
    const std::vector<Sink> sinks = take_sinks(o, outputs);
    Feeds feeds;
    take_feeds(o, inputs, feeds);
    loaded.out.assign(outputs.size(), cuvil_value{});
    if (console.is_verbose()) console.err(fmt::format("{}: level {}\n", o.file, cuvil_level_name(loaded.module)));
    run_once(loaded, feeds);
    for (const Sink& sink : sinks) give(sink, outputs[sink.output], loaded.out[sink.output], console);
    if (o.repeat > 0) measure(o, loaded, feeds, console);
    return Done;
}

} // namespace

Action add_run(CLI::App& verb) {
    auto o = std::make_shared<Options>();
    verb.add_option("file", o->file, "A .cuvil module; a model is compiled for this run")
        ->required()
        ->option_text("FILE");
    verb.add_option("values", o->positional, "Inputs in their order, as for --input")->option_text("[VALUE]...");
    add_repeatable(verb, "-i,--input", o->inputs, "An input: a file, a fill with its shape, or values; repeatable")
        ->option_text("NAME=VALUE");
    add_repeatable(verb, "-o,--output", o->outputs,
                   "Where an output goes: @FILE.npy, or - for all elements on stdout; repeatable (default: in short)")
        ->option_text("NAME=PLACE");
    verb.add_option("-t,--threads", o->threads, "Threads (default: as many as the process may use)")->option_text("N");
    verb.add_option("-n,--repeat", o->repeat, "Run N times more and print the latency")->option_text("N");
    verb.footer(R"(
VALUE is @FILE.npy, random:SIZES, zeros:SIZES, ones:SIZES (SIZES as 1x3x224x224; left out: as declared), 1,2,3 or
[[1,2],[3,4]]. Random numbers are the same in every run: -1 to 1 for floating inputs, 0 to 9 for integers. A module with
one input also answers to `input`, with one output to `output`.

Examples:
  cuvil run resnet18.cuvil --input input=@cat.npy --output output=@scores.npy
  cuvil run mlp.cuvil x.npy
  cuvil run mlp.cuvil --input x=random:1x64 --output -
  cuvil run resnet18.cuvil --input input=random --threads 1 --repeat 100)");
    return [o](Console& console) { return run(*o, console); };
}

} // namespace cuvil::cli
