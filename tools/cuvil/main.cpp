// cuvil: compiles models, runs modules and looks into both.
#include "command.hpp"
#include "cuvil/compile.hpp"
#include "import/onnx/rows.hpp"
#include "interrupt.hpp"
#include "runtime/cpu.hpp"
#include "session.hpp"
#include "support/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <map>
#include <new>
#include <span>
#include <system_error>

namespace cuvil::cli {
namespace {

struct Verb {
    const char* name;
    const char* summary;
    Action (*add)(CLI::App&);
};
constexpr Verb verbs[] = {
    {"compile", "Turn a model into one file of native code that needs nothing", add_compile},
    {"run", "Run a compiled module, or a model, on arrays", add_run},
    {"bench", "Measure how long a run takes", add_bench},
    {"tune", "Measure which kernels a model should be compiled with", add_tune},
    {"inspect", "Show what a model or a module holds", add_inspect},
    {"verify", "Compare what a module computes with another side", add_verify},
    {"cache", "Show or clear the code that is kept for the next compilation", add_cache},
    {"targets", "List what can be compiled for", add_targets},
    {"ops", "List the operators that models may use", add_ops},
    {"completion", "Print a script that completes commands in a shell", add_completion},
};

constexpr const char* examples = R"(
Examples:
  cuvil compile resnet18.onnx -o resnet18.cuvil
  cuvil run resnet18.cuvil --input input=@cat.npy
  cuvil inspect resnet18.onnx

cuvil VERB --help tells more. Exit status: 0 done, 1 refused, 2 wrong usage, 3 a bug in Cuvil,
130 interrupted.)";

std::string version_text() {
    const auto& levels = rt::cpu_levels();
    return fmt::format("cuvil {}\nLLVM {}\nONNX operator sets {} to {}\nthis CPU runs {}", version(),
                       CUVIL_LLVM_VERSION, onnx::oldest_opset, onnx::newest_opset,
                       levels.empty() ? "no level that Cuvil has code for" : fmt::format("{}", levels.back()));
}

struct CommonOptions {
    std::string color = "auto";
    bool quiet = false, verbose = false;
};

void add_common(CLI::App& verb, CommonOptions& common) {
    verb.add_option("--color", common.color, "When to colour messages: auto (default), always, never")
        ->option_text("WHEN");
    verb.add_flag("-q,--quiet", common.quiet, "Say nothing but errors");
    verb.add_flag("-v,--verbose", common.verbose, "Say more about each step");
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

// The first of the user's words that no option took, with what it may have meant; nothing if there is none.
std::string unknown_word(const CLI::App& app, const CLI::App& verb) {
    std::vector<std::string> verb_names;
    for (const Verb& v : verbs) verb_names.emplace_back(v.name);
    const std::vector<std::string> words = app.remaining(true);
    for (const std::string& word : words) {
        const std::string name = word.substr(0, word.find('='));
        if (word.starts_with('-') && word != "-")
            return fmt::format("unknown option {}{}", name, did_you_mean(name, option_names(verb)));
    }
    if (words.empty()) return "";
    if (&app != &verb) return fmt::format("unexpected argument '{}'", words[0]);
    std::string help = did_you_mean(words[0], verb_names);
    if (std::error_code ignored; help.empty() && std::filesystem::exists(words[0], ignored))
        help = fmt::format("; {0} is a file: cuvil {1} {0}", words[0], is_model(words[0]) ? "compile" : "run");
    return fmt::format("unknown verb '{}'{}", words[0], help);
}

int usage_error(Console& console, const CLI::App& verb, std::string_view message) {
    console.error(message);
    const std::string name = verb.get_parent() ? "cuvil " + verb.get_name() : "cuvil";
    console.err(fmt::format("Try {} --help.\n", name));
    return Usage;
}

int our_bug(Console& console, std::string_view what, const std::filesystem::path& reproducer = {}) {
    console.error(what);
    if (reproducer.empty())
        console.err("This is a bug in Cuvil, not in your model. Please report it with the command line, what\n"
                    "`cuvil --version` prints, and the model or the smallest one that shows it.\n");
    else
        console.err(fmt::format("This is a bug in Cuvil, not in your model. Please report it with the file\n"
                                "{}, which holds all that is needed: the structure of the model,\n"
                                "but not the data of its weights.\n",
                                reproducer.string()));
    return OurBug;
}

// `command`: the whole line.
int run_action(const Action& action, Console& console, const CLI::App& verb, const std::string& command) {
    try {
        const int status = action(console);
        console.end_progress();
        return status;
    } catch (const UsageError& error) {
        return usage_error(console, verb, error.what());
    } catch (const InputError& error) {
        console.error(error.what());
        return RefusedInput;
    } catch (const Refused& refused) {
        console.show(refused.diagnostics());
        return RefusedInput;
    } catch (const Cancelled&) {
        console.err("Interrupted; nothing was written.\n");
        return Interrupted;
    } catch (const std::bad_alloc&) {
        console.error("out of memory");
        return RefusedInput;
    } catch (const std::system_error& error) {
        console.error(error.what());
        return RefusedInput;
    } catch (const CompilerBug& bug) {
        console.end_progress();
        return our_bug(console, bug.what(), write_reproducer(bug, command));
    } catch (const std::exception& error) {
        return our_bug(console, error.what());
    }
}

// The words behind the program's name, last first, as CLI11 wants them; "help compile" is "compile --help". It splits
// what stands in brackets at commas; a space in front keeps a list of values whole.
std::vector<std::string> reversed_words(int argc, char** argv) {
    std::vector<std::string> words(std::make_reverse_iterator(argv + argc), std::make_reverse_iterator(argv + 1));
    if (!words.empty() && words.back() == "help") {
        words.back() = "--help";
        if (words.size() > 1) std::swap(words.back(), words[words.size() - 2]); // of a verb
    }
    for (std::string& word : words)
        if (word.starts_with('[') && word.ends_with(']')) word.insert(0, " ");
    return words;
}

int cli_main(int argc, char** argv) {
    handle_signals();
    Console console;
    console.set_color(Console::Color::Auto);

    CLI::App app("Cuvil compiles machine-learning models to self-contained native modules.", "cuvil");
    app.footer(examples);
    app.set_version_flag("-V,--version", [] { return version_text(); }, "Print versions and what this CPU runs");
    app.require_subcommand(1);
    CommonOptions common;
    std::map<const CLI::App*, Action> actions;
    for (const Verb& verb : verbs) {
        CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
        actions[sub] = verb.add(*sub);
        add_common(*sub, common);
    }

    const CLI::App* verb = &app;
    const auto find_verb = [&] {
        for (const CLI::App* sub : app.get_subcommands()) verb = sub;
    };
    try {
        app.parse(reversed_words(argc, argv));
        find_verb();
    } catch (const CLI::Success& request) { // --help, --version
        return app.exit(request);
    } catch (const CLI::ParseError& error) {
        find_verb();
        const std::string unknown = unknown_word(app, *verb);
        if (argc == 1) console.err(app.help());
        return usage_error(console, *verb, unknown.empty() ? error.what() : unknown);
    }
    try {
        console.set_color(choice<Console::Color>(
            "--color", common.color,
            {{"auto", Console::Color::Auto}, {"always", Console::Color::Always}, {"never", Console::Color::Never}}));
    } catch (const UsageError& error) {
        return usage_error(console, *verb, error.what());
    }
    console.set_quiet(common.quiet);
    console.set_verbose(common.verbose);
    return run_action(actions.at(verb), console, *verb,
                      fmt::format("{}", fmt::join(std::span(argv, static_cast<size_t>(argc)), " ")));
}

} // namespace
} // namespace cuvil::cli

int main(int argc, char** argv) {
    try {
        const int status = cuvil::cli::cli_main(argc, argv);
        if (status != cuvil::cli::Interrupted) return status;
        fflush(nullptr);
        std::_Exit(status);                 // threads that are within Clang still use what exit() would destroy
    } catch (const std::exception& error) { // no memory for the words of the command line, or for a message
        fputs(error.what(), stderr);
        return cuvil::cli::OurBug;
    }
}
