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
  cuvil compile model.onnx --emit=ir -o - | cuvil-opt --pass=CanonicalizePass --pass=FuseOperatorsPass

Exit status: 0 done, 1 refused, 2 wrong usage, 3 a bug in Cuvil.)";

std::string pass_help() {
    std::string help = "A pass to run; may be given several times. One of:";
    for (const PassDef& pass : all_passes()) help += fmt::format(" {}", pass.name);
    return help;
}

const PassDef* find_pass(const std::string& name) {
    for (const PassDef& pass : all_passes())
        if (pass.name == name) return &pass;
    return nullptr;
}

std::string read(const std::string& file) {
    if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
    return std::string(MappedFile(file).text());
}

void expect_sound(const Program& program, Diagnostics& diag) {
    for (std::string& sentence : verify(program)) diag.error("invalid-ir", std::move(sentence));
    diag.stop_if_errors();
}

std::string transform(const std::string& file, const std::vector<const PassDef*>& passes) {
    Diagnostics diag;
    std::string text = read(file);
    auto program = parse(text, file == "-" ? "<stdin>" : file, builtin_op_table(), diag);
    diag.stop_if_errors();
    expect_sound(*program, diag);
    PassContext context{*program, diag, evaluate};
    for (const PassDef* pass : passes) {
        run_pass(*pass, context);
        diag.stop_if_errors();
    }
    return print(*program);
}

int complain(std::string_view text, ExitStatus status) {
    write_all(STDERR_FILENO, text);
    return status;
}

int cuvil_opt(int argc, char** argv) {
    CLI::App app("cuvil-opt reads Cuvil's IR as text, runs passes over it and prints what comes out.", "cuvil-opt");
    app.footer(examples);
    std::string file = "-";
    std::vector<std::string> names;
    app.add_option("file", file, "The text to read; - (default) is standard input")->option_text("FILE");
    app.add_option("--pass", names, pass_help())->option_text("NAME ...")->allow_extra_args(false);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& request) {
        return app.exit(request);
    } catch (const CLI::ParseError& error) {
        return complain(fmt::format("error: {}\nTry cuvil-opt --help.\n", error.what()), WrongUsage);
    }
    std::vector<const PassDef*> passes;
    for (const std::string& name : names) {
        passes.push_back(find_pass(name));
        if (!passes.back())
            return complain(fmt::format("error: no pass is named '{}'\nTry cuvil-opt --help.\n", name), WrongUsage);
    }
    try {
        write_all(STDOUT_FILENO, transform(file, passes));
        return Done;
    } catch (const Refused& refused) {
        return complain(refused.what(), RefusedInput);
    } catch (const std::system_error& error) {
        return complain(fmt::format("error: {}: {}\n", file, error.code().message()), RefusedInput);
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
