// Resampling of images and other grids.
#include "ops/families.hpp"
#include "ops/infer.hpp"

#include <algorithm>

namespace cuvil {
namespace {

void expect_one_of(const Inference& in, std::string_view attribute, std::initializer_list<std::string_view> words) {
    const auto& word = in.node().get<std::string>(attribute);
    if (std::ranges::find(words, word) == words.end())
        in.fail("attribute '" + std::string(attribute) + "' is \"" + word + "\"");
}

void infer_resize(Inference& in) {
    const Type& x = in.ranked(0);
    const auto& axes = in.node().get<std::vector<int64_t>>("axes");
    const auto& sizes = in.node().get<Shape>("sizes");
    Shape shape = x.shape();
    int64_t before = -1;
    for (size_t i = 0; i < axes.size(); i++) {
        if (axes[i] <= before || axes[i] >= x.rank()) in.fail("the axes do not rise within " + x.text());
        before = axes[i];
    }
    for (std::string_view name : {"sizes", "numerators", "offsets", "denominators"})
        if (in.node().get<Shape>(name).size() != axes.size())
            in.fail("attribute '" + std::string(name) + "' needs an entry for each axis");
    for (std::string_view name : {"starts", "ends", "scales"}) {
        size_t count = in.node().get<std::vector<double>>(name).size();
        if (count != 0 && count != axes.size())
            in.fail("attribute '" + std::string(name) + "' needs an entry for each axis or none");
    }
    expect_one_of(in, "mode", {"nearest", "linear", "cubic"});
    expect_one_of(in, "nearest", {"floor", "ceil", "half_down", "half_up"});
    if (in.node().get<std::string>("mode") != "nearest" && !is_floating(x.dtype()))
        in.fail("only floating-point elements can be interpolated, not those of " + x.text());
    for (size_t i = 0; i < axes.size(); i++) shape[static_cast<size_t>(axes[i])] = sizes[i];
    in.result(x.with_layout({}).with_shape(std::move(shape)));
}

const OpDef defs[] = {
    {
        .name = "resize",
        .summary =
            "x sampled anew along rising axes; element o is the value at starts * (in - 1) + (ends - starts) * (o "
            "* numerators + offsets) / denominators, nearest or interpolated",
        .operands = {{"x"}},
        .attributes = {{"axes", AttributeKind::Ints},
                       {"sizes", AttributeKind::Dims},
                       {"numerators", AttributeKind::Dims},
                       {"offsets", AttributeKind::Dims},
                       {"denominators", AttributeKind::Dims},
                       {"starts", AttributeKind::Floats, std::vector<double>{}},
                       {"ends", AttributeKind::Floats, std::vector<double>{}},
                       {"scales", AttributeKind::Floats, std::vector<double>{}},
                       {"mode", AttributeKind::String, std::string("nearest")},
                       {"nearest", AttributeKind::String, std::string("half_down")},
                       {"cubic", AttributeKind::Float, -0.75},
                       {"exclude_outside", AttributeKind::Bool, false},
                       {"antialias", AttributeKind::Bool, false},
                       {"extrapolate", AttributeKind::Bool, false},
                       {"outside", AttributeKind::Float, 0.0}},
        .infer = infer_resize,
        .lower = kernel("resize_any"),
    },
};

} // namespace

std::span<const OpDef> resize_ops() { return defs; }

} // namespace cuvil
