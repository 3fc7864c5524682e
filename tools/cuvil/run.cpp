// cuvil run: a module on arrays from files or the command line.
#include "command.hpp"
#include "latency.hpp"
#include "npy.hpp"
#include "npz.hpp"
#include "runtime/thread_count.hpp"
#include "session.hpp"
#include "support/nearest.hpp"
#include "text_of_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace cuvil::cli {
namespace {

struct Options {
    std::string file;
    std::vector<std::string> positional;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::vector<std::string> sizes;
    int threads = 0;
    int repeat = 0;
};

struct Sink {
    size_t output;
    std::string place; // "@y.npy", "@all.npz", "-"; empty: shown in short
};

bool is_archive(const std::string& place) { return place.ends_with(".npz"); }

// A file's suffix says what is in it; "-" is no file.
void expect_format(const std::string& place) {
    const std::string suffix = place.starts_with('@') ? std::filesystem::path(place).extension().string() : "";
    if (!suffix.empty() && suffix != ".npy" && suffix != ".npz")
        throw UsageError(
            fmt::format("--output: {} would hold no {}: name a .npy or .npz file", place.substr(1), suffix));
}

std::vector<Sink> take_sinks(const Options& o, const std::vector<Port>& outputs) {
    std::vector<Sink> sinks;
    const std::vector<std::string> names = names_of(outputs);
    const auto give_all = [&](const std::string& place) {
        for (size_t i = 0; i < outputs.size(); i++) sinks.push_back({i, place});
    };
    for (const std::string& text : o.outputs) {
        std::string rest;
        if (const std::optional<size_t> i = named_port(text, outputs, "output", rest)) {
            rest = with_at(rest);
            if (rest != "-" && (!rest.starts_with('@') || rest.size() == 1))
                throw UsageError(
                    fmt::format("--output: '{}' is not of the form NAME=@FILE.npy, NAME=@FILE.npz or NAME=-", text));
            sinks.push_back({*i, rest});
            continue;
        }
        const auto name = std::find(names.begin(), names.end(), text);
        if (name != names.end()) {
            sinks.push_back({static_cast<size_t>(name - names.begin()), "-"});
            continue;
        }
        expect_no_name(text, outputs, "output");
        if (text == "-" || is_archive(with_at(text))) {
            give_all(with_at(text));
        } else if (outputs.size() == 1 && with_at(text).starts_with('@')) {
            sinks.push_back({0, with_at(text)});
        } else {
            throw UsageError(
                fmt::format("no output '{}'{}; the outputs are {}", text, did_you_mean(text, names), list_of(outputs)));
        }
    }
    for (const Sink& sink : sinks) expect_format(sink.place);
    if (sinks.empty()) give_all("");
    return sinks;
}

// A file to be written: the outputs in it by name. A .npy file has one.
using Arrays = std::vector<std::pair<std::string, cuvil_value>>;

void write(const std::string& path, const Arrays& arrays) {
    try {
        if (is_archive(path)) return write_npz(path, arrays);
        if (arrays.size() > 1) throw UsageError(fmt::format("--output: {} holds one array only; write a .npz", path));
        write_npy(path, arrays[0].second);
    } catch (const NpyError& error) {
        throw InputError(fmt::format("cannot write {}: {}", path, error.what()));
    } catch (const std::system_error& error) {
        throw InputError(fmt::format("cannot write {}: {}", path, error.code().message()));
    }
}

void give(const std::vector<Sink>& sinks, const Session& session, const std::vector<cuvil_value>& values,
          Console& console) {
    std::vector<std::pair<std::string, Arrays>> files;
    std::string said;
    for (const Sink& sink : sinks) {
        const std::string& name = session.outputs()[sink.output].name;
        const cuvil_value& value = values[sink.output];
        if (sink.place.starts_with('@')) {
            const std::string path = sink.place.substr(1);
            auto file = std::find_if(files.begin(), files.end(), [&](const auto& f) { return f.first == path; });
            if (file == files.end()) file = files.insert(file, {path, {}});
            file->second.emplace_back(name, value);
            said += fmt::format("{}: {} -> {}\n", name, type_text(value), path);
        } else if (sink.place == "-") {
            console.out(elements_text(value, 0) + "\n");
        } else if (!console.is_quiet()) {
            console.out(fmt::format("{}: {}\n{}\n", name, type_text(value), elements_text(value, 12)));
        }
    }
    for (const auto& [path, arrays] : files) write(path, arrays);
    if (!console.is_quiet() && !said.empty()) console.out(said);
}

std::string latency_text(const Latencies& l) {
    return fmt::format("latency over {} runs: median {}, least {}, 90 % {}, 99 % {}, most {}\n", l.count(),
                       duration_text(l.percentile(50)), duration_text(l.least()), duration_text(l.percentile(90)),
                       duration_text(l.percentile(99)), duration_text(l.percentile(100)));
}

int run(const Options& o, Console& console) {
    const Sizes sizes = parse_symbols(o.sizes);
    Session session(o.file, is_model(o.file) ? compiled_for_here(o.file, console) : "", o.threads);
    const std::vector<Sink> sinks = take_sinks(o, session.outputs());
    const Feeds feeds = take_feeds(session.inputs(), o.inputs, o.positional, {}, {.sizes = sizes});
    if (console.is_verbose()) console.err(fmt::format("{}: level {}\n", o.file, session.level()));
    give(sinks, session, session.run(feeds.values), console);
    if (o.repeat > 0) {
        Latencies latencies;
        measure({o.repeat, 0}, [&] { session.run(feeds.values); }, latencies);
        console.out(latency_text(latencies));
    }
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
    add_repeatable(verb, "--size", o->sizes, "An open size of filled inputs, as N=8; repeatable")
        ->option_text("NAME=N");
    add_repeatable(
        verb, "-o,--output", o->outputs,
        "Where an output goes: @FILE.npy, @FILE.npz, or - for all elements on stdout; repeatable (default: in "
        "short)")
        ->option_text("NAME=PLACE");
    verb.add_option("-t,--threads", o->threads, "Threads (default: as many as the process may use)")
        ->check(number_from(1, rt::max_threads))
        ->option_text("N");
    verb.add_option("-n,--repeat", o->repeat, "Run N times more and print the latency")
        ->check(number_from(1))
        ->option_text("N");
    verb.footer(R"(
VALUE is @FILE.npy, @FILE.npz (the array of the input's name; @FILE.npz:KEY for another), random:SIZES, zeros:SIZES,
ones:SIZES (SIZES as 1x3x224x224; left out: as declared, with --size for what is open), 1,2,3 or [[1,2],[3,4]].
@FILE.npz alone gives an input for each array in it, and as --output takes all outputs. Random numbers are the same in
every run: -1 to 1 for floating inputs, 0 to 9 for integers. A module with one input also answers to `input`, with one
output to `output`.

Examples:
  cuvil run resnet18.cuvil --input input=@cat.npy --output output=@scores.npy
  cuvil run mlp.cuvil x.npy
  cuvil run bert.cuvil inputs.npz --output results.npz
  cuvil run mlp.cuvil --input x=random:1x64 --output -
  cuvil run bert.cuvil input_ids=zeros attention_mask=ones --size batch=1 --size tokens=16
  cuvil run resnet18.cuvil --input input=random --threads 1 --repeat 100)");
    return [o](Console& console) { return run(*o, console); };
}

} // namespace cuvil::cli
