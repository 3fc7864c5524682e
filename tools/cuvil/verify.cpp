// cuvil verify: whether a module computes what its model means.
#include "bisect.hpp"
#include "command.hpp"
#include "compile_options.hpp"
#include "interrupt.hpp"
#include "other_side.hpp"
#include "runtime/thread_count.hpp"
#include "session.hpp"
#include "text_of_value.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil::cli {
namespace {

using Json = nlohmann::ordered_json;
using evaluation::Difference;
using evaluation::Tolerance;

struct Options {
    std::string file, against, expected, model;
    std::vector<std::string> positional, inputs, sizes;
    std::optional<double> absolute, relative;
    std::optional<uint64_t> ulp;
    uint64_t seed = 0;
    int threads = 0;
    bool bisect = false, json = false;
    CompileArguments compile{"native"};

    // The file of the model that the other side reads.
    const std::string& source() const { return model.empty() ? file : model; }

    Tolerance tolerance(const Tensor& expected) const {
        if (!is_floating(expected.dtype)) return {};
        const bool is_given = absolute || relative || ulp;
        const Tolerance usual = is_given ? Tolerance{} : evaluation::default_tolerance(expected);
        return {absolute.value_or(usual.absolute), relative.value_or(usual.relative), ulp};
    }
};

struct Row {
    std::string name;
    Tensor actual;
    Difference difference;
    Tolerance tolerance;
};

// ---- Telling

std::string ulp_text(const Tensor& tensor, uint64_t ulp) {
    if (!is_floating(tensor.dtype)) return "-";
    return ulp == std::numeric_limits<uint64_t>::max() ? "NaN" : fmt::format("{}", ulp);
}

std::string verdict(const Row& row) {
    const Difference& d = row.difference;
    if (!d.mismatch.empty()) return "DIFFERS: " + d.mismatch;
    if (d.outside > 0) return fmt::format("DIFFERS: {} of {} elements", d.outside, d.count);
    return d.unequal == 0 ? "equal" : "within tolerance";
}

std::string worst_text(const Row& row) {
    return row.difference.at ? evaluation::index_text(*row.difference.at, row.actual.shape) : "-";
}

std::string rows_text(const std::vector<Row>& rows) {
    size_t name_width = 6, type_width = 4, at_width = 5;
    for (const Row& row : rows) {
        name_width = std::max(name_width, row.name.size());
        type_width = std::max(type_width, evaluation::type_text(row.actual).size());
        at_width = std::max(at_width, worst_text(row).size());
    }
    std::string text = fmt::format("{:<{}}  {:<{}}  {:>9} {:>9} {:>10} {:>9}  {:<{}}\n", "output", name_width, "type",
                                   type_width, "max abs", "max rel", "max ulp", "mean abs", "worst", at_width);
    for (const Row& row : rows) {
        const Difference& d = row.difference;
        text += fmt::format("{:<{}}  {:<{}}  {:>9} {:>9} {:>10} {:>9}  {:<{}}  {}\n", row.name, name_width,
                            evaluation::type_text(row.actual), type_width, difference_text(d.largest_absolute),
                            difference_text(d.largest_relative), ulp_text(row.actual, d.largest_ulp),
                            difference_text(d.mean_absolute), worst_text(row), at_width, verdict(row));
        if (d.outside > 0)
            text +=
                fmt::format("{:<{}}  at {}: {}, expected {}\n", "", name_width, worst_text(row), d.actual, d.expected);
    }
    return text;
}

std::string probe_text(const Probe& probe) {
    const Difference& d = probe.difference;
    if (!d.mismatch.empty()) return fmt::format("{}: {}", probe.name, d.mismatch);
    if (d.unequal == 0) return fmt::format("{}: {}, equal", probe.name, probe.type);
    return fmt::format("{}: {}, max abs {}, max rel {}, {} of {} elements outside of the tolerance; worst: {}, "
                       "expected {}",
                       probe.name, probe.type, difference_text(d.largest_absolute), difference_text(d.largest_relative),
                       d.outside, d.count, d.actual, d.expected);
}

std::string culprit_text(const std::optional<Culprit>& found, const std::string& against) {
    if (!found)
        return "bisect: compiled alone, the values that the output is made from agree; only the whole model differs\n";
    std::string text =
        fmt::format("\nfirst node that differs: \"{}\" ({}) in {}\n", found->node, found->op, found->file);
    for (const Probe& input : found->inputs) text += fmt::format("  input   {}\n", probe_text(input));
    if (found->inputs.empty()) text += "  its inputs are those of the model or constants\n";
    text += fmt::format("  result  {}\n", probe_text(found->result));
    if (found->has_regions) text += "  the search does not go inside of it\n";
    if (const auto& g = found->growth)
        text +=
            fmt::format("  its inputs are nearly as far off, so rounding may have added up; most is added by \"{}\" "
                        "({}): from {} to {} of the largest element\n",
                        g->node, g->op, difference_text(g->before), difference_text(g->after));
    return text +
           fmt::format("{} parts of the model were compiled and compared with {}\n", found->compilations, against);
}

Json json_of(const Difference& d) {
    if (!d.mismatch.empty()) return {{"passes", false}, {"mismatch", d.mismatch}};
    Json json = {{"passes", d.passes()},
                 {"elements", d.count},
                 {"unequal", d.unequal},
                 {"outside", d.outside},
                 {"max_absolute", d.largest_absolute},
                 {"max_relative", d.largest_relative},
                 {"max_ulp", d.largest_ulp},
                 {"mean_absolute", d.mean_absolute}};
    if (d.at) json["worst"] = {{"at", *d.at}, {"actual", d.actual}, {"expected", d.expected}};
    return json;
}

Json json_of(const Probe& probe) {
    Json json = {{"name", probe.name}, {"type", probe.type}};
    json.update(json_of(probe.difference));
    return json;
}

Json json_of(const std::optional<Culprit>& found) {
    if (!found) return nullptr;
    Json inputs = Json::array();
    for (const Probe& input : found->inputs) inputs.push_back(json_of(input));
    Json growth = nullptr;
    if (const auto& g = found->growth)
        growth = {{"node", g->node}, {"op", g->op}, {"before", g->before}, {"after", g->after}};
    return {{"node", found->node},
            {"file", found->file},
            {"op", found->op},
            {"has_regions", found->has_regions},
            {"result", json_of(found->result)},
            {"inputs", std::move(inputs)},
            {"growth", std::move(growth)},
            {"compilations", found->compilations}};
}

// ---- The verb

void check_options(const Options& o) {
    if (!o.against.empty()) choice<int>("--against", o.against, {{"reference", 0}, {"onnxruntime", 0}, {"torch", 0}});
    if (o.against == "torch")
        throw UsageError("--against torch: PyTorch cannot run the files that Cuvil reads. Save what it computes, as "
                         "cuvil verify --help shows, and give it as --expected FILE.npz");
    if (!o.expected.empty() && (!o.against.empty() || !o.model.empty()))
        throw UsageError("--expected takes the place of --against and --model");
    if (!o.model.empty() && is_model(o.file))
        throw UsageError("--model is the model of a module: leave it out, or give a .cuvil file");
    if (!o.expected.empty() && o.bisect)
        throw UsageError("--bisect needs a side that knows the values inside of the model: use --against");
    if (o.bisect && !is_model(o.file)) throw UsageError("--bisect compiles parts of the model: give the model itself");
    if (o.expected.empty() && !is_model(o.source()))
        throw UsageError(fmt::format("what should {} compute? Give its model as --model FILE.onnx, or arrays as "
                                     "--expected FILE.npz",
                                     o.file));
    if (o.against == "onnxruntime" && !o.source().ends_with(".onnx"))
        throw UsageError(fmt::format("--against onnxruntime needs a .onnx file, not {}", o.source()));
}

OtherSide other_side(const Options& o, const CompileOptions& options, const Session& session, const Feeds& feeds,
                     Console& console) {
    if (!o.expected.empty()) return expected(o.expected, session);
    if (o.against == "onnxruntime") return onnxruntime(o.source(), options, session, feeds, o.bisect);
    return reference(o.source(), options, session, feeds, o.bisect, console);
}

std::vector<Row> compare_outputs(const Options& o, const Session& session, const std::vector<cuvil_value>& values,
                                 const OtherSide& other) {
    std::vector<Row> rows;
    for (size_t i = 0; i < values.size(); i++) {
        Row row{session.outputs()[i].name, tensor_of(values[i]), {}, o.tolerance(other.outputs.at(i))};
        row.difference = evaluation::compare(row.actual, other.outputs[i], row.tolerance);
        rows.push_back(std::move(row));
    }
    return rows;
}

void print_json(const Options& o, const Session& session, const Json& inputs, const OtherSide& other,
                const std::vector<Row>& rows, const std::optional<std::optional<Culprit>>& found, Console& console) {
    Json outputs = Json::array();
    for (const Row& row : rows) {
        Json entry = {{"name", row.name}, {"type", evaluation::type_text(row.actual)}};
        entry.update(json_of(row.difference));
        entry["tolerance"] = {{"absolute", row.tolerance.absolute}, {"relative", row.tolerance.relative}};
        if (row.tolerance.ulp) entry["tolerance"]["ulp"] = *row.tolerance.ulp;
        outputs.push_back(std::move(entry));
    }
    const bool passes = std::ranges::all_of(rows, [](const Row& row) { return row.difference.passes(); });
    Json all = {{"file", o.file},   {"level", session.level()},      {"against", other.name},
                {"inputs", inputs}, {"outputs", std::move(outputs)}, {"passes", passes}};
    if (found) all["bisect"] = json_of(*found);
    console.out(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

int verify(const Options& o, Console& console) {
    check_options(o);
    const Sizes sizes = parse_symbols(o.sizes);
    CompileOptions options = o.compile.options(console);
    const std::string module = is_model(o.file) ? compiled(o.file, options, console) : "";
    Session session(o.file, module, o.threads);
    const Feeds feeds = take_feeds(session.inputs(), o.inputs, o.positional, "random", {.sizes = sizes}, o.seed);
    options.progress = {};
    options.dump = {};
    const OtherSide other = other_side(o, options, session, feeds, console);
    const std::vector<Row> rows = compare_outputs(o, session, session.run(feeds.values), other);
    const auto wrong = std::ranges::find_if(rows, [](const Row& row) { return !row.difference.passes(); });

    std::string heading = fmt::format("{}: level {}", o.file, session.level());
    Json inputs = Json::object();
    for (size_t i = 0; i < feeds.values.size(); i++) {
        if (feeds.values[i].tag == CUVIL_NONE) continue;
        inputs[session.inputs()[i].name] = type_text(feeds.values[i]);
        heading += fmt::format(", {}: {}", session.inputs()[i].name, type_text(feeds.values[i]));
    }
    if (!o.json && !console.is_quiet())
        console.out(fmt::format("{}\nagainst {}\n{}", heading, other.name, rows_text(rows)));
    std::optional<std::optional<Culprit>> found;
    if (o.bisect && wrong != rows.end()) {
        const std::function<Tolerance(const Tensor&)> tolerance = [&](const Tensor& t) { return o.tolerance(t); };
        found = bisect(o.file, options, feeds, o.threads, other, static_cast<size_t>(wrong - rows.begin()), tolerance,
                       console);
        if (!o.json) console.out(culprit_text(*found, other.name));
    }
    if (o.json) print_json(o, session, inputs, other, rows, found, console);
    return wrong == rows.end() ? Done : RefusedInput;
}

} // namespace

Action add_verify(CLI::App& verb) {
    auto o = std::make_shared<Options>();
    verb.add_option("file", o->file, "A model (.onnx, .cuir), or a module (.cuvil) with --model or --expected")
        ->required()
        ->option_text("FILE");
    verb.add_option("values", o->positional, "Inputs in their order, as for cuvil run")->option_text("[VALUE]...");
    add_repeatable(verb, "-i,--input", o->inputs, "An input, as for cuvil run; repeatable (default: random)")
        ->option_text("NAME=VALUE");
    add_repeatable(verb, "--size", o->sizes, "An open size of random inputs, as N=8; repeatable")
        ->option_text("NAME=N");
    verb.add_option("--seed", o->seed, "Other random inputs for each number (default: 0)")
        ->check(number_from(uint64_t{0}))
        ->option_text("N");
    verb.add_option("--against", o->against,
                    "The other side: reference (default), each node by itself in Cuvil's interpreter, or onnxruntime")
        ->option_text("SIDE");
    verb.add_option("--expected", o->expected, "The other side: outputs by name, from a .npz or .npy file")
        ->option_text("FILE");
    verb.add_option("--model", o->model, "The model of a .cuvil module, for the other side")->option_text("FILE");
    verb.add_option("--rtol", o->relative, "How far an element may be off, as a part of what is expected")
        ->check(number_from(0.0))
        ->option_text("X");
    verb.add_option("--atol", o->absolute, "What it may be off besides")->check(number_from(0.0))->option_text("X");
    verb.add_option("--max-ulp", o->ulp, "Or else: how many representable numbers away it may be")
        ->check(number_from(uint64_t{0}))
        ->option_text("N");
    verb.add_flag("--bisect", o->bisect, "Where an output differs, find the first node that does");
    verb.add_option("-t,--threads", o->threads, "Threads of a run (default: as many as the process may use)")
        ->check(number_from(1, rt::max_threads))
        ->option_text("N");
    verb.add_flag("--json", o->json, "As JSON");
    o->compile.add_to(verb);
    verb.footer(R"(
Compiles, runs, and compares each output with what the other side says for the same inputs. Exit status 0: all are
within the tolerance; 1: one differs.

Without --rtol, --atol and --max-ulp an f32 may be off by 1e-3 of the expected number and 1e-5 of the largest in its
tensor, an f64 by 1e-9 and 1e-12: sums in another order lose digits of their largest terms. Given one of them, those not
given are 0. Integers, bools and strings have to be equal, NaN meets NaN, an infinity the same one.

--bisect compiles parts of the model that return a value inside of it, about log2(nodes) of them, and tells the first
node whose inputs agree and whose result does not. An If or Loop counts as one node.

PyTorch has no way to run an .onnx file. Save what the original computes, and verify with that:
  np.savez("inputs.npz", x=x.numpy()); np.savez("expected.npz", y=model(x).detach().numpy())

Examples:
  cuvil verify resnet18.onnx
  cuvil verify bert.onnx --size batch=2 --size tokens=16 --against onnxruntime --bisect
  cuvil verify model.onnx inputs.npz --expected expected.npz --rtol 1e-4 --atol 1e-6
  cuvil verify model.cuvil --model model.onnx --input x=@x.npy
  cuvil verify model.onnx --json | jq .outputs)");
    return [o](Console& console) { return verify(*o, console); };
}

} // namespace cuvil::cli
