#include "import/onnx/node.hpp"

#include "import/onnx/graph.hpp"
#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cuvil::onnx {
namespace {

std::string_view name_of(AttributeType type) {
    static constexpr std::array<std::string_view, 10> names{
        "nothing", "a float",          "an integer",         "a string",          "a tensor",
        "a graph", "a list of floats", "a list of integers", "a list of strings", "another kind"};
    return names[static_cast<size_t>(type)];
}

} // namespace

void bad_attribute(const std::string& reason) { throw ImportError("bad-attribute", reason); }

Node::Node(const NodeProto& proto, int64_t opset, Values inputs, std::vector<bool> wanted, GraphImporter& importer,
           Scope& scope)
    : build(importer.builder()), opset(opset), proto_(proto), inputs_(std::move(inputs)), wanted_(std::move(wanted)),
      importer_(importer), scope_(scope) {}

Value& Node::input(size_t i) const {
    if (!has_input(i)) throw ImportError("bad-node", fmt::format("input {} is missing", i));
    return *inputs_[i];
}

const AttributeProto* Node::find(std::string_view name, AttributeType type) const {
    for (const AttributeProto& attribute : proto_.attributes) {
        if (attribute.name != name) continue;
        const AttributeProto* given = scope_.resolve(attribute);
        if (given && given->type != type)
            bad_attribute(
                fmt::format("attribute \"{}\" is {}, expected {}", name, name_of(given->type), name_of(type)));
        return given;
    }
    return nullptr;
}

bool Node::has_attribute(std::string_view name) const {
    for (const AttributeProto& attribute : proto_.attributes)
        if (attribute.name == name) return scope_.resolve(attribute) != nullptr;
    return false;
}

int64_t Node::integer(std::string_view name, std::optional<int64_t> fallback) const {
    if (const AttributeProto* given = find(name, AttributeType::Int)) return given->i;
    if (!fallback) bad_attribute(fmt::format("attribute \"{}\" is missing", name));
    return *fallback;
}

double Node::real(std::string_view name, std::optional<double> fallback) const {
    if (const AttributeProto* given = find(name, AttributeType::Float)) return given->f;
    if (!fallback) bad_attribute(fmt::format("attribute \"{}\" is missing", name));
    return *fallback;
}

std::string_view Node::text(std::string_view name, std::string_view fallback) const {
    const AttributeProto* given = find(name, AttributeType::String);
    return given ? given->s : fallback;
}

std::optional<std::vector<int64_t>> Node::integers(std::string_view name) const {
    const AttributeProto* given = find(name, AttributeType::Ints);
    return given ? std::optional(given->ints) : std::nullopt;
}

std::optional<std::vector<float>> Node::reals(std::string_view name) const {
    const AttributeProto* given = find(name, AttributeType::Floats);
    return given ? std::optional(given->floats) : std::nullopt;
}

std::optional<std::vector<std::string_view>> Node::texts(std::string_view name) const {
    const AttributeProto* given = find(name, AttributeType::Strings);
    return given ? std::optional(given->strings) : std::nullopt;
}

const TensorProto* Node::tensor(std::string_view name) const {
    const AttributeProto* given = find(name, AttributeType::Tensor);
    return given ? given->tensor.get() : nullptr;
}

const GraphProto& Node::graph(std::string_view name) const {
    const AttributeProto* given = find(name, AttributeType::Graph);
    if (!given) bad_attribute(fmt::format("attribute \"{}\" is missing", name));
    return *given->graph;
}

int64_t Node::axis(std::string_view name, std::optional<int64_t> fallback, int64_t rank) const {
    return normal_axis(integer(name, fallback), rank);
}

Value& Node::integers_of(size_t i) const {
    Value& value = input(i);
    DType dtype = value.type().dtype();
    if (dtype != DType::I64 && dtype != DType::I32)
        throw ImportError("type-mismatch", fmt::format("input {} is {}, expected integers", i, value.type().text()));
    return value;
}

std::vector<Dim> Node::sizes(size_t i) const { return build.sizes_of(integers_of(i)); }

std::vector<Dim> Node::counts(size_t i, std::string_view what) const { return build.counts_of(integers_of(i), what); }

std::optional<std::vector<int64_t>> Node::known_numbers(size_t i) const {
    const Value& value = integers_of(i);
    std::vector<int64_t> numbers;
    if (checked_count(value.type().shape()).is(0)) return numbers;
    if (!value.elements()) return std::nullopt;
    for (const Dim& size : *value.elements()) {
        auto number = size.constant();
        if (!number) return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

std::vector<int64_t> Node::numbers(size_t i) const {
    if (auto numbers = known_numbers(i)) return *numbers;
    const auto& elements = input(i).elements();
    if (!elements)
        throw ImportError("data-dependent-shape",
                          fmt::format("input {}, {}, depends on data and decides the shape of the result", i,
                                      quoted(proto_.inputs.at(i))),
                          "only a constant will do here");
    auto size = std::ranges::find_if(*elements, [](const Dim& d) { return !d.constant(); });
    throw ImportError("data-dependent-shape",
                      fmt::format("input {}, {}, depends on the size {}", i, quoted(proto_.inputs.at(i)), size->text()),
                      "fix the sizes of the inputs when compiling");
}

std::optional<std::vector<int64_t>> Node::numbers(size_t i, std::string_view attribute) const {
    return has_input(i) ? std::optional(numbers(i)) : integers(attribute);
}

std::vector<double> Node::reals(size_t i) const {
    auto known = build.constant_reals(input(i));
    if (!known)
        throw ImportError("data-dependent-shape",
                          fmt::format("input {}, {}, is not constant", i, quoted(proto_.inputs.at(i))));
    return *known;
}

Value& Node::constant(const TensorProto& tensor, std::string_view what) const {
    return importer_.constant(tensor, std::string(what));
}

Values Node::import_body(const GraphProto& graph, const Values& arguments) const {
    return importer_.import_body(graph, arguments, scope_);
}

Value& Node::poison() const { return importer_.poison(); }

void Node::unsupported(const std::string& reason) const { throw ImportError("unsupported-op", reason); }

void expect_rank(const Node& node, size_t input, int64_t rank) {
    if (node.type(input).rank() != rank)
        throw ImportError("shape-mismatch",
                          fmt::format("input {} is {}, expected rank {}", input, node.type(input).text(), rank));
}

} // namespace cuvil::onnx
