// What nobody needs goes: nodes without effect or with an equal, and weights.
#include "optimize/passes.hpp"

#include <algorithm>
#include <set>

namespace cuvil {
namespace {

using Symbols = std::set<std::string>;

void collect(const std::vector<Dim>& dims, Symbols& symbols) {
    for (const Dim& dim : dims) dim.collect_symbols(symbols);
}

void collect(const Type& type, Symbols& symbols) {
    if (type.has_rank()) collect(type.shape(), symbols);
    for (const Type& element : type.elements()) collect(element, symbols);
}

void collect(const Value& value, Symbols& symbols) {
    collect(value.type(), symbols);
    if (value.elements()) collect(*value.elements(), symbols);
}

// nonzero, read_size and loop bind the symbol that this attribute names.
bool binds_symbol(const OpNode& node) { return node.attributes().contains("count"); }

// The symbols in sizes anywhere but in the results of nodes that bind one.
void collect(const Region& region, Symbols& symbols) {
    for (const auto& argument : region.arguments()) collect(*argument, symbols);
    for (const auto& node : region.nodes()) {
        if (!binds_symbol(*node))
            for (const auto& result : node->results()) collect(*result, symbols);
        for (const auto& [name, value] : node->attributes())
            if (const auto* dims = std::get_if<Shape>(&value)) collect(*dims, symbols);
        for (const auto& inner : node->regions()) collect(*inner, symbols);
    }
}

bool has_no_effect(const OpNode& node) {
    if (!node.def().has(pure)) return false;
    return std::ranges::all_of(node.regions(), [](const auto& region) {
        return std::ranges::all_of(
            region->nodes(), [](const auto& inner) { return inner->def().has(terminator) || has_no_effect(*inner); });
    });
}

bool is_unused(const OpNode& node, const Symbols& symbols) {
    if (binds_symbol(node) && symbols.contains(node.get<std::string>("count"))) return false;
    return std::ranges::all_of(node.results(), [](const auto& result) { return result->uses().empty(); });
}

// Backwards, so that what only dead nodes use is dead when its turn comes.
size_t remove_dead(Region& region, const Symbols& symbols, Rewriter& rewriter) {
    size_t changes = 0;
    for (auto at = region.nodes().end(); at != region.nodes().begin();) {
        OpNode& node = **--at;
        if (has_no_effect(node) && is_unused(node, symbols)) {
            ++at;
            rewriter.erase(node);
            changes++;
        } else {
            for (const auto& inner : node.regions()) changes += remove_dead(*inner, symbols, rewriter);
        }
    }
    return changes;
}

void collect_weights(const Region& region, std::set<std::string, std::less<>>& names) {
    for (const auto& node : region.nodes()) {
        if (node->op() == "weight") names.insert(node->get<std::string>("name"));
        for (const auto& inner : node->regions()) collect_weights(*inner, names);
    }
}

} // namespace

size_t remove_dead_code(FuncIR& function, Rewriter& rewriter) {
    Symbols symbols;
    collect(function.body(), symbols);
    return remove_dead(function.body(), symbols, rewriter);
}

void remove_unused_weights(Program& program) {
    std::set<std::string, std::less<>> used;
    for (const auto& function : program.functions()) {
        collect_weights(function->body(), used);
        for (const FuncIR::Port& input : function->inputs) used.insert(input.default_value);
    }
    std::vector<std::string> unused;
    for (const auto& [name, weight] : program.weights())
        if (!used.contains(name)) unused.push_back(name);
    for (const std::string& name : unused) program.remove_weight(name);
}

void drop(OpNode& node, std::span<Value* const> equal_values, Rewriter& rewriter) {
    for (size_t i = 0; i < equal_values.size(); i++) {
        if (equal_values[i]->name().empty()) equal_values[i]->set_name(node.result(i).name());
        rewriter.replace_all_uses(node.result(i), *equal_values[i]);
    }
    rewriter.erase(node);
}

bool replace_by(OpNode& node, Rewriter& rewriter, const std::function<Value*()>& make) try {
    Value* value = make();
    if (!value) return false;
    value->set_type(node.result().type());
    drop(node, {&value, 1}, rewriter);
    return true;
} catch (const InferenceError&) {
    return false;
}

bool erase_met_requirement(OpNode& node, Rewriter& rewriter) {
    if (node.op() != "require" || node.get<Shape>("left") != node.get<Shape>("right")) return false;
    rewriter.erase(node);
    return true;
}

} // namespace cuvil
