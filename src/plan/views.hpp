// Reading through what only moves elements: a kernel that takes strides needs no copy of a transpose, a slice, a
// broadcast, or what a reshape makes of them.
//
//   %1 = transpose %x {perm = [0,2,1,3]} : f32[B,H,S,D]        %1 = view %x {strides = [S*H*D,D,H*D,1], ...}
//   %2 = matmul %1, %k                                    ->   %2 = matmul %1, %k
#pragma once

#include "ir/rewriter.hpp"
#include "plan/plan.hpp"

namespace cuvil {

// How a kernel reads or writes a tensor: the element at (i, j, ...) lies at offset + i * strides[0] + j * strides[1] +
// ..., in elements. The last two axes are the tensor's; the others may be cut in another way, in the same order.
struct View {
    Shape shape;
    std::vector<Dim> strides;
    Dim offset;
};
// Of an operand: by its `view` node, else row by row.
View view_of(const Value& value);
// Of a row-major tensor.
std::vector<Dim> row_major_strides(const Shape& shape);
// The stride of all axes but the last as one; nothing where they have none.
std::optional<Dim> row_stride(const View& view);

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
