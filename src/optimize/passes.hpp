// The passes of the pipeline, and the steps that they share.
#pragma once

#include "ir/rewriter.hpp"
#include "optimize/pass.hpp"

#include <functional>

namespace cuvil {

// Finds which sizes must be equal and infers all types from that, forward and backward, until nothing changes: later
// passes see as many numbers as can be known. What remains of the checks is at the inputs and in `require` nodes.
void infer_types(FuncIR& function, PassContext& context);

// Brings a function into the forms that later passes and planning know, and repeats until nothing changes: constants
// are folded, shape arithmetic is a `constant` or one `dims` node, the rules of rules/ do not match any more, equal
// nodes are one, unused nodes and weights are gone, an `if` with a constant condition is its branch, transposes and
// reshapes stand behind elementwise ops.
void canonicalize(FuncIR& function, PassContext& context);

// Makes one node of several that the fusing rules of rules/ know, until none matches any more: constant factors and
// summands of each channel become part of a convolution's or product's weights, normalisations and activations that are
// written out become one op. Needs canonical forms.
void fuse_operators(FuncIR& function, PassContext& context);

// Writes out the ops that have no kernel: afterwards no batch_norm is left.
void decompose(FuncIR& function, PassContext& context);

// Steps of canonicalize; each says whether, or how often, it changed something.
bool fold_constant(OpNode& node, Rewriter& rewriter, const ConstantEvaluator& evaluate);
bool inline_constant_if(OpNode& node, Rewriter& rewriter);
bool fold_read_size(OpNode& node, Rewriter& rewriter);
bool sink_reshapes(OpNode& node, Rewriter& rewriter);
bool sink_transposes(OpNode& node, Rewriter& rewriter);
bool erase_met_requirement(OpNode& node, Rewriter& rewriter);
size_t merge_common_subexpressions(Region& region, Rewriter& rewriter);
size_t remove_dead_code(FuncIR& function, Rewriter& rewriter);
void remove_unused_weights(Program& program);

// Puts values in place of the node's results and erases it. Unlike Rewriter::replace it leaves the values' places in
// the model alone: a node that was equal to something, or did nothing, is no part of what stays.
void drop(OpNode& node, std::span<Value* const> equal_values, Rewriter& rewriter);

// Puts the value that `make` builds in place of a node with one result, whose type it gets. False where there is none
// (nullptr), or where the operands of a new node do not fit because sizes are written in two ways.
bool replace_by(OpNode& node, Rewriter& rewriter, const std::function<Value*()>& make);

} // namespace cuvil
