// Resampling of images and other grids.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

void infer_fractions(Inference& in) {
    const Type& x = in.ranked(0);
    if (x.rank() != 1) in.fail("operand " + x.text() + " is not of rank 1");
    in.result(Type::tensor(DType::I64, {2, x.dim(0)}));
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
    size_t scales = in.node().get<std::vector<double>>("scales").size();
    if (scales != 0 && scales != axes.size()) in.fail("attribute 'scales' needs an entry for each axis or none");
    if (in.has_operand(1) && in.type(1) != Type::tensor(DType::F64, {2, static_cast<int64_t>(axes.size())}))
        in.fail("regions " + in.type(1).text() + " need a start and an end for each axis");
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
            "x sampled anew along rising axes; element o is the value at start * (in - 1) + (end - start) * (o * "
            "numerators + offsets) / denominators, nearest or interpolated; `regions` holds a start for each axis, "
            "then an end, else they are 0 and 1",
        .operands = {{"x"}, {"regions", Accepts::Floating, OperandDef::Optional}},
        .attributes = {{"axes", AttributeKind::Ints},
                       {"sizes", AttributeKind::Dims},
                       {"numerators", AttributeKind::Dims},
                       {"offsets", AttributeKind::Dims},
                       {"denominators", AttributeKind::Dims},
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
    {
        .name = "simplest_fractions",
        .summary =
            "For each element the first convergent of its continued fraction that rounds to it, first what stands "
            "above, then what stands below; 0 and 1 where it is not between 2^-24 and 2^24",
        .operands = {{"x", Accepts::F32}},
        .infer = infer_fractions,
        .lower = kernel("simplest_fractions"),
    },
};

} // namespace

std::span<const OpDef> resize_ops() { return defs; }

} // namespace cuvil
