#include "precision_error.hpp"

#include "session.hpp"
#include "tensors.hpp"
#include "text_of_value.hpp"

#include "runtime/cpu.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil::cli {
namespace {

// A module for this processor.
std::string compiled_here(const std::string& model, CompileOptions options, Precision precision) {
    options.target = "native";
    options.levels = {};
    options.precision = precision;
    options.print_after = {};
    options.pass_done = {};
    options.trace_inference = {};
    options.attachments = {};
    Diagnostics told; // when the module itself was made
    return bytes(compile({.path = model}, options, told));
}

bool runs_here(const CompileOptions& options) {
    const auto runs = [](const std::string& level) {
        return std::ranges::find(rt::cpu_levels(), level) != rt::cpu_levels().end();
    };
    return options.levels.empty() || std::ranges::any_of(options.levels, runs);
}

} // namespace

std::vector<PrecisionError> precision_errors(const std::string& model, const std::string& path,
                                             const CompileOptions& options, const std::vector<std::string>& inputs,
                                             const Sizes& sizes) {
    const std::string in_f32 = compiled_here(model, options, Precision::F32);
    // All levels round the weights alike.
    const std::string here = runs_here(options) ? "" : compiled_here(model, options, options.precision);
    Session wide(model, in_f32, 0), narrow(path, here, 0);
    const Feeds feeds = take_feeds(wide.inputs(), inputs, {}, "random", {.sizes = sizes});
    const std::vector<cuvil_value>&expected = wide.run(feeds.values), &actual = narrow.run(feeds.values);
    std::vector<PrecisionError> errors;
    for (size_t i = 0; i < expected.size(); i++) {
        const Tensor want = tensor_of(expected[i]), got = tensor_of(actual[i]);
        const evaluation::Difference d = evaluation::compare(got, want, {});
        errors.push_back({wide.outputs()[i].name, type_text(expected[i]), d.mismatch, d.largest_absolute,
                          evaluation::part_of_largest(d.largest_absolute, want)});
    }
    return errors;
}

std::string text_of(const std::vector<PrecisionError>& errors) {
    size_t name_width = 6, type_width = 4;
    for (const PrecisionError& e : errors) {
        name_width = std::max(name_width, e.output.size());
        type_width = std::max(type_width, e.type.size());
    }
    std::string text = fmt::format("{:<{}}  {:<{}}  {:>9} {:>10}\n", "output", name_width, "type", type_width,
                                   "max abs", "of largest");
    for (const PrecisionError& e : errors) {
        text += fmt::format("{:<{}}  {:<{}}  ", e.output, name_width, e.type, type_width);
        text += e.mismatch.empty()
                    ? fmt::format("{:>9} {:>10}\n", difference_text(e.absolute), difference_text(e.of_largest))
                    : e.mismatch + "\n";
    }
    return text;
}

nlohmann::ordered_json json_of(const std::vector<PrecisionError>& errors) {
    auto json = nlohmann::ordered_json::array();
    for (const PrecisionError& e : errors) {
        json.push_back({{"output", e.output}, {"type", e.type}});
        if (!e.mismatch.empty())
            json.back()["mismatch"] = e.mismatch;
        else
            json.back().update({{"max_absolute", e.absolute}, {"of_largest", e.of_largest}});
    }
    return json;
}

} // namespace cuvil::cli
