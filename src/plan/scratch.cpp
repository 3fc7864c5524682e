#include "plan/scratch.hpp"

#include "ops/views.hpp"
#include "plan/pack.hpp"
#include "plan/winograd.hpp"

#include <algorithm>

namespace cuvil {
namespace {

int64_t size_or_open(const Dim& dim) { return dim.constant().value_or(-1); }

int64_t winograd_bytes(const OpNode& node, std::string_view kernel, const PointScheme& scheme) {
    const Shape& y = node.result().type().shape();
    return winograd_scratch_bytes(scheme, size_or_open(y[0]), *channels_at_points(node, kernel).constant(),
                                  *y[1].constant(), size_or_open(y[2]), size_or_open(y[3]));
}

ConvSizes sizes_of(const Conv2dOp& conv) {
    const Shape &x = conv.x().type().shape(), &y = conv.result().type().shape(), &w = conv.weight().type().shape();
    return {*x[1].constant(),   *y[1].constant(),   size_or_open(x[2]), size_or_open(x[3]),
            size_or_open(y[2]), size_or_open(y[3]), *w[2].constant(),   *w[3].constant(),
            conv.strides(),     conv.dilations(),   conv.pads()};
}

Dim conv_depthwise_bytes(OpNode& first, OpNode& second) {
    ConvSizes a = sizes_of(Conv2dOp(first)), b = sizes_of(Conv2dOp(second));
    if (std::min({a.oh, a.ow, b.oh, b.ow}) >= 0) return conv_depthwise_scratch_bytes(a, b);
    OpenScratch open = open_conv_depthwise_scratch(b);
    const Shape &x = second.operand(0)->type().shape(), &y = second.result().type().shape();
    Dim reach = (y[3] - 1) * b.strides[1] + Dim((b.s - 1) * b.dilations[1] + 1);
    return Dim::max(Dim::max(x[3] + b.pads[1], reach) * open.bytes_per_pixel, open.least_bytes);
}

} // namespace

Dim scratch_bytes(const Plan& plan, const Step& step) {
    auto kernel = plan.kernels.find(step.anchor);
    if (kernel == plan.kernels.end()) return 0;
    if (PointScheme scheme = point_scheme(*step.anchor, kernel->second); scheme.tile > 0)
        return winograd_bytes(*step.anchor, kernel->second, scheme);
    if (kernel->second == "conv2d_depthwise") return conv_depthwise_bytes(*step.within.at(0).anchor, *step.anchor);
    return 0;
}

} // namespace cuvil
