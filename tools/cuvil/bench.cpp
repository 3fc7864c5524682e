// cuvil bench: how long a run takes.
#include "command.hpp"
#include "compile_options.hpp"
#include "latency.hpp"
#include "layers.hpp"
#include "peer.hpp"
#include "runtime/thread_count.hpp"
#include "session.hpp"
#include "text_of_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace cuvil::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string file;
    std::vector<std::string> inputs, shapes, sizes;
    std::vector<int> threads;
    std::vector<double> percentiles = {50, 90, 99, 99.9};
    int iterations = 0, warmup = 10;
    double seconds = 3;
    std::string compare;
    bool layers = false, json = false;
};

// Who ran, and how long it took.
struct Row {
    std::string who;
    int threads;
    Latencies latencies;
};

// ---- Measuring

// The machine changes while a benchmark runs, so two that are compared take turns.
constexpr int turns = 5;

Amount share(const Options& o, int parts) {
    return {o.iterations == 0 ? 0 : (o.iterations + parts - 1) / parts, o.seconds / parts};
}

void measure_threads(const Options& o, Session& session, const Feeds& feeds, int threads, std::vector<Row>& rows) {
    const auto run = [&] { session.run(feeds.values); };
    Row own{"cuvil", threads, {}};
    if (o.warmup > 0) {
        Latencies ignored;
        measure({o.warmup, 0}, run, ignored);
    }
    if (o.compare.empty()) {
        measure(share(o, 1), run, own.latencies);
        rows.push_back(std::move(own));
        return;
    }
    Peer peer(o.file, session.inputs(), feeds, threads);
    Row other{peer.name(), threads, {}};
    if (o.warmup > 0) {
        Latencies ignored;
        peer.measure({o.warmup, 0}, ignored);
    }
    for (int turn = 0; turn < turns; turn++) {
        measure(share(o, turns), run, own.latencies);
        peer.measure(share(o, turns), other.latencies);
    }
    rows.push_back(std::move(own));
    rows.push_back(std::move(other));
}

// ---- Telling

std::string percentile_name(double percent) { return fmt::format("p{:g}", percent); }

std::string rows_text(const Options& o, const std::vector<Row>& rows) {
    size_t width = 0;
    for (const Row& row : rows) width = std::max(width, row.who.size());
    std::string text = fmt::format("{:<{}}  threads    runs  {:>9}", "", width, "min");
    for (const double percent : o.percentiles) text += fmt::format(" {:>9}", percentile_name(percent));
    text += fmt::format(" {:>9} {:>9}\n", "mean", "runs/s");
    for (const Row& row : rows) {
        const Latencies& l = row.latencies;
        text +=
            fmt::format("{:<{}}  {:>7} {:>7}  {:>9}", row.who, width, row.threads, l.count(), duration_text(l.least()));
        for (const double percent : o.percentiles) text += fmt::format(" {:>9}", duration_text(l.percentile(percent)));
        text += fmt::format(" {:>9} {:>9.1f}\n", duration_text(l.mean()), 1 / l.mean());
    }
    return text;
}

// Rows of Cuvil's and the peer's alternate.
std::string ratios_text(const std::vector<Row>& rows) {
    std::string text;
    for (size_t i = 0; i + 1 < rows.size(); i += 2) {
        const double ratio = rows[i + 1].latencies.percentile(50) / rows[i].latencies.percentile(50);
        text += fmt::format("{} thread{}: {} takes {:.2f} times as long as cuvil (medians)\n", rows[i].threads,
                            rows[i].threads == 1 ? "" : "s", rows[i + 1].who, ratio);
    }
    return text;
}

std::string layers_text(std::vector<Layer> layers, int threads) {
    std::ranges::stable_sort(layers, std::greater(), [](const Layer& l) { return l.latencies.percentile(50); });
    double sum = 0;
    size_t kernel_width = 6;
    for (const Layer& layer : layers) {
        sum += layer.latencies.percentile(50);
        kernel_width = std::max(kernel_width, layer.kernel.size());
    }
    std::string text = fmt::format("\nsteps, {} thread{}: {} in all, medians, slowest first\n", threads,
                                   threads == 1 ? "" : "s", duration_text(sum));
    for (const Layer& layer : layers) {
        const double seconds = layer.latencies.percentile(50);
        text += fmt::format("{:>5}  {:>9}  {:>5.1f} %  {:<{}}  {}\n", layer.number, duration_text(seconds),
                            sum > 0 ? 100 * seconds / sum : 0, layer.kernel, kernel_width, layer.name);
    }
    return text;
}

Json as_json(const Options& o, const Latencies& latencies) {
    Json seconds = {{"min", latencies.least()}, {"mean", latencies.mean()}};
    for (const double percent : o.percentiles) seconds[percentile_name(percent)] = latencies.percentile(percent);
    return {{"runs", latencies.count()}, {"seconds", std::move(seconds)}, {"runs_per_second", 1 / latencies.mean()}};
}

Json row_json(const Options& o, const Row& row) {
    Json entry = {{"who", row.who}, {"threads", row.threads}};
    entry.update(as_json(o, row.latencies));
    return entry;
}

