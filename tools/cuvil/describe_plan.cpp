#include "describe_plan.hpp"

#include "console.hpp"
#include "plan/cost.hpp"
#include "runtime/dtypes.hpp"
#include "src/reproducer.hpp"
#include "src/stages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

namespace cuvil::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string joined(const Json& list) {
    std::string text;
    for (const Json& item : list) text += (text.empty() ? "" : " ") + item.get<std::string>();
    return text;
}

// Of an input or output.
std::optional<int64_t> bytes_of(const Json& port, const Sizes& sizes) {
    if (port.at("kind") != "tensor" || !port.at("shape").is_array()) return std::nullopt;
    int64_t bytes = rt::dtype_of(port.at("dtype").get<std::string>()).bits / 8;
    for (const Json& size : port.at("shape")) {
        const auto value = value_of(size.is_string() ? size.get<std::string>() : size.dump(), sizes);
        if (!value || __builtin_mul_overflow(bytes, *value, &bytes)) return std::nullopt;
    }
    return bytes;
}

Json number_or_null(const std::optional<int64_t>& value) { return value ? Json(*value) : Json(); }

// Nothing where a size is not given.
std::optional<Estimate> estimate_of(const Json& step, const Sizes& sizes) {
    if (!step.contains("work")) return std::nullopt; // of a module from an older compiler
    const Json& formulas = step.at("work");
    Work work;
    for (const auto& [name, member] : work_members) {
        if (!formulas.contains(name)) continue;
        const std::optional<int64_t> value = value_of(formulas.at(name).get<std::string>(), sizes);
        if (!value) return std::nullopt;
        work.*member = Dim(*value);
    }
    return estimate(work);
}

std::string estimate_text(const Json& estimate) {
    if (estimate.at("seconds").is_null()) return fmt::format("{:>9}  {:>5}  ", "?", "");
    return fmt::format("{:>9}  {:>3.0f} %  ", duration_text(estimate.at("seconds").get<double>()),
                       100 * estimate.at("share_of_peak").get<double>());
}

std::string bytes_text(const Json& bytes) { return bytes.is_null() ? "?" : size_text(bytes.get<uint64_t>()); }

} // namespace

Json planned_manifest(Program program, const std::filesystem::path& model, Diagnostics& diag) {
    return reproducible({.path = model}, {}, [&](const CompileOptions& options) {
        optimize(program, options, diag);
        tell(options, 3, "plan");
        return Json::parse(manifest_of(lower(std::move(program), levels_of(options), options), options));
    });
}

std::string ops_text(const Json& manifest) {
    std::map<std::string, int> counts;
    for (const Json& step : manifest.at("steps"))
        for (const Json& op : step.at("ops")) counts[op.get<std::string>()]++;
    std::vector<std::pair<std::string, int>> ops(counts.begin(), counts.end());
    std::sort(ops.begin(), ops.end(),
              [](const auto& a, const auto& b) { return std::tie(b.second, a.first) < std::tie(a.second, b.first); });
    std::string text;
    for (const auto& [op, count] : ops) text += fmt::format("  {:>6}  {}\n", count, op);
    return text;
}

std::string kernels_text(const Json& manifest, const Json& estimates) {
    struct Line {
        std::string number, estimate, kernel, ops, writes, name;
    };
    std::vector<Line> lines;
    size_t kernel_width = 0, ops_width = 0, writes_width = 0;
    for (const Json& step : manifest.at("steps")) {
        std::string writes;
        for (const Json& value : step.value("writes", Json::array()))
            writes += (writes.empty() ? "" : " ") + value.at("type").get<std::string>();
        const std::string indent(2 * step.value("depth", size_t{0}), ' ');
        lines.push_back({step.at("number").dump(),
                         lines.size() < estimates.size() ? estimate_text(estimates[lines.size()]) : "",
                         indent + step.at("kernel").get<std::string>(), joined(step.at("ops")), writes,
                         step.at("name").get<std::string>()});
        kernel_width = std::max(kernel_width, lines.back().kernel.size());
        ops_width = std::max(ops_width, lines.back().ops.size());
        writes_width = std::max(writes_width, lines.back().writes.size());
    }
    std::string text;
    for (const Line& line : lines)
        text += fmt::format("  {:>4}  {}{:<{}}  {:<{}}  {:<{}}  {}\n", line.number, line.estimate, line.kernel,
                            kernel_width, line.ops, ops_width, line.writes, writes_width, line.name);
    return text;
}

Json estimates_json(const Json& manifest, const Sizes& sizes) {
    expect_open(sizes, open_sizes(manifest.at("dims").get<std::vector<std::string>>()));
    Json out = Json::array();
    for (const Json& step : manifest.at("steps")) {
        const std::optional<Estimate> found = estimate_of(step, sizes);
        out.push_back({{"number", step.at("number")},
                       {"seconds", found ? Json(found->nanoseconds * 1e-9) : Json()},
                       {"share_of_peak", found ? Json(found->share_of_peak) : Json()}});
    }
    return out;
}

Json memory_json(const Json& manifest, const Sizes& sizes) {
    const std::string formula = manifest.at("workspace").get<std::string>();
    std::optional<int64_t> peak = manifest.at("weights").at("bytes").get<int64_t>();
    const auto counted = [&](const std::optional<int64_t>& bytes) {
        int64_t sum = 0;
        peak = peak && bytes && !__builtin_add_overflow(*peak, *bytes, &sum) ? std::optional(sum) : std::nullopt;
        return number_or_null(bytes);
    };
    Json memory = {{"weights", manifest.at("weights").at("bytes")},
                   {"workspace", {{"formula", formula}, {"bytes", counted(value_of(formula, sizes))}}}};
    for (const char* key : {"inputs", "outputs"}) {
        memory[key] = Json::array();
        for (const Json& port : manifest.at(key))
            memory[key].push_back({{"name", port.at("name")}, {"bytes", counted(bytes_of(port, sizes))}});
    }
    memory["peak"] = number_or_null(peak);
    std::set<std::string> open = open_sizes(manifest.at("dims").get<std::vector<std::string>>());
    expect_open(sizes, open);
    std::erase_if(open, [&](const std::string& symbol) { return sizes.contains(symbol); });
    memory["open"] = open;
    return memory;
}

std::string memory_text(const Json& memory) {
    std::string text = fmt::format("  {:<10} {:>10}  file pages, shared by all processes\n", "weights",
                                   bytes_text(memory.at("weights")));
    text += fmt::format("  {:<10} {:>10}  {}\n", "workspace", bytes_text(memory.at("workspace").at("bytes")),
                        memory.at("workspace").at("formula").get<std::string>());
    for (const char* key : {"inputs", "outputs"})
        for (const Json& port : memory.at(key))
            text += fmt::format("  {:<10} {:>10}  {}\n", std::string(key).substr(0, std::string(key).size() - 1),
                                bytes_text(port.at("bytes")), port.at("name").get<std::string>());
    text += fmt::format("  {:<10} {:>10}  of one run\n", "peak", bytes_text(memory.at("peak")));
    if (memory.at("peak").is_null() && !memory.at("open").empty())
        text += fmt::format("Give sizes for the rest: --size {}=8\n",
                            fmt::join(memory.at("open").get<std::vector<std::string>>(), "=8 --size "));
    return text;
}

} // namespace cuvil::cli
