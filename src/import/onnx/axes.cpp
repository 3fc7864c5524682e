#include "import/onnx/axes.hpp"

#include <fmt/format.h>

namespace cuvil::onnx {
namespace {

// Where the elements of x lie that differ from the first along some axes only: `shape` has 1 for each other axis.
Value& offsets(GraphBuilder& build, const Shape& shape, const Shape& x) {
    Value* sum = &build.dims({0}, {});
    Dim stride = 1;
    for (size_t i = x.size(); i-- > 0;) {
        Shape along(x.size(), 1);
        along[i] = shape[i];
        Value& places = build.elementwise("mul", {&build.positions(shape[i]), &build.dims({stride}, {})});
        sum = &build.elementwise("add", {sum, &build.reshape(places, along)});
        stride = stride * x[i];
        check_complexity(stride);
    }
    return build.reshape(*sum, {checked_count(shape)});
}

} // namespace

Value& named_axes(GraphBuilder& build, Value& axes, int64_t rank) {
    int64_t count = build.length_of(axes);
    if (count > rank) throw ImportError("bad-node", fmt::format("{} axes of {}", count, rank));
    Value& zeros = build.broadcast_to(build.scalar(DType::I64, 0), {rank});
    Value& ones = build.broadcast_to(build.scalar(DType::I64, 1), axes.type().shape());
    Value& named = build.make("scatter_elements", {&zeros, &axes, &ones});
    Value& different = build.reduce("reduce_sum", named, {0}, true);
    build.require(build.sizes_of(different).at(0), count, "an axis is named twice");
    return named;
}

Value& position_from_front(GraphBuilder& build, Value& position, int64_t size, int64_t end) {
    if (!checked_count(position.type().shape()).is(1))
        throw ImportError("bad-node", fmt::format("an axis or position is {}", position.type().text()));
    Value& given = build.cast(build.reshape(position, {}), DType::I64);
    Value& from_end = build.elementwise("add", given, static_cast<double>(size));
    Value& at = build.make("where", {&build.elementwise("less", given, 0), &from_end, &given});
    // What is still negative must not count from the end once more.
    Value& none = build.dims({end}, {});
    return build.gather(build.positions(end), build.make("where", {&build.elementwise("less", at, 0), &none, &at}), 0);
}

Shape around_axis(GraphBuilder& build, const Shape& shape, Value& axis) {
    auto rank = static_cast<int64_t>(shape.size());
    Value& sizes = build.dims(shape, {rank});
    Value& one = build.broadcast_to(build.scalar(DType::I64, 1), {rank});
    auto product = [&](std::string_view side) -> Value& {
        Value& is_there = build.elementwise(side, {&build.positions(rank), &axis});
        return build.reduce("reduce_prod", build.make("where", {&is_there, &sizes, &one}), {0}, true);
    };
    Value& size = build.gather(sizes, build.reshape(axis, {1}), 0);
    return build.counts_of(build.concat({&product("less"), &size, &product("greater")}, 0), "a size");
}

Shape with_axis(GraphBuilder& build, const Shape& shape, Value& axis, const Dim& size) {
    auto rank = static_cast<int64_t>(shape.size());
    Value& is_axis = build.elementwise("equal", {&build.positions(rank), &axis});
    Value& changed = build.broadcast_to(build.dims({size}, {}), {rank});
    return build.counts_of(build.make("where", {&is_axis, &changed, &build.dims(shape, {rank})}), "a size");
}

// The sizes that stay come first in the order of what is named.
Value& squeeze_by_data(GraphBuilder& build, Value& x, Value& axes) {
    const Shape& shape = x.type().shape();
    auto rank = static_cast<int64_t>(shape.size()), left = rank - build.length_of(axes);
    Value& order = build.make("sort_rows", {&build.reshape(named_axes(build, axes, rank), {rank, 1})});
    Value& sizes = build.gather(build.dims(shape, {rank}), build.slice(order, 0, 0, left), 0);
    return build.reshape(x, build.counts_of(sizes, "a size"));
}

// An axis that is not new is as many as there are such axes up to it.
Value& unsqueeze_by_data(GraphBuilder& build, Value& x, Value& axes) {
    Shape shape = x.type().shape();
    int64_t rank = static_cast<int64_t>(shape.size()) + build.length_of(axes);
    Value& is_new = named_axes(build, axes, rank);
    Value& one = build.broadcast_to(build.scalar(DType::I64, 1), {rank});
    Value& old = build.make("cum_sum", {&build.elementwise("sub", {&one, &is_new})}, {{"axis", int64_t{0}}});
    shape.insert(shape.begin(), 1);
    Value& sizes = build.gather(build.dims(shape, {static_cast<int64_t>(shape.size())}), old, 0);
    Value& all = build.make("where", {&build.elementwise("equal", is_new, 1), &one, &sizes});
    return build.reshape(x, build.counts_of(all, "a size"));
}

// Element j of row i is where the offset of place i along the other axes and that of j along the axes add up.
RowsAlongAxes rows_along(GraphBuilder& build, Value& x, Value& axes) {
    const Shape shape = x.type().shape();
    auto rank = static_cast<int64_t>(shape.size());
    Value& is_named = build.elementwise("equal", named_axes(build, axes, rank), 1);
    Value& sizes = build.dims(shape, {rank});
    Value& one = build.broadcast_to(build.scalar(DType::I64, 1), {rank});
    Shape kept = build.counts_of(build.make("where", {&is_named, &one, &sizes}), "a size"),
          along = build.counts_of(build.make("where", {&is_named, &sizes, &one}), "a size");
    Value& rows = build.unsqueeze(offsets(build, kept, shape), {1});
    Value& places = build.elementwise("add", {&rows, &offsets(build, along, shape)});
    return {&build.gather(build.reshape(x, {checked_count(shape)}), places, 0), kept};
}

} // namespace cuvil::onnx
