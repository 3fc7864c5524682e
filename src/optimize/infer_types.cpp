// What must be equal for the program to run at all is taken to be equal. Two halves alternate until nothing changes:
//
//   refine_shapes    backward: a `require` of the main region holds or the run fails, so `N = 8` or `N = M` puts 8 or M
//                    in place of N everywhere, at the inputs too, where every caller's sizes are checked.
//   propagate_types  forward: each node is inferred anew from its operands, so elements of shape arithmetic become
//   known.
//
//   func @main(%x: f32[N,4], %y: f32[8,4])          func @main(%x: f32[8,4], %y: f32[8,4])
//     require {left = [N], right = [8]}        ->
//     %1 = reshape %x {shape = [4*N]}                 %1 = reshape %x {shape = [32]}
#include "ir/printer.hpp"
#include "optimize/passes.hpp"
#include "optimize/substitute.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

namespace cuvil {
namespace {

// Symbols by the order in which inputs give them.
using Order = std::map<std::string, size_t>;

// Those that the sizes of inputs give. Not those of inputs with a default value, whose sizes are fixed already.
Order bound_by_inputs(const FuncIR& function) {
    Order given;
    std::set<std::string> defaulted;
    for (size_t i = 0; i < function.inputs.size(); i++) {
        const Type& type = function.body().arguments()[i]->type();
        if (!type.has_rank()) continue;
        bool has_default = !function.inputs[i].default_value.empty();
        for (const Dim& d : type.shape()) {
            if (auto symbol = d.as_symbol(); symbol && !has_default) given.emplace(*symbol, given.size());
            if (has_default) d.collect_symbols(defaulted);
        }
    }
    for (const std::string& symbol : defaulted) given.erase(symbol);
    return given;
}

// What a symbol must be for `a` and `b` to be equal: a number, or a symbol that comes first. Other equations are left
// to the run.
std::optional<std::pair<std::string, Dim>> solved(const Dim& a, const Dim& b, const Order& symbols) {
    Dim difference = a - b;
    const auto& terms = difference.terms();
    auto symbol_of = [&](const DimTerm& term) -> const std::string* {
        bool is_symbol = term.atoms.size() == 1 && term.atoms[0].kind == DimAtom::Symbol;
        return is_symbol && symbols.contains(term.atoms[0].name) ? &term.atoms[0].name : nullptr;
    };
    if (terms.empty() || terms.size() > 2 || !symbol_of(terms[0])) return std::nullopt;
    const std::string& first = *symbol_of(terms[0]);
    if (terms.size() == 1) return std::pair(first, Dim(0));
    if (terms[1].atoms.empty()) {
        if (terms[0].coefficient == INT64_MIN || terms[1].coefficient == INT64_MIN) return std::nullopt;
        int64_t value = -terms[1].coefficient / terms[0].coefficient;
        bool is_size = value >= 0 && terms[1].coefficient % terms[0].coefficient == 0;
        return is_size ? std::optional(std::pair(first, Dim(value))) : std::nullopt;
    }
    const std::string* second = symbol_of(terms[1]);
    bool is_equation = second && (Dim(terms[0].coefficient) + Dim(terms[1].coefficient)).is(0);
    if (!is_equation) return std::nullopt;
    bool in_order = symbols.at(first) < symbols.at(*second);
    return in_order ? std::pair(*second, Dim::symbol(first)) : std::pair(first, Dim::symbol(*second));
}

class TypeInference {
public:
    TypeInference(FuncIR& function, PassContext& context)
        : function_(function), context_(context), rewriter_(context.program, function) {}

    void run() {
        if (context_.trace) tell_import(function_.body());
        size_t changes = 0;
        do {
            round_++;
            symbols_ = bound_by_inputs(function_);
            changes = refine_shapes() + propagate_types(function_.body());
            context_.changes += changes;
        } while (changes);
        if (context_.trace) context_.trace(fmt::format("round {}: nothing changes", round_));
    }

private:
    static std::string name_of(const OpNode& node) {
        if (node.location().name.empty()) return std::string(node.op());
        return fmt::format("{} ({})", node.location().name, node.op());
    }

