// The verbs of the program, one source file each.
#pragma once

#include "console.hpp"
#include "support/nearest.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cuvil::cli {

// What a verb does once the command line is parsed; returns the exit status.
using Action = std::function<int(Console&)>;

// Each declares its options on `verb`, with examples for --help.
Action add_compile(CLI::App& verb);
Action add_run(CLI::App& verb);
Action add_bench(CLI::App& verb);
Action add_tune(CLI::App& verb);
Action add_inspect(CLI::App& verb);
Action add_verify(CLI::App& verb);
Action add_cache(CLI::App& verb);
Action add_targets(CLI::App& verb);
Action add_ops(CLI::App& verb);
Action add_completion(CLI::App& verb);

// An option that stands for one argument each time it is given.
template <class List> CLI::Option* add_repeatable(CLI::App& verb, const char* name, List& list, const char* help) {
    return verb.add_option(name, list, help)->allow_extra_args(false);
}

// For Option::check: what is wrong with a word that should be a number from `least` to `most`; nothing for a good one.
template <class T>
std::function<std::string(const std::string&)> number_from(T least, T most = std::numeric_limits<T>::max()) {
    return [least, most](const std::string& word) -> std::string {
        T value{};
        const char* end = word.data() + word.size();
        const auto [next, error] = std::from_chars(word.data(), end, value);
        if (error == std::errc() && next == end && value >= least && value <= most) return "";
        return fmt::format("'{}' is no {} from {} {}", word, std::is_integral_v<T> ? "whole number" : "number", least,
                           most == std::numeric_limits<T>::max() ? "on" : fmt::format("to {}", most));
    };
}

// The value that an option's word stands for. Throws UsageError, which lists the words.
template <class T>
T choice(std::string_view option, const std::string& word, const std::vector<std::pair<std::string, T>>& values) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) {
        if (name == word) return value;
        names.push_back(name);
    }
    throw UsageError(
        fmt::format("{} '{}': it is one of {}{}", option, word, fmt::join(names, ", "), did_you_mean(word, names)));
}

} // namespace cuvil::cli
