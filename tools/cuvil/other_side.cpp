#include "other_side.hpp"

#include "import/importer.hpp"
#include "import/onnx/proto.hpp"
#include "interrupt.hpp"
#include "npz.hpp"
#include "ops/op_table.hpp"
#include "peer.hpp"
#include "runtime/thread_count.hpp"
#include "support/file.hpp"
#include "support/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <system_error>

namespace cuvil::cli {
namespace {

std::shared_ptr<const Program> imported(const std::string& model, const CompileOptions& options) {
    Diagnostics diag;
    auto program = std::make_shared<Program>(import_model({.path = model}, options, builtin_op_table(), diag));
    diag.stop_if_errors();
    return program;
}

// The names that nodes of the main graph give to their results, each to one only.
std::set<std::string> values_of_graph(const std::string& path) {
    const MappedFile file(path);
    const onnx::ModelProto model = onnx::decode_model(file.text());
    std::set<std::string> names;
    if (model.graph)
        for (const onnx::NodeProto& node : model.graph->nodes) names.insert(node.outputs.begin(), node.outputs.end());
    names.erase("");
    return names;
}

} // namespace

OtherSide reference(const std::string& model, const CompileOptions& options, const Session& session, const Feeds& feeds,
                    bool keeps_all, Console& console) {
    OtherSide side{.name = "the reference interpreter", .outputs = {}, .program = imported(model, options)};
    std::vector<std::optional<Tensor>> inputs;
    for (const cuvil_value& value : feeds.values)
        inputs.push_back(value.tag == CUVIL_NONE ? std::nullopt : std::optional(tensor_of(value)));
    auto values = std::make_shared<std::map<const Value*, Tensor>>();
    evaluation::InterpretOptions interpretation{.cancel = &interrupted()};
    if (keeps_all) interpretation.seen = [&](const Value& value, const Tensor& tensor) { (*values)[&value] = tensor; };
    console.progress({1, 1, "reference"});
    try {
        side.outputs = evaluation::interpret(*side.program, inputs, interpretation);
    } catch (const evaluation::InterpretError& error) {
        throw InputError(fmt::format("the reference interpreter cannot run {}: {}", model, error.what()));
    }
    console.end_progress();
    if (side.outputs.size() != session.outputs().size())
        throw InputError(fmt::format("{} has {} outputs, the module has {}: is it its model?", model,
                                     side.outputs.size(), session.outputs().size()));
    side.has = [values](const Value& value) { return values->contains(&value); };
    side.values = [values](const std::vector<const Value*>& wanted) {
        std::vector<Tensor> found;
        for (const Value* value : wanted) found.push_back(values->at(value));
        return found;
    };
    return side;
}

OtherSide onnxruntime(const std::string& model, const CompileOptions& options, const Session& session,
                      const Feeds& feeds, bool keeps_all) {
    auto peer = std::make_shared<Peer>(model, session.inputs(), feeds, rt::default_thread_count());
    OtherSide side{.name = peer->name(), .outputs = {}};
    for (const Array& array : peer->values(names_of(session.outputs()))) side.outputs.push_back(tensor_of(array));
    if (!keeps_all) return side;
    side.program = imported(model, options);
    side.has = [names = values_of_graph(model)](const Value& value) { return names.contains(value.name()); };
    side.values = [peer](const std::vector<const Value*>& wanted) {
        std::vector<std::string> names;
        for (const Value* value : wanted) names.push_back(value->name());
        std::vector<Tensor> found;
        for (const Array& array : peer->values(names)) found.push_back(tensor_of(array));
        return found;
    };
    return side;
}

OtherSide expected(const std::string& path, const Session& session) {
    OtherSide side{.name = path, .outputs = {}};
    const std::vector<std::string> outputs = names_of(session.outputs());
    try {
        if (!path.ends_with(".npz")) {
            if (outputs.size() != 1)
                throw InputError(fmt::format("{} holds one array, the outputs are {}: write a .npz", path,
                                             list_of(session.outputs())));
            side.outputs.push_back(tensor_of(read_npy(path)));
            return side;
        }
        const std::vector<std::string> names = npz_names(path);
        const bool is_single = names.size() == 1 && outputs.size() == 1;
        for (const std::string& name : names)
            if (!is_single && std::ranges::find(outputs, name) == outputs.end())
                throw InputError(fmt::format("{} holds '{}', which is no output{}; the outputs are {}", path, name,
                                             did_you_mean(name, outputs), list_of(session.outputs())));
        for (const std::string& output : outputs) {
            if (!is_single && std::ranges::find(names, output) == names.end())
                throw InputError(fmt::format("{} does not hold the output '{}'", path, output));
            side.outputs.push_back(tensor_of(read_npz(path, is_single ? names[0] : output)));
        }
    } catch (const std::system_error& error) {
        throw InputError(fmt::format("cannot read {}: {}", path, error.code().message()));
    }
    return side;
}

} // namespace cuvil::cli
