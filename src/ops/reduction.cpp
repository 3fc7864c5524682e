// Reductions. Reduced axes stay with size 1; a reshape behind removes them where the model wants that.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

void infer_reduce(Inference& in) {
    const Type& x = in.ranked(0);
    Shape shape = x.shape();
    for (int64_t axis : in.node().get<std::vector<int64_t>>("axes"))
        shape[static_cast<size_t>(normal_axis(in, axis, x.rank()))] = 1;
    in.result(x.with_layout({}).with_shape(std::move(shape)));
}

OpDef reduction(std::string_view name, std::string_view summary, Accepts accepts, std::string_view family) {
    return {
        .name = name,
        .summary = summary,
        .operands = {{"x", accepts}},
        .attributes = {{"axes", AttributeKind::Ints}},
        .infer = infer_reduce,
        .lower = kernel(family),
    };
}

const OpDef defs[] = {
    reduction("reduce_sum", "The sum over the axes; 0 over nothing", Accepts::Number, "Sum"),
    reduction("reduce_mean", "The mean over the axes; integers truncate, and give 0 over nothing, floats NaN",
              Accepts::Number, "Mean"),
    reduction("reduce_max", "The largest value over the axes; NaN if one is NaN; the lowest value over nothing",
              Accepts::Number, "Max"),
    reduction("reduce_min", "The smallest value over the axes; NaN if one is NaN; the highest value over nothing",
              Accepts::Number, "Min"),
    reduction("reduce_prod", "The product over the axes; 1 over nothing", Accepts::Number, "Prod"),
};

} // namespace

std::span<const OpDef> reduction_ops() { return defs; }

} // namespace cuvil
