// Axes that only data names: their number is known when compiling, which they are is not.
#pragma once

#include "import/builder.hpp"

namespace cuvil::onnx {

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

// An axis given by a tensor of one element, counted from the front; its shape is [].
Value& axis_from_front(GraphBuilder& build, Value& axis, int64_t rank);
// The number of elements before the axis, its size, and the number behind: three sizes that hold all of `shape`.
Shape around_axis(GraphBuilder& build, const Shape& shape, Value& axis);
// `shape` with another size of the axis.
Shape with_axis(GraphBuilder& build, const Shape& shape, Value& axis, const Dim& size);

} // namespace cuvil::onnx
