#include "optimize/passes.hpp"
#include "optimize/rules/rule.hpp"

#include <algorithm>
#include <unordered_map>

namespace cuvil {
namespace {

class Canonicalizer {
public:
    Canonicalizer(FuncIR& function, PassContext& context)
        : context_(context), function_(function), rewriter_(context.program, function) {
        for (std::span<const Rule> rules : {algebra_rules(), shape_rules()})
            for (const Rule& rule : rules) rules_[rule.op].push_back(&rule);
    }

    void run() {
        bool changed = true;
        while (changed) {
            changed = sweep(function_.body());
            changed |= merge_common_subexpressions(function_.body(), rewriter_);
            changed |= remove_dead_code(function_, rewriter_);
        }
        remove_unused_weights(context_.program);
    }

private:
    // Once over all nodes in order, so that a node sees its operands already simplified. New nodes wait for the next.
    bool sweep(Region& region) {
        bool changed = false;
        for (auto at = region.nodes().begin(); at != region.nodes().end();) {
            OpNode& node = **at++;
            for (const auto& inner : node.regions()) changed |= sweep(*inner);
            changed |= simplify(node);
        }
        return changed;
    }

    bool simplify(OpNode& node) {
        if (node.def().has(terminator)) return false;
        rewriter_.insert_before(node);
        rewriter_.set_location(node.location());
        learn_elements(node);
        return inline_constant_if(node, rewriter_) || fold_read_size(node, rewriter_) ||
               fold_constant(node, rewriter_, context_.evaluate) || apply_rules(node);
    }

    // An operand may have become known since the node was made.
    static void learn_elements(OpNode& node) {
        if (node.results().size() != 1 || node.result().elements() || !node.def().has(pure)) return;
        auto is_known = [](const Value* operand) { return operand && operand->elements(); };
        if (std::ranges::none_of(node.operands(), is_known)) return;
        Type given = node.result().type();
        infer(node);
        node.result().set_type(std::move(given));
    }

    bool apply_rules(OpNode& node) {
        auto rules = rules_.find(node.op());
        if (rules == rules_.end()) return false;
        return std::ranges::any_of(rules->second, [&](const Rule* rule) { return apply(*rule, node); });
    }

    // Sizes that are written in two ways and not known to differ may stand for each other in a program. A rule does not
    // settle that: a new node gets the type of the old one, and where operands do not fit any more the rule is left
    // out.
    bool apply(const Rule& rule, OpNode& node) try {
        Value* replacement = rule.apply(node, rewriter_);
        if (!replacement) return false;
        bool is_new = replacement->uses().empty();
        if (is_new) replacement->set_type(node.result().type());
        if (replacement->type() != node.result().type()) return false;
        drop(node, {&replacement, 1}, rewriter_);
        return true;
    } catch (const InferenceError&) {
        return false;
    }

    PassContext& context_;
    FuncIR& function_;
    Rewriter rewriter_;
    std::unordered_map<std::string_view, std::vector<const Rule*>> rules_;
};

} // namespace

void canonicalize(FuncIR& function, PassContext& context) { Canonicalizer(function, context).run(); }

} // namespace cuvil
