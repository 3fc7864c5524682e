// cuvil-opt: IR text in, passes, IR text out. For tests and for looking at what a pass does.
#include "eval/evaluate.hpp"
#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "ops/op_table.hpp"
#include "optimize/pass.hpp"
#include "support/diagnostics.hpp"
#include "support/file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace cuvil {
namespace {

enum ExitStatus { Done, RefusedInput, WrongUsage, OurBug };

constexpr const char* examples = R"(
Examples:
  cuvil-opt model.cuir                          read, verify and print
  cuvil-opt --pass=CanonicalizePass model.cuir  the text after one pass
  cuvil-opt --all-passes --print-after=FuseOperatorsPass --time-passes model.cuir
  cuvil-opt --pass=InferencePass --trace-inference model.cuir
  cuvil compile model.onnx --emit=ir -o - | cuvil-opt --pass=CanonicalizePass --pass=FuseOperatorsPass

Exit status: 0 done, 1 refused, 2 wrong usage, 3 a bug in Cuvil.)";

std::string pass_help() {
    std::string help = "A pass to run; may be given several times. One of:";
    for (const PassDef& pass : all_passes()) help += fmt::format(" {}", pass.name);
    return help;
}

struct Request {
    std::string file = "-";
    std::vector<std::string> names;
    bool all = false, trace = false, time = false;
    CompileOptions options;

    bool is_pass(const std::string& name) const {
        return std::ranges::any_of(all_passes(), [&](const PassDef& pass) { return pass.name == name; });
    }
    // In the order that was asked for.
    std::vector<PassDef> passes() const {
        std::vector<PassDef> chosen;
        if (all) chosen.assign(all_passes().begin(), all_passes().end());
        for (const std::string& name : names) chosen.push_back(*std::ranges::find(all_passes(), name, &PassDef::name));
        return chosen;
    }
};

std::string read(const std::string& file) {
    if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
    return std::string(MappedFile(file).text());
}

void expect_sound(const Program& program, Diagnostics& diag) {
    for (std::string& sentence : verify(program)) diag.error("invalid-ir", std::move(sentence));
    diag.stop_if_errors();
}

std::string transform(const Request& request) {
    Diagnostics diag;
    std::string text = read(request.file);
    auto program = parse(text, request.file == "-" ? "<stdin>" : request.file, builtin_op_table(), diag);
    diag.stop_if_errors();
    expect_sound(*program, diag);
    const std::vector<PassDef> passes = request.passes();
    if (!passes.empty()) run_passes(*program, request.options, evaluate, diag, passes);
    return print(*program);
}

int complain(std::string_view text, ExitStatus status) {
    write_all(STDERR_FILENO, text);
    return status;
}

int cuvil_opt(int argc, char** argv) {
    CLI::App app("cuvil-opt reads Cuvil's IR as text, runs passes over it and prints what comes out.", "cuvil-opt");
    app.footer(examples);
    Request request;
    CompileOptions& options = request.options;
    app.add_option("file", request.file, "The text to read; - (default) is standard input")->option_text("FILE");
    app.add_option("--pass", request.names, pass_help())->option_text("NAME ...")->allow_extra_args(false);
    app.add_flag("--all-passes", request.all, "Run all passes, as cuvil compile does");
    app.add_option("--print-after", options.print_after, "Print the text after this pass on stderr, or after all")
        ->option_text("NAME ...")
        ->allow_extra_args(false);
    app.add_option("--disable-pass", options.disabled_passes, "Leave this pass out")
        ->option_text("NAME ...")
        ->allow_extra_args(false);
    app.add_flag("--trace-inference", request.trace, "Say on stderr which types and sizes InferencePass finds");
    app.add_flag("--time-passes", request.time,
                 "Say on stderr how long each pass takes and how often it changes something");
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& request) {
        return app.exit(request);
    } catch (const CLI::ParseError& error) {
        return complain(fmt::format("error: {}\nTry cuvil-opt --help.\n", error.what()), WrongUsage);
    }
    for (const std::string& name : request.names)
        if (!request.is_pass(name))
            return complain(fmt::format("error: no pass is named '{}'\nTry cuvil-opt --help.\n", name), WrongUsage);
    options.dump = [](std::string_view pass, std::string_view ir) {
        write_all(STDERR_FILENO, fmt::format("# IR after {}\n{}\n", pass, ir));
    };
    if (request.trace)
        options.trace_inference = [](std::string_view line) { write_all(STDERR_FILENO, fmt::format("{}\n", line)); };
    if (request.time)
        options.pass_done = [](const PassReport& report) { write_all(STDERR_FILENO, text_of(report) + "\n"); };
    try {
        write_all(STDOUT_FILENO, transform(request));
        return Done;
    } catch (const Refused& refused) {
        return complain(refused.what(), RefusedInput);
    } catch (const std::system_error& error) {
        return complain(fmt::format("error: {}: {}\n", request.file, error.code().message()), RefusedInput);
    } catch (const std::exception& error) {
        return complain(
            fmt::format("{}\nThis is a bug in Cuvil; please report it with the text that shows it.\n", error.what()),
            OurBug);
    }
}

} // namespace
} // namespace cuvil

int main(int argc, char** argv) {
    try {
        return cuvil::cuvil_opt(argc, argv);
    } catch (const std::exception& error) { // no memory for the words of the command line, or for a message
        fputs(error.what(), stderr);
        return cuvil::OurBug;
    }
}
