// cuvil ops: the operators that models may use.
#include "command.hpp"
#include "cuvil/compile.hpp"
#include "import/onnx/rows.hpp"
#include "support/nearest.hpp"
#include "support/words.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>

namespace cuvil::cli {
namespace {

std::string full_name(const ImportedOp& op) { return op.domain.empty() ? op.name : op.domain + "." + op.name; }

// One entry for versions that follow each other and become the same.
std::vector<ImportedOp> merged(const std::vector<ImportedOp>& ops) {
    std::vector<ImportedOp> out;
    for (const ImportedOp& op : ops) {
        const bool follows = !out.empty() && out.back().name == op.name && out.back().domain == op.domain &&
                             out.back().builds == op.builds && out.back().until + 1 == op.since;
        if (follows)
            out.back().until = op.until;
        else
            out.push_back(op);
    }
    return out;
}

std::string as_text(const std::vector<ImportedOp>& ops) {
    size_t width = 0;
    for (const ImportedOp& op : ops) width = std::max(width, full_name(op).size());
    std::string text = fmt::format("{:<{}}  {:<6}  {}\n", "operator", width, "opsets", "becomes");
    for (const ImportedOp& op : ops) {
        const std::string until = op.until ? std::to_string(op.until) : "";
        text += fmt::format("{:<{}}  {:>3}-{:<2}  {}\n", full_name(op), width, op.since, until,
                            op.builds.empty() ? "nothing: its input passes" : op.builds);
    }
    return text;
}

std::string as_json(const std::vector<ImportedOp>& ops) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ImportedOp& op : ops) {
        nlohmann::ordered_json entry = {{"name", op.name}, {"domain", op.domain}, {"since", op.since}};
        entry["until"] = op.until ? nlohmann::ordered_json(op.until) : nlohmann::ordered_json();
        entry["builds"] = op.builds;
        list.push_back(std::move(entry));
    }
    return nlohmann::ordered_json{{"onnx", std::move(list)}}.dump(2) + "\n";
}

// Leaves the operators that have one of the words in their names; each has to be in some.
void keep_named(std::vector<ImportedOp>& ops, const std::vector<std::string>& words) {
    const auto holds = [](const ImportedOp& op, const std::string& word) {
        return !std::ranges::search(op.name, word, {}, lower, lower).empty();
    };
    for (const std::string& word : words) {
        if (std::ranges::any_of(ops, [&](const ImportedOp& op) { return holds(op, word); })) continue;
        std::vector<std::string> names;
        for (const ImportedOp& op : ops) names.push_back(op.name);
        throw InputError(fmt::format("no operator has '{}' in its name{}", word, did_you_mean(word, names)));
    }
    std::erase_if(ops, [&](const ImportedOp& op) {
        return std::ranges::none_of(words, [&](const std::string& word) { return holds(op, word); });
    });
}

} // namespace

Action add_ops(CLI::App& verb) {
    auto json = std::make_shared<bool>(false);
    auto opset = std::make_shared<int>(0);
    verb.add_flag("--json", *json, "As JSON");
    auto wanted = std::make_shared<std::vector<std::string>>();
    verb.add_option("name", *wanted, "Only operators with one of these words in their names")->option_text("[NAME]...");
    verb.add_option("--opset", *opset, "Only what a model of this operator set may use")
        ->check(number_from(onnx::oldest_opset, onnx::newest_opset))
        ->option_text("N");
    verb.footer(R"(
Each line: the ONNX operator, the versions of its operator set in which its definition is covered (open: up to the
newest), and the core ops that it becomes.

Examples:
  cuvil ops
  cuvil ops conv pool
  cuvil ops --opset 17
  cuvil ops --json)");
    return [json, opset, wanted](Console& console) {
        std::vector<ImportedOp> ops = imported_ops("onnx");
        std::sort(ops.begin(), ops.end(), [](const ImportedOp& a, const ImportedOp& b) {
            return std::tie(a.name, a.domain, a.since) < std::tie(b.name, b.domain, b.since);
        });
        if (!wanted->empty()) keep_named(ops, *wanted);
        if (!*json) ops = merged(ops);
        if (*opset != 0)
            std::erase_if(ops,
                          [&](const ImportedOp& op) { return op.since > *opset || (op.until && op.until < *opset); });
        console.out(*json ? as_json(ops) : as_text(ops));
        return Done;
    };
}

} // namespace cuvil::cli