Json layer_json(const Options& o, const Layer& layer) {
    Json entry = {{"number", layer.number}, {"name", layer.name}, {"kernel", layer.kernel}, {"ops", layer.ops}};
    entry.update(as_json(o, layer.latencies));
    return entry;
}

// ---- The verb

void check_options(const Options& o) {
    if (o.compare.empty()) return;
    choice<int>("--compare", o.compare, {{"onnxruntime", 0}});
    if (!o.file.ends_with(".onnx"))
        throw UsageError(fmt::format("--compare needs the model: give the .onnx file instead of {}", o.file));
}

int bench(const Options& o, Console& console) {
    check_options(o);
    std::vector<std::string> named = o.inputs;
    for (const std::string& shape : o.shapes) {
        const size_t colon = shape.rfind(':');
        parse_input_shape(shape, "--shape");
        named.push_back(fmt::format("{}=random{}", shape.substr(0, colon), shape.substr(colon)));
    }
    const Sizes sizes = parse_symbols(o.sizes);
    const std::string compiled = is_model(o.file) ? compiled_for_here(o.file, console) : "";
    const std::vector<int> counts = o.threads.empty() ? std::vector{rt::default_thread_count()} : o.threads;

    std::vector<Row> rows;
    Json layers = Json::array(), inputs = Json::object();
    std::string heading, layers_page, level;
    for (const int threads : counts) {
        Session session(o.file, compiled, threads);
        const Feeds feeds = take_feeds(session.inputs(), named, {}, "random", {.sizes = sizes});
        if (level.empty()) {
            level = session.level();
            heading = fmt::format("{}: level {}", o.file, level);
            for (size_t i = 0; i < feeds.values.size(); i++) {
                if (feeds.values[i].tag == CUVIL_NONE) continue;
                heading += fmt::format(", {}: {}", session.inputs()[i].name, type_text(feeds.values[i]));
                inputs[session.inputs()[i].name] = type_text(feeds.values[i]);
            }
        }
        measure_threads(o, session, feeds, threads, rows);
        if (!o.layers) continue;
        std::vector<Layer> measured = layers_of(session.manifest());
        measure_layers(share(o, 1), session, feeds, measured);
        layers_page += layers_text(measured, threads);
        Json steps = Json::array();
        for (const Layer& layer : measured) steps.push_back(layer_json(o, layer));
        layers.push_back({{"threads", threads}, {"steps", std::move(steps)}});
    }

    if (!o.json) {
        console.out(heading + "\n" + rows_text(o, rows) + (o.compare.empty() ? "" : ratios_text(rows)) + layers_page);
        return Done;
    }
    Json results = Json::array();
    for (const Row& row : rows) results.push_back(row_json(o, row));
    Json all = {{"file", o.file}, {"level", level}, {"inputs", inputs}, {"results", std::move(results)}};
    if (o.layers) all["layers"] = std::move(layers);
    console.out(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return Done;
}

} // namespace

Action add_bench(CLI::App& verb) {
    auto o = std::make_shared<Options>();
    verb.add_option("file", o->file, "A .cuvil module; a model is compiled for this processor")
        ->required()
        ->option_text("FILE");
    add_repeatable(verb, "-i,--input", o->inputs, "An input, as for cuvil run; repeatable (default: random)")
        ->option_text("NAME=VALUE");
    add_repeatable(verb, "--size", o->sizes, "An open size of random inputs, as N=8; repeatable")
        ->option_text("NAME=N");
    add_repeatable(verb, "--shape", o->shapes, "All sizes of a random input, as x:1x3x224x224; repeatable")
        ->option_text("NAME:SIZES");
    verb.add_option("-t,--threads", o->threads, "Numbers of threads, as 1,2 (default: as many as the process may use)")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(number_from(1, rt::max_threads))
        ->option_text("N,...");
    auto* iterations =
        verb.add_option("-n,--iterations", o->iterations, "Runs to measure")->check(number_from(1))->option_text("N");
    verb.add_option("-d,--duration", o->seconds, "Seconds to measure (default: 3)")
        ->check(number_from(0.0))
        ->option_text("SECONDS")
        ->excludes(iterations);
    verb.add_option("--warmup", o->warmup, "Runs before (default: 10)")->check(number_from(0))->option_text("N");
    verb.add_option("--percentiles", o->percentiles, "Percentiles to print (default: 50,90,99,99.9)")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(number_from(0.0, 100.0))
        ->option_text("P,...");
    verb.add_option("--compare", o->compare, "onnxruntime: run the model there too, turn by turn")->option_text("PEER");
    verb.add_flag("--layers", o->layers, "The time of each step and its share, too, slowest first");
    verb.add_flag("--json", o->json, "As JSON");
    verb.footer(R"(
Times are those of whole runs, one after the other, with outputs allocated by the loader. --compare asks Python for
onnxruntime: $CUVIL_PYTHON, or the python3 beside this program or in $PATH.

Examples:
  cuvil bench resnet18.cuvil --threads 1,2
  cuvil bench bert.cuvil --size batch=1 --size tokens=128 --iterations 200
  cuvil bench resnet18.onnx --compare onnxruntime --threads 1
  cuvil bench resnet18.cuvil --layers
  cuvil bench resnet18.cuvil --json | jq '.results[0].seconds.p99')");
    return [o](Console& console) { return bench(*o, console); };
}

} // namespace cuvil::cli
