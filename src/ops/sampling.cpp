// Values of images at places that data gives.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

// x [N,C,in...], grid [N,out...,axes] -> [N,C,out...].
void infer_grid_sample(Inference& in) {
    const Type &x = in.ranked(0), &grid = in.ranked(1);
    if (x.rank() < 3 || x.rank() > 5) in.fail("operand " + x.text() + " has not one to three spatial axes");
    expect_one_of(in, "mode", {"linear", "nearest", "cubic"});
    expect_one_of(in, "outside", {"zeros", "border", "reflection"});
    if (grid.rank() != x.rank() || grid.dtype() != x.dtype() || !grid.dim(-1).is(x.rank() - 2) ||
        grid.dim(0) != x.dim(0))
        in.fail("a grid " + grid.text() + " for " + x.text());
    Shape shape = {x.dim(0), x.dim(1)};
    shape.insert(shape.end(), grid.shape().begin() + 1, grid.shape().end() - 1);
    in.result(x.with_layout({}).with_shape(std::move(shape)));
}

// x [N,C,H,W], rois [R,columns] -> [R,C,height,width].
template <int64_t columns> void infer_regions(Inference& in) {
    const Type &x = in.ranked(0), &rois = in.ranked(1);
    int64_t height = in.node().get<int64_t>("height"), width = in.node().get<int64_t>("width");
    if (x.rank() != 4) in.fail("operand " + x.text() + " is not of rank 4");
    if (rois.rank() != 2 || rois.dtype() != x.dtype() || !rois.dim(1).is(columns))
        in.fail("regions " + rois.text() + " of " + x.text());
    if (columns == 4 && in.type(2) != Type::tensor(DType::I64, {rois.dim(0)}))
        in.fail("images " + in.type(2).text() + " of regions " + rois.text());
    if (height < 1 || width < 1) in.fail("a result without elements");
    in.result(x.with_layout({}).with_shape({rois.dim(0), x.dim(1), height, width}));
}

// x [N,C,H,W], offset [N,groups*R*S*2,OH,OW], mask [N,groups*R*S,OH,OW] -> [N,C*R*S,OH*OW].
void infer_deformed_windows(Inference& in) {
    const Type &x = in.ranked(0), &offset = in.ranked(1);
    expect_ints(in, "kernel", 2, 1);
    expect_ints(in, "strides", 2, 1);
    expect_ints(in, "dilations", 2, 1);
    expect_ints(in, "pads", 4, 0);
    const auto& kernel = in.node().get<std::vector<int64_t>>("kernel");
    int64_t groups = in.node().get<int64_t>("groups");
    Dim taps = Dim(kernel[0]) * kernel[1], all_taps = taps * groups; // in dims, as these are checked
    if (x.rank() != 4 || offset.rank() != 4 || offset.dtype() != x.dtype() || offset.dim(0) != x.dim(0) ||
        offset.dim(1) != all_taps * 2)
        in.fail("offsets " + offset.text() + " for " + x.text());
    auto channels = x.dim(1).constant();
    if (groups < 1 || !channels || *channels % groups != 0)
        in.fail(x.dim(1).text() + " channels in " + std::to_string(groups) + " groups");
    Type mask = Type::tensor(x.dtype(), {x.dim(0), all_taps, offset.dim(2), offset.dim(3)});
    if (in.has_operand(2) && in.type(2).with_layout({}) != mask)
        in.fail("the mask is " + in.type(2).text() + ", expected " + mask.text());
    in.result(x.with_layout({}).with_shape({x.dim(0), taps * *channels, offset.dim(2) * offset.dim(3)}));
}

std::vector<AttributeDef> regions(std::vector<AttributeDef> own) {
    own.push_back({"height", AttributeKind::Int});
    own.push_back({"width", AttributeKind::Int});
    own.push_back({"scale", AttributeKind::Float, 1.0});
    return own;
}

const OpDef defs[] = {
    {
        .name = "grid_sample",
        .summary = "x at the positions in grid, where -1 and 1 are the edges of an axis and the last axis comes first",
        .operands = {{"x", Accepts::Floating}, {"grid", Accepts::Floating}},
        .attributes = {{"mode", AttributeKind::String, std::string("linear")},
                       {"outside", AttributeKind::String, std::string("zeros")},
                       {"aligns_corners", AttributeKind::Bool, false}},
        .infer = infer_grid_sample,
        .lower = kernel("grid_sample"),
    },
    {
        .name = "roi_align",
        .summary = "The mean of interpolated samples in each bin of the regions x1, y1, x2, y2 of the given images, or "
                   "with takes_max the largest of the weighted elements that the samples are made of",
        .operands = {{"x", Accepts::Floating}, {"rois", Accepts::Floating}, {"images", Accepts::Index}},
        .attributes = regions({{"shift", AttributeKind::Float, 0.0},
                               {"samples", AttributeKind::Int, int64_t{0}},
                               {"takes_max", AttributeKind::Bool, false},
                               {"is_enlarged", AttributeKind::Bool, false}}),
        .infer = infer_regions<4>,
        .lower = kernel("roi_align"),
    },
    {
        .name = "roi_max_pool",
        .summary = "The largest element in each bin of the regions image, x1, y1, x2, y2",
        .operands = {{"x", Accepts::Floating}, {"rois", Accepts::Floating}},
        .attributes = regions({}),
        .infer = infer_regions<5>,
        .lower = kernel("roi_max_pool"),
    },
    {
        .name = "deformed_windows",
        .summary = "What each tap of a window meets when it is moved by an offset and scaled by a mask",
        .operands = {{"x", Accepts::Floating},
                     {"offset", Accepts::Floating},
                     {"mask", Accepts::Floating, OperandDef::Optional}},
        .attributes = {{"kernel", AttributeKind::Ints},
                       {"strides", AttributeKind::Ints, std::vector<int64_t>{1, 1}},
                       {"dilations", AttributeKind::Ints, std::vector<int64_t>{1, 1}},
                       {"pads", AttributeKind::Ints, std::vector<int64_t>{0, 0, 0, 0}},
                       {"groups", AttributeKind::Int, int64_t{1}}},
        .infer = infer_deformed_windows,
        .lower = kernel("deformed_windows"),
    },
};

} // namespace

std::span<const OpDef> sampling_ops() { return defs; }

} // namespace cuvil
