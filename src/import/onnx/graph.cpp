// Graphs: which of their nodes are needed, and in which order.
#include "import/onnx/graph.hpp"

#include "support/diagnostics.hpp"
#include "support/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

namespace cuvil::onnx {
namespace {

template <class Take> void each_free_name(const GraphProto& graph, const Take& take);

// Calls `take` for the names that a node reads, those in its subgraphs included.
template <class Take> void each_reference(const NodeProto& node, const Take& take) {
    for (std::string_view input : node.inputs)
        if (!input.empty()) take(input);
    for (const AttributeProto& attribute : node.attributes)
        if (attribute.graph) each_free_name(*attribute.graph, std::function<void(std::string_view)>(take));
}

template <class Take> void each_free_name(const GraphProto& graph, const Take& take) {
    std::unordered_set<std::string_view> own;
    for (const ValueInfoProto& input : graph.inputs) own.insert(input.name);
    for (const TensorProto& initializer : graph.initializers) own.insert(initializer.name);
    for (std::string_view name : graph.sparse_initializers) own.insert(name);
    for (const NodeProto& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
    auto outer = [&](std::string_view name) {
        if (!own.contains(name)) take(name);
    };
    for (const NodeProto& node : graph.nodes) each_reference(node, outer);
    for (const ValueInfoProto& output : graph.outputs) outer(output.name);
}

size_t count_nodes(const std::vector<NodeProto>& nodes) {
    size_t count = nodes.size();
    for (const NodeProto& node : nodes)
        for (const AttributeProto& attribute : node.attributes)
            if (attribute.graph) count += count_nodes(attribute.graph->nodes);
    return count;
}

} // namespace

Value* const* Scope::find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->parent)
        if (auto found = scope->values.find(name); found != scope->values.end()) return &found->second;
    return nullptr;
}

bool Scope::is_initializer(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->parent)
        if (scope->values.contains(name)) return scope->initializers.contains(name);
    return false;
}

bool is_default_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

const OpsetProto* find_opset(const std::vector<OpsetProto>& opsets, std::string_view domain) {
    for (const OpsetProto& opset : opsets)
        if (opset.domain == domain || (is_default_domain(opset.domain) && is_default_domain(domain))) return &opset;
    return nullptr;
}

const AttributeProto* Scope::resolve(const AttributeProto& attribute) const {
    if (attribute.reference.empty()) return &attribute;
    auto found = frame->attributes.find(attribute.reference);
    return found == frame->attributes.end() ? nullptr : found->second;
}

