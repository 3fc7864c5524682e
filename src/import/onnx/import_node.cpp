// One node: its inputs are looked up, its row or function is built, what goes wrong is reported.
#include "import/onnx/graph.hpp"

#include "import/onnx/rows.hpp"
#include "support/diagnostics.hpp"
#include "support/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <new>

namespace cuvil::onnx {
namespace {

constexpr int deepest_call = 64;

int64_t opset_of(const Frame& frame, std::string_view domain) {
    const OpsetProto* found = find_opset(*frame.opsets, domain);
    return found ? found->version : 0;
}

const Row* row_of(const NodeProto& node, const Frame& frame) {
    return find_row(node.op_type, opset_of(frame, node.domain), is_default_domain(node.domain) ? "" : node.domain);
}

std::string operator_text(const NodeProto& node, const Frame& frame) {
    int64_t opset = opset_of(frame, node.domain);
    return fmt::format("operator {} (domain {}, {})", quoted(node.op_type),
                       quoted(is_default_domain(node.domain) ? "ai.onnx" : node.domain),
                       opset == 0 ? "not imported" : fmt::format("opset {}", opset));
}

std::string first_name(const NodeProto& node) {
    if (!node.name.empty()) return std::string(node.name);
    for (std::string_view output : node.outputs)
        if (!output.empty()) return std::string(output);
    return std::string(node.op_type);
}

} // namespace

Location GraphImporter::location(const NodeProto& node, const Scope& scope) const {
    return {file_, scope.frame->prefix + first_name(node)};
}

void GraphImporter::import_node(const NodeProto& node, const Names& used, Scope& scope) {
    if (options_.cancel && options_.cancel->load(std::memory_order_relaxed)) throw Cancelled();
    Values results;
    Location place = location(node, scope);
    builder_.rewriter().set_location(place);
    try {
        if (steps_left_ == 0)
            throw ImportError("too-complex", "loops and functions of the model unfold to too many nodes");
        steps_left_--;
        Values inputs;
        bool is_poisoned = false;
        for (std::string_view name : node.inputs) {
            Value* const* found = name.empty() ? nullptr : scope.find(name);
            inputs.push_back(found ? *found : nullptr);
            is_poisoned = is_poisoned || (!name.empty() && !found) || inputs.back() == &poison_;
        }
        while (!inputs.empty() && !inputs.back()) inputs.pop_back();
        const FunctionProto* function = find_function(node);
        const Row* row = row_of(node, *scope.frame);
        if (!function && !row) note_unsupported(node, scope);
        if (is_poisoned || (!function && !row)) {
            // Its subgraphs may have faults of their own.
            for (const AttributeProto& attribute : node.attributes)
                if (attribute.graph)
                    import_body(*attribute.graph, Values(attribute.graph->inputs.size(), &poison_), scope);
            results.assign(node.outputs.size(), &poison_);
        } else {
            results = function ? call(node, *function, inputs, scope) : build(node, used, scope, std::move(inputs));
        }
        for (size_t i = 0; i < node.outputs.size(); i++) {
            bool is_there = i < results.size() && results[i];
            if (!is_there && !node.outputs[i].empty() && used.contains(node.outputs[i]))
                throw ImportError("unsupported-op", fmt::format("its output {} is used", quoted(node.outputs[i])));
            if (is_there && results[i] != &poison_) check_complexity(*results[i]);
        }
    } catch (const ImportError& error) {
        report(error, node, scope,
               error.code == "unsupported-op"
                   ? fmt::format("{} is not supported: {}", operator_text(node, *scope.frame), error.what())
                   : fmt::format("{}: {}", node.op_type, error.what()));
        results.clear();
    } catch (const InferenceError& error) {
        report(ImportError("shape-mismatch", error.what()), node, scope, error.what());
        results.clear();
    } catch (const DimOverflow&) {
        ImportError error("too-complex", "a size exceeds 64 bits");
        report(error, node, scope, fmt::format("{}: {}", node.op_type, error.what()));
        results.clear();
    } catch (const std::bad_alloc&) {
        ImportError error("too-complex", "it does not fit in memory");
        report(error, node, scope, fmt::format("{}: {}", node.op_type, error.what()));
        results.clear();
    }
    for (size_t i = 0; i < node.outputs.size(); i++) {
        if (node.outputs[i].empty()) continue;
        Value* value = i < results.size() && results[i] ? results[i] : &poison_;
        if (value->producer() && value->name().empty()) value->set_name(std::string(node.outputs[i]));
        scope.values.emplace(node.outputs[i], value);
        if (value != &poison_) check_declared(node.outputs[i], value->type(), place, scope);
    }
}

Values GraphImporter::build(const NodeProto& node, const Names& used, Scope& scope, Values inputs) {
    int64_t opset = opset_of(*scope.frame, node.domain);
    const Row& row = *row_of(node, *scope.frame);
    for (const AttributeProto& attribute : node.attributes)
        if (!has_attribute(row, attribute.name))
            bad_attribute(fmt::format("it has no attribute {} in opset {}", quoted(attribute.name), opset));
    auto count = static_cast<int64_t>(inputs.size());
    if (count < row.least_inputs || count > row.most_inputs)
        throw ImportError("bad-node",
                          fmt::format("it has {}, expected {}", counted(static_cast<size_t>(count), "input"),
                                      row.least_inputs == row.most_inputs ? fmt::format("{}", row.least_inputs)
                                      : row.most_inputs == any
                                          ? fmt::format("at least {}", row.least_inputs)
                                          : fmt::format("{} to {}", row.least_inputs, row.most_inputs)));
    for (size_t i = 0; i < inputs.size(); i++) {
        if (!inputs[i] || inputs[i]->type().has_rank()) continue;
        if (!inputs[i]->type().is_tensor() && static_cast<int>(i) >= row.lists)
            throw ImportError("unsupported-op", fmt::format("input {}, {}, is a sequence or an empty optional", i,
                                                            quoted(node.inputs[i])));
        if (inputs[i]->type().is_tensor())
            throw ImportError("unknown-rank",
                              fmt::format("the shape of input {}, {}, is not known", i, quoted(node.inputs[i])),
                              "give the sizes of the model's inputs: --input-shape NAME:2x3 or --dynamic NAME:N,3, in "
                              "Python input_shapes or dynamic_shapes");
    }
    std::vector<bool> wanted;
    for (std::string_view name : node.outputs) wanted.push_back(!name.empty() && used.contains(name));
    Node view(node, opset, std::move(inputs), std::move(wanted), *this, scope);
    return row.build(view);
}

const FunctionProto* GraphImporter::find_function(const NodeProto& node) const {
    for (const FunctionProto& function : model_.functions)
        if (function.name == node.op_type && function.overload == node.overload &&
            (function.domain == node.domain || (is_default_domain(function.domain) && is_default_domain(node.domain))))
            return &function;
    return nullptr;
}

// Builds the function's nodes in place of the call.
Values GraphImporter::call(const NodeProto& node, const FunctionProto& function, const Values& inputs,
                           const Scope& scope) {
    Frame frame{
        .opsets = &function.opsets, .prefix = location(node, scope).name + "/", .depth = scope.frame->depth + 1};
    if (frame.depth > deepest_call)
        throw ImportError("too-complex", fmt::format("functions call each other more than {} deep", deepest_call));
    for (const AttributeProto& given : function.defaults) frame.attributes[given.name] = &given;
    for (const AttributeProto& given : node.attributes)
        if (const AttributeProto* resolved = scope.resolve(given)) frame.attributes[given.name] = resolved;
    if (inputs.size() > function.inputs.size())
        throw ImportError("bad-node", fmt::format("it has {}, the function takes {}", counted(inputs.size(), "input"),
                                                  function.inputs.size()));
    Scope inner{.frame = &frame};
    for (size_t i = 0; i < function.inputs.size(); i++)
        inner.values.emplace(function.inputs[i], i < inputs.size() ? inputs[i] : nullptr);
    Names outputs(function.outputs.begin(), function.outputs.end());
    import_contents(function.nodes, nullptr, outputs, inner);
    builder_.rewriter().set_location(location(node, scope));
    Values results;
    for (std::string_view name : function.outputs) {
        Value* const* found = inner.find(name);
        results.push_back(found ? *found : &poison_);
    }
    return results;
}

void GraphImporter::append(const Diagnostics& diagnostics) {
    for (const Diagnostic& d : diagnostics.all()) {
        bool is_error = d.severity == Severity::Error;
        Diagnostic& added =
            is_error ? diag_->error(d.code, d.message, d.where) : diag_->warning(d.code, d.message, d.where);
        added.count += d.count - 1;
        added.excerpt = d.excerpt;
        added.notes = d.notes;
        added.help = d.help;
    }
}

// "y" = MatMul "x", "w" : f32[N,512] x f32[256,512]
std::string GraphImporter::excerpt(const NodeProto& node, const Scope& scope) const {
    std::vector<std::string> outputs, inputs, types;
    for (std::string_view name : node.outputs) outputs.push_back(name.empty() ? "_" : quoted(name));
    for (std::string_view name : node.inputs) {
        inputs.push_back(name.empty() ? "_" : quoted(name));
        Value* const* found = name.empty() ? nullptr : scope.find(name);
        types.push_back(found && *found ? (*found)->type().text() : "_");
    }
    return fmt::format("{} = {} {} : {}", fmt::join(outputs, ", "), node.op_type, fmt::join(inputs, ", "),
                       fmt::join(types, " x "));
}

void GraphImporter::report(const ImportError& error, const NodeProto& node, const Scope& scope, std::string message) {
    Diagnostic& d = diag_->error(error.code, std::move(message), location(node, scope));
    if (d.count > 1) return;
    if (!node.inputs.empty()) d.show(excerpt(node, scope));
    if (error.code == "shape-mismatch" || error.code == "type-mismatch")
        for (std::string_view name : node.inputs)
            if (scope.is_initializer(name)) d.note(quoted(name) + " is an initializer");
    if (!error.help.empty()) d.suggest(error.help);
}

void GraphImporter::note_unsupported(const NodeProto& node, const Scope& scope) {
    std::string message = operator_text(node, *scope.frame) + " is not supported";
    auto [at, is_new] = unsupported_.try_emplace(message);
    Unsupported& entry = at->second;
    if (!entry.nodes.insert(&node).second) return;
    Location place = location(node, scope);
    entry.names.push_back(place.name);
    if (!is_new) return;
    entry.first = place;
    unsupported_order_.push_back(message);
    entry.help = "`cuvil ops` lists the operators that there are: replace it by some of them before the export";
    if (!is_default_domain(node.domain)) return;
    std::vector<const Row*> like = rows_like(node.op_type);
    if (!like.empty() && like[0]->name != node.op_type) {
        entry.help = fmt::format("did you mean {}?", quoted(like[0]->name));
    } else if (!like.empty()) {
        std::vector<std::string> ranges;
        for (const Row* row : like) {
            if (row->name != node.op_type) continue;
            ranges.push_back(row->until == newest ? fmt::format("{} and newer", row->since)
                                                  : fmt::format("{} to {}", row->since, row->until));
        }
        entry.help = fmt::format("it is supported in opset {}", fmt::join(ranges, ", "));
    }
}

void GraphImporter::report_unsupported() {
    for (const std::string& message : unsupported_order_) {
        const Unsupported& entry = unsupported_.at(message);
        Diagnostic& d = diag_->error("unsupported-op", message, entry.first);
        std::vector<std::string> more;
        for (size_t i = 1; i < entry.names.size(); i++) more.push_back(cuvil::quoted(entry.names[i]));
        if (!more.empty()) d.note("also " + some_of(more));
        d.help = entry.help;
    }
}

} // namespace cuvil::onnx
