// A rewrite of one node into an equal value.
#pragma once

#include "ir/rewriter.hpp"

#include <span>
#include <string_view>

namespace cuvil {

// Every rule is exact: all bits stay, NaN, infinities and -0 included, for all shapes. So no rule drops a floating
// operand of an op that computes with it.
struct Rule {
    std::string_view name;
    std::string_view op; // of the node that is replaced; it has one result
    // The value that replaces the node's result, of the same type, or nullptr where the rule does not apply. New nodes
    // go where the rewriter stands: before the node, at its place in the model. A rule edits nothing else.
    Value* (*apply)(OpNode& node, Rewriter& rewriter);
};

std::span<const Rule> algebra_rules();
std::span<const Rule> shape_rules();

} // namespace cuvil