    void tell(std::string_view half, std::string_view what, std::string_view before, std::string_view after) {
        if (context_.trace)
            context_.trace(fmt::format("round {}, {}: {}: {} -> {}", round_, half, what, before, after));
    }

    void tell_import(const Region& region) {
        for (const auto& node : region.nodes()) {
            for (const auto& inner : node->regions()) tell_import(*inner);
            for (const auto& result : node->results()) tell("import", name_of(*node), "unknown", result->type().text());
        }
    }

    // ---- refine_shapes

    size_t refine_shapes() {
        size_t changes = 0;
        auto& nodes = function_.body().nodes();
        for (auto at = nodes.begin(); at != nodes.end();)
            if (OpNode& node = **at++; node.op() == "require") changes += learn_from(node);
        return changes;
    }

    size_t learn_from(OpNode& require) {
        size_t changes = 0;
        for (size_t i = 0; i < require.get<Shape>("left").size(); i++)
            changes += put_equal(require.get<Shape>("left")[i], require.get<Shape>("right").at(i), require);
        return changes + erase_met_requirement(require, rewriter_);
    }

    // Where the equation gives a symbol, its value takes its place everywhere.
    bool put_equal(const Dim& a, const Dim& b, const OpNode& because) {
        auto equation = solved(a, b, symbols_);
        if (!equation) return false;
        const Sizes sizes = {{equation->first, equation->second}};
        try {
            if (!may_hold(function_.body(), sizes)) return false;
            tell("refine_shapes", name_of(because), equation->first, equation->second.text());
            if (context_.trace) tell_types(function_.body(), sizes);
            substitute(function_.body(), sizes, rewriter_);
        } catch (const DimOverflow& error) {
            context_.diag.error("too-complex", error.what(), because.location());
            context_.diag.stop_if_errors();
        }
        symbols_.erase(equation->first);
        return true;
    }

    void tell_types(const Region& region, const Sizes& sizes) {
        auto tell_type = [&](const Value& value, std::string_view what) {
            Type after = substituted(value.type(), sizes);
            if (after != value.type()) tell("refine_shapes", what, value.type().text(), after.text());
        };
        for (const auto& argument : region.arguments()) tell_type(*argument, argument->name());
        for (const auto& node : region.nodes()) {
            for (const auto& result : node->results()) tell_type(*result, name_of(*node));
            for (const auto& inner : node->regions()) tell_types(*inner, sizes);
        }
    }

    // ---- propagate_types

    size_t propagate_types(Region& region) {
        size_t changes = 0;
        for (const auto& node : region.nodes()) {
            for (const auto& inner : node->regions()) changes += propagate_types(*inner);
            if (node->def().infer && !node->def().has(source)) changes += infer_anew(*node);
        }
        return changes;
    }

    // The types that are written stay. Where sizes are written in two ways, inference may not know that operands fit,
    // and nothing is learned.
    size_t infer_anew(OpNode& node) {
        std::vector<Type> written;
        std::vector<bool> knew_elements;
        for (const auto& result : node.results()) {
            written.push_back(result->type());
            knew_elements.push_back(result->elements().has_value());
        }
        try {
            infer(node);
        } catch (const InferenceError&) { // NOLINT(bugprone-empty-catch)
        } catch (const DimOverflow&) {    // NOLINT(bugprone-empty-catch)
        }
        size_t changes = 0;
        for (size_t i = 0; i < written.size(); i++) {
            Value& result = node.result(i);
            result.set_type(written[i]);
            if (!result.elements() || knew_elements[i]) continue;
            tell("propagate_types", name_of(node), "unknown elements", text(*result.elements()));
            changes++;
        }
        return changes;
    }

    FuncIR& function_;
    PassContext& context_;
    Rewriter rewriter_;
    Order symbols_; // those that a number or another one may take the place of
    int round_ = 0;
};

} // namespace

void infer_types(FuncIR& function, PassContext& context) { TypeInference(function, context).run(); }

} // namespace cuvil
