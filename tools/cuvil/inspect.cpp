// cuvil inspect: what a model or a module holds.
#include "command.hpp"
#include "describe.hpp"

namespace cuvil::cli {
namespace {

struct Options {
    std::string file;
    bool json = false;
    bool check = false;
};

} // namespace

Action add_inspect(CLI::App& verb) {
    auto o = std::make_shared<Options>();
    verb.add_option("file", o->file, "A module (.cuvil) or a model (.onnx, .cuir)")->required()->option_text("FILE");
    verb.add_flag("--json", o->json, "As JSON");
    verb.add_flag("--check", o->check, "Hash the weights of a module too, which loading does not");
    verb.footer(R"(
Of a model: inputs, outputs, operators with their counts, whether all can be compiled. Of a module: inputs, outputs,
levels, sizes, the memory that a run takes, steps. Nothing is run. Exit status 1: the model cannot be compiled, or the
module is damaged.

Examples:
  cuvil inspect model.onnx
  cuvil inspect model.cuvil --check
  cuvil inspect model.cuvil --json | jq .inputs)");
    return [o](Console& console) {
        const Description description =
            holds_module(o->file) ? describe_module(o->file, o->check) : describe_model(o->file);
        console.out(o->json
                        ? description.json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                        : description.text);
        console.show(description.diagnostics);
        return description.diagnostics.has_errors() ? RefusedInput : Done;
    };
}

} // namespace cuvil::cli
