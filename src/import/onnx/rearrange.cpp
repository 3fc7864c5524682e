// Operators that move blocks of elements to other places: between depth and space, around a centre, along time.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

namespace cuvil::onnx {
namespace {

int64_t block_size(Node& node) {
    int64_t size = node.integer("blocksize");
    if (size < 1 || size > INT32_MAX) bad_attribute(fmt::format("attribute \"blocksize\" is {}", size));
    if (node.type(0).rank() != 4)
        throw ImportError("shape-mismatch", fmt::format("{} is no list of images", node.type(0).text()));
    return size;
}

// The order of the depth: blocks first, or channels first.
std::string_view mode_of(Node& node) {
    std::string_view mode = node.text("mode", "DCR");
    if (mode != "DCR" && mode != "CRD") bad_attribute(fmt::format("attribute \"mode\" is \"{}\"", mode));
    return mode;
}

Values depth_to_space(Node& node) {
    GraphBuilder& build = node.build;
    int64_t block = block_size(node);
    const Shape shape = node.type(0).shape();
    Dim depth = Dim::floordiv(shape[1], block * block);
    Value& moved =
        mode_of(node) == "DCR"
            ? build.transpose(build.reshape(node.input(0), {shape[0], block, block, depth, shape[2], shape[3]}),
                              {0, 3, 4, 1, 5, 2})
            : build.transpose(build.reshape(node.input(0), {shape[0], depth, block, block, shape[2], shape[3]}),
                              {0, 1, 4, 2, 5, 3});
    return {&build.reshape(moved, {shape[0], depth, shape[2] * block, shape[3] * block})};
}

Values space_to_depth(Node& node) {
    GraphBuilder& build = node.build;
    int64_t block = block_size(node);
    const Shape shape = node.type(0).shape();
    bool is_depth_first = mode_of(node) == "DCR";
    Dim height = Dim::floordiv(shape[2], block), width = Dim::floordiv(shape[3], block);
    Value& blocks = build.reshape(node.input(0), {shape[0], shape[1], height, block, width, block});
    std::vector<int64_t> perm{0, 3, 5, 1, 2, 4};
    if (!is_depth_first) perm = {0, 1, 3, 5, 2, 4};
    return {&build.reshape(build.transpose(blocks, perm), {shape[0], shape[1] * (block * block), height, width})};
}

// What is too long loses as much at both ends, what is too short gains as much.
Values center_crop_pad(Node& node) {
    GraphBuilder& build = node.build;
    Value* x = &node.input(0);
    std::vector<int64_t> axes = node.integers("axes").value_or(all_axes(x->type().rank()));
    for (int64_t& axis : axes) axis = normal_axis(axis, x->type().rank());
    normal_axes(axes, x->type().rank()); // each once
    std::vector<Dim> targets = node.counts(1, "a size of the new shape");
    if (targets.size() != axes.size())
        throw ImportError("bad-node", fmt::format("{} sizes for {} axes", targets.size(), axes.size()));
    for (size_t i = 0; i < axes.size(); i++) {
        const Dim size = x->type().dim(axes[i]), more = targets[i] - size;
        auto at = static_cast<size_t>(axes[i]);
        x = &build.slice(*x, axes[i], Dim::max(Dim::floordiv(size - targets[i], 2), 0), Dim::min(size, targets[i]));
        Shape low(x->type().shape().size(), 0), high = low;
        low[at] = Dim::max(Dim::floordiv(more, 2), 0);
        high[at] = Dim::max(more, 0) - low[at];
        x = &build.name_sizes(build.pad(*x, low, high, 0));
    }
    return {x};
}

// The first elements along the time axis in reverse, as many as the lengths say, the others where they are.
Values reverse_sequence(Node& node) {
    GraphBuilder& build = node.build;
    int64_t time_axis = node.integer("time_axis", 0), batch_axis = node.integer("batch_axis", 1);
    if (!(time_axis == 0 && batch_axis == 1) && !(time_axis == 1 && batch_axis == 0))
        bad_attribute("the axes of time and batch must be 0 and 1");
    Value* x = &node.input(0);
    if (x->type().rank() < 2)
        throw ImportError("shape-mismatch", fmt::format("{} is no batch of sequences", x->type().text()));
    std::vector<int64_t> perm = all_axes(x->type().rank());
    std::swap(perm[0], perm[1]);
    if (batch_axis == 1) x = &build.transpose(*x, perm);
    const Dim batch = x->type().dim(0), time = x->type().dim(1);
    Value& lengths = build.reshape(build.cast(node.input(1), DType::I64), {batch, 1});
    Value& place = build.positions(time);
    Value& mirrored = build.elementwise("sub", {&build.elementwise("sub", lengths, 1), &place});
    std::vector<Value*> choice =
        build.broadcast_together({&build.elementwise("less", {&place, &lengths}), &mirrored, &place});
    Value& places = build.unsqueeze(build.make("where", choice), {2});
    Value& reversed = build.make("gather_nd", {x, &places}, {{"batch_axes", int64_t{1}}});
    return {batch_axis == 1 ? &build.transpose(reversed, perm) : &reversed};
}

// An update of a cache from a place on that differs by batch.
Values tensor_scatter(Node& node) {
    GraphBuilder& build = node.build;
    Value &cache = node.input(0), &given = node.input(1);
    int64_t axis = node.axis("axis", -2, cache.type().rank());
    if (axis == 0) bad_attribute("axis 0 is that of the batch");
    std::string_view mode = node.text("mode", "linear");
    if (mode != "linear" && mode != "circular") bad_attribute(fmt::format("attribute \"mode\" is \"{}\"", mode));
    if (given.type().rank() != cache.type().rank())
        throw ImportError("shape-mismatch",
                          fmt::format("cache {} and update {}", cache.type().text(), given.type().text()));
    Shape shape = cache.type().shape();
    auto at = static_cast<size_t>(axis);
    const Dim size = shape[at];
    shape[at] = given.type().dim(axis);
    Value& update = build.fit(given, shape);
    Shape along(shape.size(), 1), by_batch(shape.size(), 1);
    along[at] = shape[at];
    by_batch[0] = shape[0];
    Value* place = &build.reshape(build.positions(shape[at]), along);
    if (node.has_input(2))
        place = &build.elementwise("add", {place, &build.reshape(build.cast(node.input(2), DType::I64), by_batch)});
    if (mode == "circular") {
        Value& length = build.dims({Dim::max(size, 1)}, {});
        Value& turns = build.elementwise("mul", {&build.elementwise("div", {place, &length}), &length});
        place = &build.elementwise("sub", {place, &turns});
    }
    return {&build.make("scatter_elements", {&cache, &build.broadcast_to(*place, shape), &update}, {{"axis", axis}})};
}

const Row rows[] = {
    {"CenterCropPad", 18, newest, center_crop_pad, 2, 2, "axes", "pad"},
    {"DepthToSpace", 1, 10, depth_to_space, 1, 1, "blocksize", "transpose"},
    {"DepthToSpace", 11, newest, depth_to_space, 1, 1, "blocksize mode", "transpose"},
    {"ReverseSequence", 10, newest, reverse_sequence, 2, 2, "batch_axis time_axis", "gather_nd"},
    {"SpaceToDepth", 1, 27, space_to_depth, 1, 1, "blocksize", "transpose"},
    {"SpaceToDepth", 28, newest, space_to_depth, 1, 1, "blocksize mode", "transpose"},
    {"TensorScatter", 24, newest, tensor_scatter, 2, 3, "axis mode", "scatter_elements"},
};

} // namespace

std::span<const Row> rearrange_rows() { return rows; }

} // namespace cuvil::onnx
