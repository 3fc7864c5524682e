// cuvil ops: the operators that models may use.
#include "command.hpp"
#include "cuvil/compile.hpp"
#include "import/onnx/rows.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>

namespace cuvil::cli {
namespace {

std::string as_text(const std::vector<ImportedOp>& ops) {
    size_t width = 0;
    for (const ImportedOp& op : ops) width = std::max(width, op.name.size());
    std::string text;
    for (const ImportedOp& op : ops) {
        const std::string until = op.until ? std::to_string(op.until) : "";
        text += fmt::format("{:<{}}  opset {:>2}-{:<2}  {}\n", op.name, width, op.since, until, op.builds);
    }
    return text;
}

std::string as_json(const std::vector<ImportedOp>& ops) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ImportedOp& op : ops) {
        nlohmann::ordered_json entry = {{"name", op.name}, {"since", op.since}};
        entry["until"] = op.until ? nlohmann::ordered_json(op.until) : nlohmann::ordered_json();
        entry["builds"] = op.builds;
        list.push_back(std::move(entry));
    }
    return nlohmann::ordered_json{{"onnx", std::move(list)}}.dump(2) + "\n";
}

} // namespace

Action add_ops(CLI::App& verb) {
    auto json = std::make_shared<bool>(false);
    auto opset = std::make_shared<int>(0);
    verb.add_flag("--json", *json, "As JSON");
    verb.add_option("--opset", *opset, "Only what a model of this operator set may use")->option_text("N");
    verb.footer(R"(
Each line: the ONNX operator, the versions of the operator set in which its definition is covered (open: up to the
newest), and the core ops that it becomes.

Examples:
  cuvil ops
  cuvil ops --opset 17
  cuvil ops --json)");
    return [json, opset](Console& console) {
        if (*opset != 0 && (*opset < onnx::oldest_opset || *opset > onnx::newest_opset))
            throw UsageError(
                fmt::format("--opset: operator sets {} to {} are known", onnx::oldest_opset, onnx::newest_opset));
        std::vector<ImportedOp> ops = imported_ops("onnx");
        if (*opset != 0)
            std::erase_if(ops,
                          [&](const ImportedOp& op) { return op.since > *opset || (op.until && op.until < *opset); });
        std::sort(ops.begin(), ops.end(), [](const ImportedOp& a, const ImportedOp& b) {
            return std::tie(a.name, a.since) < std::tie(b.name, b.since);
        });
        console.out(*json ? as_json(ops) : as_text(ops));
        return Done;
    };
}

} // namespace cuvil::cli
