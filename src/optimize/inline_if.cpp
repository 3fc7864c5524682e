// An `if` whose condition is a constant becomes the branch that it takes.
#include "ir/rewriter.hpp"
#include "optimize/passes.hpp"

#include <map>

namespace cuvil {
namespace {

// Sizes that only the taken branch knows: symbols of the results of the `if`, and what they are.
using Sizes = std::map<std::string, Dim>;

Dim substituted(const Dim& dim, const Sizes& sizes) {
    return dim.substitute([&](const std::string& symbol) -> std::optional<Dim> {
        auto found = sizes.find(symbol);
        return found == sizes.end() ? std::nullopt : std::optional(found->second);
    });
}

std::vector<Dim> substituted(std::vector<Dim> dims, const Sizes& sizes) {
    for (Dim& dim : dims) dim = substituted(dim, sizes);
    return dims;
}

Type substituted(const Type& type, const Sizes& sizes) {
    auto elements = [&] {
        std::vector<Type> all;
        for (const Type& element : type.elements()) all.push_back(substituted(element, sizes));
        return all;
    };
    switch (type.kind()) {
    case Type::Kind::Tensor: return type.has_rank() ? type.with_shape(substituted(type.shape(), sizes)) : type;
    case Type::Kind::List: return Type::list(elements().at(0));
    case Type::Kind::Optional: return Type::optional(elements().at(0));
    case Type::Kind::Tuple: return Type::tuple(elements());
    default: return type;
    }
}

void substitute(Value& value, const Sizes& sizes) {
    value.set_type(substituted(value.type(), sizes));
    if (value.elements()) value.set_elements(substituted(*value.elements(), sizes));
}

void substitute(Region& region, const Sizes& sizes, Rewriter& rewriter) {
    for (const auto& argument : region.arguments()) substitute(*argument, sizes);
    for (const auto& node : region.nodes()) {
        for (const auto& result : node->results()) substitute(*result, sizes);
        for (const AttributeDef& attribute : node->def().attributes)
            if (attribute.kind == AttributeKind::Dims && node->attributes().contains(attribute.name))
                rewriter.set_attribute(*node, std::string(attribute.name),
                                       substituted(node->get<Shape>(attribute.name), sizes));
        for (const auto& inner : node->regions()) substitute(*inner, sizes, rewriter);
    }
}

// Adds what must hold for `general` to be `actual`; false where that is more than values of symbols.
bool match(const Type& general, const Type& actual, Sizes& sizes) {
    if (general == actual) return true;
    if (!general.has_rank() || !actual.has_rank() || general.rank() != actual.rank()) return false;
    if (general.with_shape({}) != actual.with_shape({})) return false;
    for (int64_t axis = 0; axis < general.rank(); axis++) {
        if (general.dim(axis) == actual.dim(axis)) continue;
        auto symbol = general.dim(axis).as_symbol();
        if (!symbol) return false;
        auto [known, added] = sizes.emplace(*symbol, actual.dim(axis));
        if (!added && known->second != actual.dim(axis)) return false;
    }
    return true;
}

// The region that always runs; nullptr where that is not known.
Region* taken_branch(const OpNode& node, const Program& program) {
    auto condition = constant_bytes(program, *node.operand(0));
    if (!condition || condition->size() != 1) return nullptr;
    return &node.region(condition->front() != std::byte{0} ? 0 : 1);
}

} // namespace

bool inline_constant_if(OpNode& node, Rewriter& rewriter) {
    if (node.op() != "if") return false;
    Region* branch = taken_branch(node, rewriter.program());
    if (!branch) return false;
    std::vector<Value*> results(branch->terminator()->operands().begin(), branch->terminator()->operands().end());
    Sizes sizes;
    for (size_t i = 0; i < results.size(); i++)
        if (!match(node.result(i).type(), results[i]->type(), sizes)) return false;
    while (branch->nodes().front().get() != branch->terminator()) rewriter.move_before(*branch->nodes().front(), node);
    drop(node, results, rewriter);
    if (!sizes.empty()) substitute(rewriter.function().body(), sizes, rewriter);
    return true;
}

} // namespace cuvil
