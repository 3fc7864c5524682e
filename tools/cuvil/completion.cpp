// cuvil completion: scripts that let a shell complete verbs, options and files.
#include "command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace cuvil::cli {
namespace {

struct Word {
    std::string long_name, short_name; // without dashes
    std::string help, value;           // value: the word for what follows, empty for a flag
};

struct VerbWords {
    std::string name, summary;
    std::vector<Word> options;
};

std::vector<Word> options_of(const CLI::App& app) {
    std::vector<Word> words;
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_lnames().empty() && option->get_snames().empty()) continue;
        const auto& longs = option->get_lnames();
        const auto& shorts = option->get_snames();
        const bool takes_value = option->get_items_expected_max() > 0;
        words.push_back({longs.empty() ? "" : longs[0], shorts.empty() ? "" : shorts[0], option->get_description(),
                         takes_value ? option->get_option_text() : ""});
        if (takes_value && words.back().value.empty()) words.back().value = "VALUE";
    }
    return words;
}

std::vector<VerbWords> verbs_of(const CLI::App& app) {
    std::vector<VerbWords> verbs;
    for (const CLI::App* verb : app.get_subcommands({}))
        verbs.push_back({verb->get_name(), verb->get_description(), options_of(*verb)});
    return verbs;
}

std::vector<std::string> dashed(const std::vector<Word>& words) {
    std::vector<std::string> out;
    for (const Word& word : words) {
        if (!word.long_name.empty()) out.push_back("--" + word.long_name);
        if (!word.short_name.empty()) out.push_back("-" + word.short_name);
    }
    return out;
}

std::vector<std::string> names_of(const std::vector<VerbWords>& verbs) {
    std::vector<std::string> names;
    for (const VerbWords& verb : verbs) names.push_back(verb.name);
    return names;
}

// `text` with a backslash before each of `characters`.
std::string escaped(const std::string& text, std::string_view characters) {
    std::string out;
    for (const char c : text) {
        if (characters.find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

// `text` in single quotes, as shells of the Bourne family read them.
std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string bash(const CLI::App& app) {
    const std::vector<VerbWords> verbs = verbs_of(app);
    std::string text = "_cuvil() {\n"
                       "    local word=${COMP_WORDS[COMP_CWORD]} options=\n"
                       "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n";
    text += fmt::format("        COMPREPLY=($(compgen -W '{} {}' -- \"$word\"))\n", fmt::join(names_of(verbs), " "),
                        fmt::join(dashed(options_of(app)), " "));
    text += "        return\n"
            "    fi\n"
            "    case ${COMP_WORDS[1]} in\n";
    for (const VerbWords& verb : verbs)
        text += fmt::format("        {}) options='{}' ;;\n", verb.name, fmt::join(dashed(verb.options), " "));
    text += "    esac\n"
            "    [[ $word == -* ]] && COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
            "}\n"
            "complete -o default -F _cuvil cuvil\n";
    return text;
}

std::string zsh(const CLI::App& app) {
    std::string text = "#compdef cuvil\n"
                       "_cuvil() {\n"
                       "    local -a verbs=(\n";
    const std::vector<VerbWords> verbs = verbs_of(app);
    for (const VerbWords& verb : verbs)
        text += fmt::format("        {}\n", quoted(verb.name + ":" + escaped(verb.summary, ":")));
    text += "    )\n"
            "    if (( CURRENT == 2 )); then\n"
            "        _describe verb verbs\n";
    text += fmt::format("        [[ $PREFIX == -* ]] && compadd -- {}\n", fmt::join(dashed(options_of(app)), " "));
    text += "        return\n"
            "    fi\n"
            "    local verb=$words[2]\n"
            "    shift words\n"
            "    (( CURRENT-- ))\n"
            "    case $verb in\n";
    for (const VerbWords& verb : verbs) {
        text += fmt::format("        {}) _arguments", verb.name);
        for (const Word& word : verb.options) {
            const std::string what = fmt::format("[{}]{}", escaped(word.help, "[]:"),
                                                 word.value.empty() ? "" : ":" + escaped(word.value, ":") + ":_files");
            if (!word.long_name.empty())
                text += " \\\n            " +
                        quoted(fmt::format("*--{}{}{}", word.long_name, word.value.empty() ? "" : "=", what));
            if (!word.short_name.empty())
                text += " \\\n            " + quoted(fmt::format("*-{}{}", word.short_name, what));
        }
        text += " \\\n            '*:file:_files' ;;\n";
    }
    text += "    esac\n"
            "}\n"
            "compdef _cuvil cuvil\n";
    return text;
}

std::string fish(const CLI::App& app) {
    const auto single = [](const std::string& s) { return "'" + escaped(s, "\\'") + "'"; };
    std::string text;
    const auto add = [&](const std::string& condition, const Word& word) {
        text += fmt::format("complete -c cuvil -n {}", single(condition));
        if (!word.long_name.empty()) text += " -l " + word.long_name;
        if (!word.short_name.empty()) text += " -s " + word.short_name;
        if (!word.value.empty()) text += " -r";
        text += fmt::format(" -d {}\n", single(word.help));
    };
    for (const VerbWords& verb : verbs_of(app)) {
        text +=
            fmt::format("complete -c cuvil -f -n __fish_use_subcommand -a {} -d {}\n", verb.name, single(verb.summary));
        for (const Word& word : verb.options) add("__fish_seen_subcommand_from " + verb.name, word);
    }
    for (const Word& word : options_of(app)) add("__fish_use_subcommand", word);
    return text;
}

} // namespace

Action add_completion(CLI::App& verb) {
    auto shell = std::make_shared<std::string>();
    verb.add_option("shell", *shell, "bash, zsh or fish")->required()->option_text("SHELL");
    verb.footer(R"(
Examples:
  source <(cuvil completion bash)          # in ~/.bashrc
  source <(cuvil completion zsh)           # in ~/.zshrc, behind compinit
  cuvil completion fish > ~/.config/fish/completions/cuvil.fish)");
    return [shell, &verb](Console& console) {
        using Script = std::string (*)(const CLI::App&);
        const auto script = choice<Script>("shell", *shell, {{"bash", bash}, {"zsh", zsh}, {"fish", fish}});
        console.out(script(*verb.get_parent()));
        return Done;
    };
}

} // namespace cuvil::cli
