// Rules: what to look for, when, and what takes its place. RuleSet matches them and alone edits the graph.
#pragma once

#include "ir/rewriter.hpp"
#include "optimize/rules/pattern.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace cuvil {

// What the names of a pattern stand for in a program.
class MatchContext {
public:
    // `values` are those of the pattern, place by place.
    MatchContext(const Program& program, const Pattern& pattern, std::vector<Value*> values,
                 std::vector<std::pair<std::string_view, const Attribute*>> attributes)
        : program_(&program), pattern_(&pattern), values_(std::move(values)), attributes_(std::move(attributes)) {}

    const Program& program() const { return *program_; }
    // nullptr: an operand that is left out.
    Value* operator[](std::string_view name) const;
    // The node that makes a value of the pattern.
    OpNode& node(std::string_view name) const;
    OpNode& root() const { return *values_.back()->producer(); }
    // What an attribute's variable stands for.
    template <class T> const T& get(std::string_view variable) const { return std::get<T>(attribute(variable)); }

    const Pattern& pattern() const { return *pattern_; }
    const std::vector<Value*>& values() const { return values_; }

private:
    const Attribute& attribute(std::string_view variable) const;

    const Program* program_;
    const Pattern* pattern_;
    std::vector<Value*> values_;
    std::vector<std::pair<std::string_view, const Attribute*>> attributes_;
};

// A match that the guard let pass. New nodes go before the root.
class MatchResult : public MatchContext {
public:
    MatchResult(MatchContext context, Rewriter& rewriter) : MatchContext(std::move(context)), rewriter_(&rewriter) {}

    Rewriter& rewriter() const { return *rewriter_; }
    Value& make(std::string_view op, const std::vector<Value*>& operands, Attributes attributes = {}) const {
        return rewriter_->make(op, operands, std::move(attributes));
    }

private:
    Rewriter* rewriter_;
};

// What takes the place of the root's result: the result of a new node like any other, or a value that was there;
// nullptr where the rule does not apply after all. It gets the root's type.
using FusedOp = Value*;

using Guard = std::function<bool(const MatchContext&)>;
// Or the name of a value of the pattern that takes the root's place, "%x".
using Action = std::variant<std::string_view, std::function<FusedOp(const MatchResult&)>>;

// No rule drops a floating operand: each variable that stands for floats which are not constants occurs in what takes
// the place, else a NaN would be lost. An action makes nodes and edits nothing else.
struct Rule {
    std::string_view name;
    std::string_view pattern;
    Guard guard; // empty: always
    Action action;
};

enum class RuleKind {
    // Exact: all bits stay, NaN, infinities and -0 included, for all shapes. What takes the root's place costs no more
    // than the root alone, so the nodes before it may have other uses, and stay if they have. New nodes get the root's
    // place in the model.
    Simplify,
    // The nodes of the pattern become one: none but the root is used elsewhere, is an output, or lies in another
    // region. New nodes get the places of all.
    Fuse
};

// Rules in the order in which they are tried, found by the op of their root.
class RuleSet {
public:
    // Throws std::invalid_argument for a pattern that cannot be read.
    RuleSet(RuleKind kind, const OpTable& ops, std::initializer_list<std::span<const Rule>> tables);

    // Replaces the node by the first rule that applies; false where none does.
    bool apply(OpNode& node, Rewriter& rewriter) const;

private:
    struct Entry {
        const Rule* rule;
        Pattern pattern;
    };
    bool apply(const Entry& entry, OpNode& node, Rewriter& rewriter) const;

    RuleKind kind_;
    std::unordered_map<std::string_view, std::vector<Entry>> by_root_;
};

// The place of `node` in the pattern, read from `node` backwards; the first way in which it matches.
std::optional<MatchContext> match(const Pattern& pattern, OpNode& node, const Program& program);

// The built-in rules. CanonicalizePass takes those that simplify:
std::span<const Rule> algebra_rules();
std::span<const Rule> shape_rules();
// FuseOperatorsPass those that fuse:
std::span<const Rule> channel_rules();
std::span<const Rule> activation_rules();
std::span<const Rule> normalization_rules();
std::span<const Rule> attention_rules();

} // namespace cuvil
