#include "console.hpp"
#include "describe.hpp"
#include "describe_plan.hpp"

#include "import/onnx/onnx.hpp"
#include "import/onnx/proto.hpp"
#include "import/onnx/rows.hpp"
#include "import/onnx/tensor.hpp"
#include "src/stages.hpp"
#include "support/file.hpp"
#include "support/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace cuvil::cli {
namespace {

using Json = nlohmann::ordered_json;

struct OpCount {
    std::string name, domain;
    int count = 0;
    bool is_supported = true;
};
using OpCounts = std::map<std::string, OpCount>; // by domain and name

bool is_default(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

void count_nodes(const std::vector<onnx::NodeProto>& nodes, int64_t opset, OpCounts& counts) {
    for (const onnx::NodeProto& node : nodes) {
        const std::string domain(is_default(node.domain) ? "" : node.domain);
        OpCount& op = counts[domain + "/" + std::string(node.op_type)];
        op.name = node.op_type;
        op.domain = domain;
        op.count++;
        op.is_supported = onnx::find_row(node.op_type, opset, domain);
        for (const onnx::AttributeProto& attribute : node.attributes)
            if (attribute.graph) count_nodes(attribute.graph->nodes, opset, counts);
    }
}

// The operators as the model names them.
OpCounts count_foreign(const onnx::ModelProto& model) {
    OpCounts counts;
    int64_t opset = onnx::newest_opset;
    for (const onnx::OpsetProto& set : model.opsets)
        if (is_default(set.domain)) opset = set.version;
    if (model.graph) count_nodes(model.graph->nodes, opset, counts);
    // A call of the model's own function is as good as what stands in it.
    for (const onnx::FunctionProto& function : model.functions) {
        if (auto call = counts.find(std::string(function.domain) + "/" + std::string(function.name));
            call != counts.end())
            call->second.is_supported = true;
        count_nodes(function.nodes, opset, counts);
    }
    return counts;
}

void count_region(const Region& region, OpCounts& counts) {
    for (const auto& node : region.nodes()) {
        for (const auto& inner : node->regions()) count_region(*inner, counts);
        if (node->def().has(source) || node->def().has(terminator)) continue;
        OpCount& op = counts[std::string(node->op())];
        op.name = node->op();
        op.count++;
    }
}

OpCounts count_own(const Program& program) {
    OpCounts counts;
    for (const auto& function : program.functions()) count_region(function->body(), counts);
    return counts;
}

Json port(const std::string& name, const Type& type) {
    Json shape = Json::array();
    if (!type.has_rank()) return {{"name", name}, {"type", type.text()}};
    for (const Dim& size : type.shape()) shape.push_back(size.constant() ? Json(*size.constant()) : Json(size.text()));
    return {{"name", name},
            {"type", type.text()},
            {"dtype", type.dtype() == DType::String ? "string" : std::string(cuvil::name(type.dtype()))},
            {"shape", std::move(shape)}};
}

// What the imported program says of the model.
void add_program(const Program& program, Json& json) {
    FuncIR& main = program.main();
    for (size_t i = 0; i < main.inputs.size(); i++) {
        Json entry = port(main.inputs[i].name, main.body().arguments()[i]->type());
        entry["optional"] = !main.inputs[i].default_value.empty();
        json["inputs"].push_back(std::move(entry));
    }
    const OpNode* end = main.body().terminator();
    for (size_t i = 0; i < main.outputs.size(); i++)
        json["outputs"].push_back(port(main.outputs[i].name, end->operand(i)->type()));
    uint64_t bytes = 0;
    for (const auto& [name, weight] : program.weights()) bytes += weight.bytes.size();
    json["weights"] = {{"tensors", program.weights().size()}, {"bytes", bytes}};
    json["metadata"] = program.metadata;
}

std::string declared_type(const onnx::ValueInfoProto& value) {
    if (value.kind != "tensor") return std::string(value.kind);
    const std::optional<DType> dtype = onnx::dtype_of(value.element_type);
    std::string element = dtype ? std::string(cuvil::name(*dtype)) : onnx::data_type_name(value.element_type);
    if (!value.has_shape) return element;
    std::vector<std::string> sizes;
    for (const onnx::DimensionProto& size : value.shape)
        sizes.push_back(size.value ? std::to_string(*size.value) : size.param.empty() ? "?" : std::string(size.param));
    return fmt::format("{}[{}]", element, fmt::join(sizes, ","));
}

// The same, as far as it can be told, of a model that was refused.
void add_refused(const onnx::ModelProto& model, Json& json) {
    json["metadata"] = onnx::metadata_of(model);
    if (!model.graph) return;
    for (const auto& [key, list] : {std::pair("inputs", &model.graph->inputs), {"outputs", &model.graph->outputs}})
        for (const onnx::ValueInfoProto& value : *list)
            json[key].push_back({{"name", value.name}, {"type", declared_type(value)}});
}

// All initializers: the program keeps small ones as constants.
void add_weights(const onnx::GraphProto& graph, Json& json) {
    uint64_t bytes = 0;
    for (const onnx::TensorProto& tensor : graph.initializers) {
        const std::optional<DType> dtype = onnx::dtype_of(tensor.data_type);
        uint64_t size = dtype ? size_of(*dtype) : 0; // of strings, too: the message has what there is
        for (const int64_t dim : tensor.dims) size *= static_cast<uint64_t>(std::max<int64_t>(dim, 0));
        bytes += size ? size : tensor.message.size();
    }
    json["weights"] = {{"tensors", graph.initializers.size()}, {"bytes", bytes}};
}

std::string as_text(const Json& json) {
    std::string text = fmt::format("{}: a model, {}\n", json.at("file").get<std::string>(),
                                   size_text(json.at("size").get<uint64_t>()));
    for (const auto& [key, value] : json.at("metadata").items())
        text += fmt::format("  {:<10} {}\n", key, value.get<std::string>());
    if (json.contains("weights"))
        text += fmt::format("  {:<10} {} in {}\n", "weights", size_text(json.at("weights").at("bytes").get<uint64_t>()),
                            counted(json.at("weights").at("tensors").get<uint64_t>(), "tensor"));
    for (const char* key : {"inputs", "outputs"}) {
        text += fmt::format("{}\n", key);
        for (const Json& entry : json.at(key))
            text += fmt::format("  {}{}{}\n", entry.at("name").get<std::string>(),
                                entry.contains("type") ? ": " + entry.at("type").get<std::string>() : "",
                                entry.value("optional", false) ? " (may be left out)" : "");
    }
    uint64_t nodes = 0;
    for (const Json& op : json.at("ops")) nodes += op.at("count").get<uint64_t>();
    text += fmt::format("operators: {} of {}; the model {} be compiled\n", counted(nodes, "node"),
                        counted(json.at("ops").size(), "kind"), json.at("supported").get<bool>() ? "can" : "cannot");
    for (const Json& op : json.at("ops")) {
        const std::string domain = op.value("domain", "");
        text +=
            fmt::format("  {:>6}  {}{}{}\n", op.at("count").get<int>(), domain.empty() ? "" : domain + ".",
                        op.at("name").get<std::string>(), op.at("supported").get<bool>() ? "" : "  (not supported)");
    }
    return text;
}

// The file in ONNX's own terms; no model where it is IR text, or what the importer has complained about.
struct Foreign {
    std::unique_ptr<MappedFile> file; // the model refers to it
    std::optional<onnx::ModelProto> model;
};

Foreign read_foreign(const std::filesystem::path& path) {
    Foreign foreign;
    try {
        foreign.file = std::make_unique<MappedFile>(path);
        if (path.extension() != ".cuir") foreign.model = onnx::decode_model(foreign.file->text());
    } catch (const std::system_error&) {
        return {};
    } catch (const onnx::MalformedModel&) {
        return foreign;
    }
    return foreign;
}

} // namespace

Description describe_model(const std::filesystem::path& path) {
    Description d;
    std::optional<Program> program;
    try {
        program = imported({.path = path}, {}, d.diagnostics);
    } catch (const Refused& refused) {
        d.diagnostics = refused.diagnostics();
    }
    const Foreign foreign = read_foreign(path);
    const auto& model = foreign.model;
    if (!program && !model) throw Refused(d.diagnostics);

    d.json = {{"file", path.string()},
              {"kind", "model"},
              {"size", foreign.file ? foreign.file->bytes().size() : 0},
              {"supported", false},
              {"metadata", Json::object()},
              {"inputs", Json::array()},
              {"outputs", Json::array()}};
    if (program)
        add_program(*program, d.json);
    else
        add_refused(*model, d.json);
    if (model && model->graph) add_weights(*model->graph, d.json);

    const OpCounts counts = model ? count_foreign(*model) : count_own(*program);
    std::vector<OpCount> ops;
    for (const auto& [key, op] : counts) ops.push_back(op);
    std::sort(ops.begin(), ops.end(), [](const OpCount& a, const OpCount& b) {
        return a.count != b.count ? a.count > b.count : a.name < b.name;
    });
    d.json["ops"] = Json::array();
    for (const OpCount& op : ops)
        d.json["ops"].push_back(
            {{"name", op.name}, {"domain", op.domain}, {"count", op.count}, {"supported", op.is_supported}});
    if (program) {
        try {
            d.json["manifest"] = planned_manifest(std::move(*program), path, d.diagnostics);
            d.json["supported"] = true;
        } catch (const Refused& refused) {
            d.diagnostics = refused.diagnostics();
        }
    }
    d.text = as_text(d.json);
    return d;
}

} // namespace cuvil::cli
