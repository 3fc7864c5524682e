// What the builder of a row sees of a node: inputs as values, attributes with their kinds checked.
#pragma once

#include "import/builder.hpp"
#include "import/onnx/proto.hpp"
#include "import/onnx/tensor.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::onnx {

class GraphImporter;
struct Scope;

// The outputs of a node. One that is left out or nullptr may not be used by the model.
using Values = std::vector<Value*>;

// All members throw ImportError where the model is wrong. Inputs are tensors of known rank.
class Node {
public:
    Node(const NodeProto& proto, int64_t opset, Values inputs, std::vector<bool> wanted, GraphImporter& importer,
         Scope& scope);

    GraphBuilder& build;
    const int64_t opset;

    size_t input_count() const { return inputs_.size(); }
    bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i]; }
    Value& input(size_t i) const;
    Value* optional_input(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
    std::span<Value* const> inputs() const { return inputs_; }
    const Type& type(size_t i) const { return input(i).type(); }

    size_t output_count() const { return wanted_.size(); }
    // Something in the model uses this output.
    bool wants(size_t output) const { return output < wanted_.size() && wanted_[output]; }

    bool has_attribute(std::string_view name) const;
    int64_t integer(std::string_view name, std::optional<int64_t> fallback = {}) const; // required without fallback
    double real(std::string_view name, std::optional<double> fallback = {}) const;
    std::string_view text(std::string_view name, std::string_view fallback) const;
    std::optional<std::vector<int64_t>> integers(std::string_view name) const;
    std::optional<std::vector<float>> reals(std::string_view name) const;
    std::optional<std::vector<std::string_view>> texts(std::string_view name) const;
    const TensorProto* tensor(std::string_view name) const; // nullptr: not given
    const GraphProto& graph(std::string_view name) const;
    // An axis attribute, counted from the front.
    int64_t axis(std::string_view name, std::optional<int64_t> fallback, int64_t rank) const;

    // The elements of an integer input as sizes; those that only data shows are read while running.
    std::vector<Dim> sizes(size_t i) const;
    // The same where `what` may not be negative.
    std::vector<Dim> counts(size_t i, std::string_view what) const;
    // The same where only numbers that are known when compiling will do.
    std::vector<int64_t> numbers(size_t i) const;
    // Nothing where they are not known.
    std::optional<std::vector<int64_t>> known_numbers(size_t i) const;
    // The elements of input `i`, else of the attribute; nothing when both are left out.
    std::optional<std::vector<int64_t>> numbers(size_t i, std::string_view attribute) const;

    // The elements of a floating-point input that must be constant.
    std::vector<double> reals(size_t i) const;

    // The tensor of an attribute as a constant.
    Value& constant(const TensorProto& tensor, std::string_view what) const;
    // Builds a subgraph at the current place and returns its outputs; it sees the values around the node.
    Values import_body(const GraphProto& graph, const Values& arguments) const;
    // Stands for a value that could not be built; what it reaches is not built either, and reports no error.
    Value& poison() const;
    bool is_poison(const Value* value) const { return value == &poison(); }
    GraphImporter& importer() const { return importer_; }

    // "unsupported-op": the definition allows it, Cuvil does not have it.
    [[noreturn]] void unsupported(const std::string& reason) const;

private:
    Value& integers_of(size_t i) const;
    const AttributeProto* find(std::string_view name, AttributeType type) const;

    const NodeProto& proto_;
    Values inputs_;
    std::vector<bool> wanted_;
    GraphImporter& importer_;
    Scope& scope_;
};

[[noreturn]] void bad_attribute(const std::string& reason);
// Throws ImportError ("shape-mismatch") where the input has another rank.
void expect_rank(const Node& node, size_t input, int64_t rank);

} // namespace cuvil::onnx
