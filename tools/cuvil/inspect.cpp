// cuvil inspect: what a model or a module holds.
#include "command.hpp"
#include "describe.hpp"
#include "describe_plan.hpp"
#include "output.hpp"

#include <fmt/format.h>

namespace cuvil::cli {
namespace {

struct Options {
    std::string file, graph;
    bool json = false, check = false, ops = false, kernels = false, memory = false;
    std::vector<std::string> sizes;

    bool wants_plan() const { return kernels || memory || !graph.empty(); }
};

void write_graph(const Options& o, const nlohmann::ordered_json& manifest, Console& console) {
    expect_output(o.graph, o.file);
    write_output(o.graph, graph_onnx(manifest));
    if (!console.is_quiet() && !o.json) console.out(fmt::format("{}: the graph of the steps\n", o.graph));
}

// The parts that were asked for.
std::string parts_text(const Options& o, const Description& description) {
    std::string text;
    const auto& json = description.json;
    const auto add = [&](const char* title, const std::string& part) { text += fmt::format("{}\n{}", title, part); };
    if (o.ops && json.contains("ops")) {
        std::string lines;
        for (const auto& op : json.at("ops"))
            lines += fmt::format("  {:>6}  {}{}\n", op.at("count").get<int>(), op.at("name").get<std::string>(),
                                 op.at("supported").get<bool>() ? "" : "  (not supported)");
        add("operators", lines);
    } else if (o.ops) {
        add("operators", ops_text(json.at("manifest")));
    }
    if (!json.contains("manifest")) return text;
    if (o.kernels)
        add("steps: number, time and share of the peak as estimated for one core, kernel, ops, result "
            "with its layout, name",
            kernels_text(json.at("manifest"), json.at("estimates")));
    if (o.memory) add("memory", memory_text(json.at("memory")));
    return text;
}

int inspect(const Options& o, Console& console) {
    if (!o.sizes.empty() && !o.memory && !o.kernels) throw UsageError("--size is for --memory and --kernels");
    const Sizes sizes = parse_symbols(o.sizes);
    Description description = holds_module(o.file) ? describe_module(o.file, o.check) : describe_model(o.file);
    if (description.json.contains("manifest")) {
        const auto& manifest = description.json.at("manifest");
        try {
            if (!o.graph.empty()) write_graph(o, manifest, console);
            if (o.kernels) description.json["estimates"] = estimates_json(manifest, sizes);
            if (o.memory) description.json["memory"] = memory_json(manifest, sizes);
            if (!o.json && (o.ops || o.wants_plan())) description.text = parts_text(o, description);
        } catch (const nlohmann::ordered_json::exception& error) {
            throw InputError(fmt::format("'{}' has a manifest that cannot be read: {}", o.file, error.what()));
        }
    } else if (o.ops) {
        description.text = parts_text(o, description);
    }
    console.out(o.json ? description.json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                       : description.text);
    console.show(description.diagnostics);
    return description.diagnostics.has_errors() ? RefusedInput : Done;
}

} // namespace

Action add_inspect(CLI::App& verb) {
    auto o = std::make_shared<Options>();
    verb.add_option("file", o->file, "A module (.cuvil) or a model (.onnx, .cuir)")->required()->option_text("FILE");
    verb.add_flag("--json", o->json, "As JSON");
    verb.add_flag("--check", o->check, "Hash the weights of a module too, which loading does not");
    verb.add_flag("--ops", o->ops, "Only the operators and how often they occur");
    verb.add_flag("--kernels", o->kernels,
                  "Only the steps: time as estimated, kernel, ops in it, layout of its result");
    verb.add_flag("--memory", o->memory, "Only the memory of a run: the workspace's formula, and the peak for sizes");
    add_repeatable(verb, "--size", o->sizes, "An open size, as N=8, for --memory and --kernels; repeatable")
        ->option_text("NAME=N");
    verb.add_option("--graph", o->graph, "Write the steps as an ONNX graph, which Netron shows")->option_text("FILE");
    verb.footer(R"(
Of a model: inputs, outputs, operators with their counts, whether it can be compiled: it is planned as for compiling, but
no code is made. Of a module: inputs, outputs, levels, sizes, the memory that a run takes, steps. Nothing is run. Exit
status 1: the model cannot be compiled, or the module is damaged.

Examples:
  cuvil inspect model.onnx
  cuvil inspect model.cuvil --check
  cuvil inspect model.cuvil --memory --size N=8
  cuvil inspect model.onnx --kernels --graph steps.onnx
  cuvil inspect model.cuvil --json | jq .manifest.inputs)");
    return [o](Console& console) { return inspect(*o, console); };
}

} // namespace cuvil::cli
