// Reading through what only moves elements: a kernel that takes strides needs no copy of a transpose, a slice, a
// broadcast, or what a reshape makes of them.
//
//   %1 = transpose %x {perm = [0,2,1,3]} : f32[B,H,S,D]        %1 = view %x {strides = [S*H*D,D,H*D,1], ...}
//   %2 = matmul %1, %k                                    ->   %2 = matmul %1, %k
#pragma once

#include "ir/rewriter.hpp"
#include "plan/plan.hpp"

namespace cuvil {

// An op that a view can stand for.
bool only_moves(const OpNode& node);

struct TracedView {
    Value* base; // what is read
    View view;
};

// How `value` can be read without the copies that make it; nothing where there are none, or where one of its last two
// axes would have no single stride.
std::optional<TracedView> trace_view(Value& value);

// The `view` node that stands for `value`, at the rewriter's place.
Value& make_view(Rewriter& edit, const Value& value, const TracedView& traced);

} // namespace cuvil