GraphImporter::GraphImporter(const ModelProto& model, Program& program, TensorReader tensors, std::string file,
                             const CompileOptions& options, Diagnostics& diag)
    : model_(model), program_(program), function_(program.add_function("main")), builder_(program, function_),
      tensors_(std::move(tensors)), file_(std::move(file)), options_(options), diag_(&diag),
      steps_left_(200'000 + 16 * count_nodes(model.graph->nodes)) {}

void GraphImporter::import() {
    const GraphProto& graph = *model_.graph;
    Frame frame{.opsets = &model_.opsets};
    Scope scope{.frame = &frame};
    import_inputs(graph, scope);
    if (graph.outputs.empty()) diag_->error("no-outputs", "the model has no outputs", {file_, ""});
    Names outputs;
    for (const ValueInfoProto& output : graph.outputs)
        if (!outputs.insert(output.name).second)
            diag_->error("duplicate-name", fmt::format("two outputs have the name {}", quoted(output.name)),
                         {file_, ""});
    for (const ValueInfoProto& output : graph.outputs) scope.declared.emplace(output.name, &output);
    for (const ValueInfoProto& value : graph.values) scope.declared.emplace(value.name, &value);
    import_contents(graph.nodes, &graph, outputs, scope);
    import_outputs(graph, scope);
    report_unsupported();
}

Values GraphImporter::import_body(const GraphProto& graph, const Values& arguments, const Scope& outer) {
    Scope scope{.frame = outer.frame, .parent = &outer};
    for (size_t i = 0; i < graph.inputs.size() && i < arguments.size(); i++)
        scope.values.emplace(graph.inputs[i].name, arguments[i]);
    Names outputs;
    for (const ValueInfoProto& output : graph.outputs) outputs.insert(output.name);
    Location place = builder_.rewriter().location();
    import_contents(graph.nodes, &graph, outputs, scope);
    builder_.rewriter().set_location(std::move(place));
    Values results;
    for (const ValueInfoProto& output : graph.outputs) {
        Value* const* found = scope.find(output.name);
        results.push_back(found && *found ? *found : &poison_);
    }
    return results;
}

void GraphImporter::import_contents(const std::vector<NodeProto>& nodes, const GraphProto* graph, const Names& outputs,
                                    Scope& scope) {
    if (graph) {
        for (const TensorProto& initializer : graph->initializers) {
            bool is_input = scope.values.contains(initializer.name);
            if (!scope.initializers.insert(initializer.name).second || (is_input && scope.parent))
                diag_->error("duplicate-name",
                             fmt::format("two initializers or inputs have the name {}", quoted(initializer.name)),
                             {file_, ""});
            if (is_input) scope.initializers.erase(initializer.name);
        }
        scope.initializers.insert(graph->sparse_initializers.begin(), graph->sparse_initializers.end());
    }
    std::vector<const NodeProto*> order = sort(nodes, outputs, scope);

    // What the outputs do not need is not built.
    Names used = outputs;
    std::vector<const NodeProto*> live;
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
        if (std::none_of((*node)->outputs.begin(), (*node)->outputs.end(),
                         [&](std::string_view name) { return used.contains(name); }))
            continue;
        each_reference(**node, [&](std::string_view name) { used.insert(name); });
        live.push_back(*node);
    }
    if (graph) import_initializers(*graph, used, scope);
    for (auto node = live.rbegin(); node != live.rend(); ++node) import_node(**node, used, scope);
}

void GraphImporter::import_initializers(const GraphProto& graph, const Names& used, Scope& scope) {
    std::map<std::string, std::vector<std::string>> in_file; // that cannot be used
    for (const TensorProto& initializer : graph.initializers) {
        if (!used.contains(initializer.name) || !scope.initializers.contains(initializer.name)) continue;
        if (scope.values.contains(initializer.name)) continue;
        try {
            builder_.rewriter().set_location({file_, std::string(initializer.name)});
            Value& value = constant(initializer, fmt::format("initializer {}", quoted(initializer.name)));
            value.set_name(std::string(initializer.name));
            scope.values.emplace(initializer.name, &value);
        } catch (const DataFileError& error) {
            Diagnostic& d = diag_->error(error.code, error.what(), {file_, ""});
            in_file[error.what()].push_back(quoted(initializer.name));
            d.help = error.help;
            d.count = 1; // the fault is the file's
            d.notes = {"it is needed for " + some_of(in_file[error.what()])};
            scope.values.emplace(initializer.name, &poison_);
        } catch (const ImportError& error) {
            diag_->error(error.code, error.what(), {file_, ""}).help = error.help;
            scope.values.emplace(initializer.name, &poison_);
        }
    }
    for (std::string_view name : graph.sparse_initializers) {
        if (!used.contains(name)) continue;
        diag_->error("unsupported-type", fmt::format("initializer {} is a sparse tensor", quoted(name)), {file_, ""});
        scope.values.emplace(name, &poison_);
    }
}

Value& GraphImporter::constant(const TensorProto& proto, const std::string& what) {
    if (auto known = weights_.find(&proto); known != weights_.end()) return builder_.rewriter().weight(known->second);
    Tensor tensor = tensors_.read(proto, what);
    auto count = element_count(tensor.type.shape()).constant();
    if (count && *count <= 64)
        return builder_.rewriter().constant(
            tensor.type, std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()));
    std::string name = proto.name.empty() ? builder_.rewriter().location().name : std::string(proto.name);
    name = program_.add_weight(std::move(name), tensor.type, tensor.bytes, tensor.storage);
    return builder_.rewriter().weight(weights_.emplace(&proto, std::move(name)).first->second);
}

