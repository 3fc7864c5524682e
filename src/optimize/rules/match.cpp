// Matching is a search with goals: "this value of the pattern is that value of the program". A commutative op has two
// ways to go on, so a goal that fails takes back what was bound and added since the last choice.
#include "optimize/constants.hpp"
#include "optimize/rules/rule.hpp"

#include <algorithm>

namespace cuvil {
namespace {

class Matcher {
public:
    Matcher(const Pattern& pattern, const Program& program)
        : pattern_(pattern), program_(program), values_(pattern.values.size()), bound_(pattern.values.size()) {}

    std::optional<MatchContext> match(OpNode& root) {
        if (root.results().size() != 1) return std::nullopt;
        goals_.push_back({pattern_.values.size() - 1, &root.result()});
        if (!solve(0)) return std::nullopt;
        return MatchContext(program_, pattern_, std::move(values_), std::move(attributes_));
    }

private:
    struct Goal {
        size_t place; // Pattern::left_out: no operand
        Value* value;
    };

    // All goals from `at` on.
    bool solve(size_t at) {
        if (at == goals_.size()) return true;
        auto [place, value] = goals_[at];
        if (place == Pattern::left_out) return !value && solve(at + 1);
        const PatternValue& wanted = pattern_.values[place];
        if (wanted.kind == PatternValue::Number)
            return value && is_filled_with(program_, *value, wanted.number) && solve(at + 1);
        if (bound_[place]) return values_[place] == value && solve(at + 1);
        bound_[place] = true;
        values_[place] = value;
        if (wanted.kind == PatternValue::Variable ? solve(at + 1) : solve_node(wanted, value, at)) return true;
        bound_[place] = false;
        return false;
    }

    bool solve_node(const PatternValue& wanted, const Value* value, size_t at) {
        const OpNode* node = value ? value->producer() : nullptr;
        if (!node || &node->def() != wanted.op || !has_operand_count(*node, wanted)) return false;
        size_t known = attributes_.size(), goals = goals_.size();
        auto take_back = [&] {
            goals_.resize(goals);
            return false;
        };
        auto try_order = [&](bool swapped) {
            for (size_t i = 0; i < wanted.operands.size(); i++)
                goals_.push_back({wanted.operands[i], node->operand(swapped ? 1 - i : i)});
            return solve(at + 1) || take_back();
        };
        if (bind_attributes(wanted, *node) &&
            (try_order(false) || (wanted.op->has(commutative) && wanted.operands.size() == 2 && try_order(true))))
            return true;
        attributes_.resize(known);
        return false;
    }

    // As many operands as the pattern has, but for optional ones that are left out at the end.
    static bool has_operand_count(const OpNode& node, const PatternValue& wanted) {
        for (size_t i = wanted.operands.size(); i < node.operands().size(); i++)
            if (node.operand(i)) return false;
        return node.operands().size() >= wanted.operands.size() ||
               wanted.op->operands.back().arity != OperandDef::Variadic;
    }

    bool bind_attributes(const PatternValue& wanted, const OpNode& node) {
        return std::ranges::all_of(wanted.attributes, [&](const PatternAttribute& attribute) {
            const Attribute& actual = node.attribute(attribute.name);
            if (attribute.value) return *attribute.value == actual;
            auto known =
                std::ranges::find(attributes_, attribute.variable, [](const auto& pair) { return pair.first; });
            if (known != attributes_.end()) return *known->second == actual;
            attributes_.emplace_back(attribute.variable, &actual);
            return true;
        });
    }

    const Pattern& pattern_;
    const Program& program_;
    std::vector<Value*> values_;
    std::vector<bool> bound_;
    std::vector<std::pair<std::string_view, const Attribute*>> attributes_;
    std::vector<Goal> goals_;
};

} // namespace

std::optional<MatchContext> match(const Pattern& pattern, OpNode& node, const Program& program) {
    return Matcher(pattern, program).match(node);
}

} // namespace cuvil
