#include "optimize/constants.hpp"
#include "optimize/passes.hpp"
#include "optimize/rules/rule.hpp"
#include "support/diagnostics.hpp"

#include <algorithm>
#include <ranges>
#include <stdexcept>
#include <string>
#include <unordered_set>

namespace cuvil {
namespace {

// Calls `take` for each node of the match, in the pattern's order.
template <class Take> void each_node(const MatchContext& match, const Take& take) {
    for (size_t i = 0; i < match.values().size(); i++)
        if (match.pattern().values[i].kind == PatternValue::Result) take(*match.values()[i]->producer());
}

// Nothing outside sees what the nodes before the root compute, and they run as often as the root.
bool is_private(const MatchContext& match) {
    std::unordered_set<const OpNode*> members;
    each_node(match, [&](const OpNode& node) { members.insert(&node); });
    bool is_private = true;
    each_node(match, [&](const OpNode& node) {
        if (&node == &match.root()) return;
        is_private =
            is_private && node.parent() == match.root().parent() &&
            std::ranges::all_of(node.result().uses(), [&](const Use& use) { return members.contains(use.node); });
    });
    return is_private;
}

Location joined_places(const MatchContext& match) {
    Location place;
    each_node(match, [&](const OpNode& node) { place = join(place, node.location()); });
    return place;
}

// The value and those that it consists of: what lies behind broadcasts, reshapes and transposes.
std::vector<const Value*> with_sources(const Value& value) {
    std::vector<const Value*> all = {&value};
    auto moves = [](const OpNode* node) {
        return node && (node->op() == "broadcast" || node->op() == "reshape" || node->op() == "transpose");
    };
    for (const OpNode* node = value.producer(); moves(node); node = node->operand(0)->producer())
        all.push_back(node->operand(0));
    return all;
}

bool holds_floats(const Value& value) { return value.type().is_tensor() && is_floating(value.type().dtype()); }

// A rule that loses an operand loses its NaNs.
void expect_all_floats(const Rule& rule, const MatchContext& match, const Value& replacement) {
    std::unordered_set<const Value*> borders, found;
    auto each_variable = [&](const auto& take) {
        for (size_t i = 0; i < match.values().size(); i++)
            if (const Value* v = match.values()[i]; v && match.pattern().values[i].kind == PatternValue::Variable)
                take(match.pattern().values[i].name, *v);
    };
    each_variable([&](const std::string&, const Value& v) {
        for (const Value* source : with_sources(v)) borders.insert(source);
    });
    std::vector<const Value*> open = {&replacement};
    while (!open.empty()) {
        const Value* value = open.back();
        open.pop_back();
        if (!found.insert(value).second || borders.contains(value) || !value->producer()) continue;
        for (const Value* operand : value->producer()->operands())
            if (operand) open.push_back(operand);
    }
    each_variable([&](const std::string& name, const Value& v) {
        if (!holds_floats(v) || is_constant(behind_broadcast(v))) return;
        auto is_found = [&](const Value* source) { return found.contains(source); };
        CUVIL_ASSERT(std::ranges::any_of(with_sources(v), is_found),
                     "rule " + std::string(rule.name) + " drops operand %" + name);
    });
}

} // namespace

Value* MatchContext::operator[](std::string_view name) const {
    size_t place = pattern_->find(name);
    CUVIL_ASSERT(place != Pattern::left_out, "a pattern has no value %" + std::string(name));
    return values_[place];
}

OpNode& MatchContext::node(std::string_view name) const {
    const Value* value = (*this)[name];
    CUVIL_ASSERT(value && value->producer(), "%" + std::string(name) + " is made by no node");
    return *value->producer();
}

const Attribute& MatchContext::attribute(std::string_view variable) const {
    auto known = std::ranges::find(attributes_, variable, [](const auto& pair) { return pair.first; });
    CUVIL_ASSERT(known != attributes_.end(), "a pattern has no attribute %" + std::string(variable));
    return *known->second;
}

RuleSet::RuleSet(RuleKind kind, const OpTable& ops, std::initializer_list<std::span<const Rule>> tables) : kind_(kind) {
    for (std::span<const Rule> table : tables)
        for (const Rule& rule : table) {
            Pattern pattern;
            try {
                pattern = parse_pattern(rule.pattern, ops);
            } catch (const std::invalid_argument& error) {
                throw std::invalid_argument("rule " + std::string(rule.name) + ": " + error.what());
            }
            std::string_view root = pattern.root().op->name;
            by_root_[root].push_back({&rule, std::move(pattern)});
        }
}

bool RuleSet::apply(OpNode& node, Rewriter& rewriter) const {
    auto entries = by_root_.find(node.op());
    if (entries == by_root_.end()) return false;
    return std::ranges::any_of(entries->second, [&](const Entry& entry) { return apply(entry, node, rewriter); });
}

// Sizes that are written in two ways and not known to differ may stand for each other in a program. A rule does not
// settle that: a new node gets the type of the old one, and where operands do not fit any more the rule is left out.
bool RuleSet::apply(const Entry& entry, OpNode& node, Rewriter& rewriter) const try {
    const Rule& rule = *entry.rule;
    auto found = match(entry.pattern, node, rewriter.program());
    if (!found || (kind_ == RuleKind::Fuse && !is_private(*found)) || (rule.guard && !rule.guard(*found))) return false;
    rewriter.insert_before(node);
    rewriter.set_location(kind_ == RuleKind::Fuse ? joined_places(*found) : node.location());
    const auto* name = std::get_if<std::string_view>(&rule.action);
    FusedOp fused = name ? (*found)[name->substr(1)] : std::get<1>(rule.action)(MatchResult(*found, rewriter));
    if (!fused) return false;
    if (fused->uses().empty()) fused->set_type(node.result().type());
    if (fused->type() != node.result().type()) return false;
    expect_all_floats(rule, *found, *fused);
    std::vector<OpNode*> before;
    each_node(*found, [&](OpNode& member) { before.push_back(&member); });
    before.pop_back();
    drop(node, {&fused, 1}, rewriter);
    if (kind_ == RuleKind::Fuse)
        for (OpNode* member : before | std::views::reverse)
            if (member->result().uses().empty()) rewriter.erase(*member);
    return true;
} catch (const InferenceError&) {
    return false;
}

} // namespace cuvil