// The nodes in an order in which each follows what it reads; otherwise as in the file. Reports names that nothing or
// two nodes define, and cycles; what depends on them is poison.
std::vector<const NodeProto*> GraphImporter::sort(const std::vector<NodeProto>& nodes, const Names& outputs,
                                                  Scope& scope) {
    std::unordered_map<std::string_view, size_t> makers;
    for (size_t i = 0; i < nodes.size(); i++) {
        for (std::string_view name : nodes[i].outputs) {
            if (name.empty()) continue;
            bool is_taken =
                scope.values.contains(name) || scope.initializers.contains(name) || !makers.emplace(name, i).second;
            if (is_taken)
                diag_->error("duplicate-name", fmt::format("{} is defined twice", quoted(name)),
                             location(nodes[i], scope));
        }
    }
    auto check_defined = [&](std::string_view name, const Location& where) {
        if (makers.contains(name) || scope.initializers.contains(name) || scope.find(name)) return;
        diag_->error("undefined-value",
                     fmt::format("{} is not defined: no input, initializer or node output has this name", quoted(name)),
                     where);
        scope.values.emplace(name, &poison_);
    };

    std::vector<std::vector<size_t>> waits_for(nodes.size()), feeds(nodes.size());
    std::vector<size_t> missing(nodes.size());
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < nodes.size(); i++) {
        each_reference(nodes[i], [&](std::string_view name) {
            check_defined(name, location(nodes[i], scope));
            if (auto maker = makers.find(name); maker != makers.end()) waits_for[i].push_back(maker->second);
        });
        std::sort(waits_for[i].begin(), waits_for[i].end());
        waits_for[i].erase(std::unique(waits_for[i].begin(), waits_for[i].end()), waits_for[i].end());
        for (size_t maker : waits_for[i]) feeds[maker].push_back(i);
        missing[i] = waits_for[i].size();
        if (missing[i] == 0) ready.push(i);
    }
    for (std::string_view name : outputs) check_defined(name, {file_, ""});

    std::vector<const NodeProto*> order;
    while (!ready.empty()) {
        size_t i = ready.top();
        ready.pop();
        order.push_back(&nodes[i]);
        for (size_t next : feeds[i])
            if (--missing[next] == 0) ready.push(next);
    }
    if (order.size() != nodes.size()) report_cycle(nodes, waits_for, missing, scope);
    for (size_t i = 0; i < nodes.size(); i++)
        if (missing[i] != 0)
            for (std::string_view name : nodes[i].outputs) scope.values.emplace(name, &poison_);
    return order;
}

void GraphImporter::report_cycle(const std::vector<NodeProto>& nodes, const std::vector<std::vector<size_t>>& waits_for,
                                 const std::vector<size_t>& missing, const Scope& scope) {
    // Each node that is left waits for one that is left: following them leads into a cycle.
    auto at = static_cast<size_t>(std::find_if(missing.begin(), missing.end(), [](size_t n) { return n != 0; }) -
                                  missing.begin());
    std::vector<size_t> path;
    std::vector<bool> seen(nodes.size());
    while (!seen[at]) {
        seen[at] = true;
        path.push_back(at);
        at = *std::find_if(waits_for[at].begin(), waits_for[at].end(),
                           [&](size_t maker) { return missing[maker] != 0; });
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    std::reverse(path.begin(), path.end());
    std::vector<std::string> names;
    for (size_t i = 0; i < path.size() && i < 8; i++)
        names.push_back(cuvil::quoted(location(nodes[path[i]], scope).name));
    if (path.size() > names.size()) names.emplace_back("...");
    diag_
        ->error("cycle",
                fmt::format("the graph has a cycle of {} {}", path.size(), path.size() == 1 ? "node" : "nodes"),
                location(nodes[path[0]], scope))
        .note(fmt::format("the cycle is {}", fmt::join(names, " -> ")));
}

} // namespace cuvil::onnx
