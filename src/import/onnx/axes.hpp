// Axes that only data names: their number is known when compiling, which they are is not. Those out of range and those
// named twice fail while running.
#pragma once

#include "import/builder.hpp"

namespace cuvil::onnx {

// Which of `rank` axes are named, as 0 and 1.
Value& named_axes(GraphBuilder& build, Value& axes, int64_t rank);
// x without the axes, each of size 1.
Value& squeeze_by_data(GraphBuilder& build, Value& x, Value& axes);
// x with new axes of size 1; `axes` are their places in the result.
Value& unsqueeze_by_data(GraphBuilder& build, Value& x, Value& axes);

// Elements of x in rows: those of a row differ along the axes only.
struct RowsAlongAxes {
    Value* rows; // [outputs, elements of a row]
    Shape kept;  // one row for each place in this shape: that of x with 1 for each of the axes
};
RowsAlongAxes rows_along(GraphBuilder& build, Value& x, Value& axes);

// A position among `size`, given by a tensor of one element, counted from the front; its shape is []. It is below
// `end`.
Value& position_from_front(GraphBuilder& build, Value& position, int64_t size, int64_t end);
// The same for an axis.
inline Value& axis_from_front(GraphBuilder& build, Value& axis, int64_t rank) {
    return position_from_front(build, axis, rank, rank);
}
// The number of elements before the axis, its size, and the number behind: three sizes that hold all of `shape`.
Shape around_axis(GraphBuilder& build, const Shape& shape, Value& axis);
// `shape` with another size of the axis.
Shape with_axis(GraphBuilder& build, const Shape& shape, Value& axis, const Dim& size);

} // namespace cuvil::onnx
