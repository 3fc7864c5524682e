// GridSample, regions of interest, DeformConv.
#include "import/onnx/rows.hpp"
#include "import/onnx/window.hpp"

#include <fmt/format.h>

namespace cuvil::onnx {
namespace {

Values grid_sample(Node& node) {
    std::string_view mode = node.text("mode", node.opset >= 20 ? "linear" : "bilinear");
    if (mode == "bilinear") mode = "linear";
    if (mode == "bicubic") mode = "cubic";
    std::string_view outside = node.text("padding_mode", "zeros");
    if (mode != "linear" && mode != "nearest" && mode != "cubic")
        bad_attribute(fmt::format("attribute \"mode\" is \"{}\"", mode));
    if (outside != "zeros" && outside != "border" && outside != "reflection")
        bad_attribute(fmt::format("attribute \"padding_mode\" is \"{}\"", outside));
    int64_t rank = node.type(0).rank();
    if (rank < 3) throw ImportError("shape-mismatch", fmt::format("{} has no axes for a grid", node.type(0).text()));
    if (rank > 5) node.unsupported(fmt::format("grids of {} axes", rank - 2));
    expect_rank(node, 1, rank);
    Shape shape = node.type(1).shape();
    shape.front() = node.type(0).dim(0);
    shape.back() = rank - 2;
    Value& grid = node.build.cast(node.build.fit(node.input(1), shape), node.type(0).dtype());
    return {&node.build.make("grid_sample", {&node.input(0), &grid},
                             {{"mode", std::string(mode)},
                              {"outside", std::string(outside)},
                              {"aligns_corners", node.integer("align_corners", 0) != 0}})};
}

Values roi_align(Node& node) {
    std::string_view mode = node.text("mode", "avg");
    if (mode != "avg" && mode != "max") bad_attribute(fmt::format("attribute \"mode\" is \"{}\"", mode));
    std::string_view coordinates =
        node.text("coordinate_transformation_mode", node.opset >= 16 ? "half_pixel" : "output_half_pixel");
    if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
        bad_attribute(fmt::format("attribute \"coordinate_transformation_mode\" is \"{}\"", coordinates));
    bool shifts = coordinates == "half_pixel";
    expect_rank(node, 0, 4);
    expect_rank(node, 1, 2);
    expect_rank(node, 2, 1);
    Dim regions = node.type(1).dim(0);
    Value& rois = node.build.fit(node.input(1), {regions, 4});
    Value& images = node.build.cast(node.build.fit(node.input(2), {regions}), DType::I64);
    return {&node.build.make("roi_align", {&node.input(0), &rois, &images},
                             {{"height", node.integer("output_height", 1)},
                              {"width", node.integer("output_width", 1)},
                              {"scale", node.real("spatial_scale", 1)},
                              {"shift", shifts ? 0.5 : 0.0},
                              {"samples", node.integer("sampling_ratio", 0)},
                              {"takes_max", mode == "max"},
                              {"is_enlarged", !shifts}})};
}

Values max_roi_pool(Node& node) {
    auto shape = node.integers("pooled_shape");
    if (!shape || shape->size() != 2) bad_attribute("attribute \"pooled_shape\" needs two integers");
    expect_rank(node, 0, 4);
    expect_rank(node, 1, 2);
    Value& rois = node.build.fit(node.input(1), {node.type(1).dim(0), 5});
    return {
        &node.build.make("roi_max_pool", {&node.input(0), &rois},
                         {{"height", (*shape)[0]}, {"width", (*shape)[1]}, {"scale", node.real("spatial_scale", 1)}})};
}

// The windows, moved and scaled, times the weights.
Values deform_conv(Node& node) {
    GraphBuilder& build = node.build;
    if (node.type(0).rank() != 4) node.unsupported(fmt::format("windows over {} axes", node.type(0).rank() - 2));
    expect_rank(node, 1, 4);
    expect_rank(node, 2, 4);
    std::vector<int64_t> weights = weight_sizes(node), kernel(weights.begin() + 2, weights.end());
    Window window = read_window(node, &kernel);
    int64_t groups = read_groups(node, "group"), outputs = weights[0];
    auto channels = node.type(0).dim(1).constant();
    if (!channels || outputs % groups != 0 || *channels % groups != 0)
        bad_attribute(fmt::format("attribute \"group\" is {} for {} and weights {}", groups, node.type(0).text(),
                                  node.type(1).text()));
    Dim batch = node.type(0).dim(0), height = node.type(2).dim(2), width = node.type(2).dim(3);
    Value& columns = build.make("deformed_windows", {&node.input(0), &node.input(2), node.optional_input(4)},
                                {{"kernel", kernel},
                                 {"strides", window.strides},
                                 {"dilations", window.dilations},
                                 {"pads", window.pads()},
                                 {"groups", read_groups(node, "offset_group")}});
    Dim depth = Dim(*channels / groups) * kernel[0] * kernel[1];
    Value& in_groups = build.reshape(columns, {batch, groups, depth, height * width});
    Value& w = build.reshape(node.input(1), {1, groups, outputs / groups, depth});
    Value* y = &build.reshape(build.matmul(w, in_groups), {batch, outputs, height, width});
    if (node.has_input(3)) {
        Value& bias = build.reshape(build.fit(node.input(3), {outputs}), {1, outputs, 1, 1});
        y = &build.elementwise("add", {y, &bias});
    }
    return {y};
}

const Row rows[] = {
    {"DeformConv", 19, newest, deform_conv, 3, 5, "dilations group kernel_shape offset_group pads strides",
     "deformed_windows, matmul"},
    {"GridSample", 16, newest, grid_sample, 2, 2, "align_corners mode padding_mode", "grid_sample"},
    {"MaxRoiPool", 1, newest, max_roi_pool, 2, 2, "pooled_shape spatial_scale", "roi_max_pool"},
    {"RoiAlign", 10, 15, roi_align, 3, 3, "mode output_height output_width sampling_ratio spatial_scale", "roi_align"},
    {"RoiAlign", 16, newest, roi_align, 3, 3,
     "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale", "roi_align"},
};

} // namespace

std::span<const Row> sampling_rows() { return rows; }

} // namespace cuvil::onnx
