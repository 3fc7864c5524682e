// Walks a model's graphs and builds each node by its row.
#pragma once

#include "cuvil/compile.hpp"
#include "import/builder.hpp"
#include "import/onnx/node.hpp"
#include "import/onnx/proto.hpp"
#include "import/onnx/tensor.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cuvil::onnx {

// The definition's own operators, whose domain may be left out.
bool is_default_domain(std::string_view domain);
// The operator set of a domain, the first of several; nullptr: it is not imported.
const OpsetProto* find_opset(const std::vector<OpsetProto>& opsets, std::string_view domain);

// The model, or one call of a function of the model: what its nodes take for granted.
struct Frame {
    const std::vector<OpsetProto>* opsets;
    std::map<std::string_view, const AttributeProto*> attributes = {}; // of the call
    std::string prefix = {};                                           // of its nodes' names in messages
    int depth = 0;
};

// The names that the nodes of one graph see. A name with nullptr is an input of a function that the call leaves out.
struct Scope {
    const Frame* frame;
    const Scope* parent = nullptr; // the graph around a subgraph
    std::unordered_map<std::string_view, Value*> values = {};
    std::unordered_set<std::string_view> initializers = {};
    // What the file says of values that no node has made yet; the model's graph only, since sizes within a loop may
    // differ from turn to turn.
    std::unordered_map<std::string_view, const ValueInfoProto*> declared = {};

    Value* const* find(std::string_view name) const;
    bool is_initializer(std::string_view name) const;
    // The attribute itself, or what the call of the function gives for it: nullptr when that is nothing.
    const AttributeProto* resolve(const AttributeProto& attribute) const;
};

class GraphImporter {
public:
    // All arguments are referred to until the import is done.
    GraphImporter(const ModelProto& model, Program& program, TensorReader tensors, std::string file,
                  const CompileOptions& options, Diagnostics& diag);

    // The model's graph as the function "main". Faults are in the diagnostics; then the program is not complete.
    void import();

    // For rows that have subgraphs.
    Values import_body(const GraphProto& graph, const Values& arguments, const Scope& outer);
    GraphBuilder& builder() { return builder_; }
    Value& constant(const TensorProto& tensor, const std::string& what);
    Value& poison() { return poison_; }
    // Sends diagnostics elsewhere for a try; returns where they went before.
    Diagnostics* redirect(Diagnostics* to) { return std::exchange(diag_, to); }
    void append(const Diagnostics& diagnostics);
    // For each carried value and axis of a loop: whether the body is known to change the size. Kept, so that a loop
    // inside others is not found out anew for each of their tries.
    std::vector<std::vector<bool>>& changing_sizes(const GraphProto& body) { return changing_sizes_[&body]; }

private:
    using Names = std::unordered_set<std::string_view>;
    struct Unsupported {
        Location first;
        std::string help;
        std::vector<std::string> names;
        std::unordered_set<const NodeProto*> nodes;
    };

    void import_inputs(const GraphProto& graph, Scope& scope);
    Type input_type(const ValueInfoProto& input, const std::vector<int64_t>* fixed);
    Shape dynamic_shape(const ValueInfoProto& input, const std::vector<std::string>& sizes);
    void import_default(const ValueInfoProto& input, const TensorProto& initializer, FuncIR::Port& port, Type& type);
    std::map<std::string_view, int64_t> fixed_symbols(const GraphProto& graph);
    void import_outputs(const GraphProto& graph, Scope& scope);
    // Refuses what the file says of a value where inference contradicts it. What says more is not relied on: exporters
    // leave sizes behind that hold no longer.
    void check_declared(std::string_view name, const Type& type, const Location& where, Scope& scope);
    // Initialisers and nodes of one graph, as far as `outputs` need them.
    void import_contents(const std::vector<NodeProto>& nodes, const GraphProto* graph, const Names& outputs,
                         Scope& scope);
    void import_initializers(const GraphProto& graph, const Names& used, Scope& scope);
    std::vector<const NodeProto*> sort(const std::vector<NodeProto>& nodes, const Names& outputs, Scope& scope);
    void report_cycle(const std::vector<NodeProto>& nodes, const std::vector<std::vector<size_t>>& waits_for,
                      const std::vector<size_t>& missing, const Scope& scope);
    void import_node(const NodeProto& node, const Names& used, Scope& scope);
    Values build(const NodeProto& node, const Names& used, Scope& scope, Values inputs);
    Values call(const NodeProto& node, const FunctionProto& function, const Values& inputs, const Scope& scope);
    void report(const ImportError& error, const NodeProto& node, const Scope& scope, std::string message);
    void note_unsupported(const NodeProto& node, const Scope& scope);
    void report_unsupported();
    const FunctionProto* find_function(const NodeProto& node) const;
    Location location(const NodeProto& node, const Scope& scope) const;
    std::string excerpt(const NodeProto& node, const Scope& scope) const;

    const ModelProto& model_;
    Program& program_;
    FuncIR& function_;
    GraphBuilder builder_;
    TensorReader tensors_;
    std::string file_;
    const CompileOptions& options_;
    Diagnostics* diag_;
    Value poison_{Type(), ""};
    std::map<std::string_view, Dim> symbols_; // the model's names of sizes
    std::map<const TensorProto*, std::string> weights_;
    std::map<const GraphProto*, std::vector<std::vector<bool>>> changing_sizes_;
    std::map<std::string, Unsupported> unsupported_;
    std::vector<std::string> unsupported_order_;
    size_t steps_left_;
};

} // namespace cuvil::onnx
