#include "plan/cost.hpp"

#include "ops/views.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// A core in a nanosecond. Only the ratios decide what is chosen.
struct CoreRates {
    double multiplications; // of the micro-kernels, in f32
    double full_rows;       // from which on they are as quick
    double weights;         // bytes from memory
    double values;          // bytes, mostly from the caches
    double transforms;
};

// One choice serves all levels of a file: a core makes 100 multiplications with AVX-512 (a Xeon at 3.4 GHz) and 45 with
// AVX2 (an EPYC of the fourth generation).
constexpr CoreRates cpu_x86_64 = {
    .multiplications = 70, .full_rows = 8, .weights = 25, .values = 30, .transforms = 1 / 3.0};

Dim bytes_of(const Type& type) {
    return type.is_tensor() && type.has_rank()
               ? element_count(type.shape()) * Dim(static_cast<int64_t>(size_of(type.dtype())))
               : Dim(0);
}

Work convolution_work(const OpNode& node, std::string_view kernel) {
    const Type &x = node.operand(0)->type(), &w = node.operand(1)->type(), &y = node.result().type();
    if (PointScheme scheme = point_scheme(node, kernel); scheme.tile > 0)
        return winograd_work(scheme, x.dim(0), channels_at_points(node, kernel), y.dim(1), y.dim(2), y.dim(3));
    // Packed or not, the window's sizes begin at axis 2.
    size_t axes = x.shape().size() - 2;
    Dim taps = element_count(w.shape(), 2, 2 + axes), groups = node.get<int64_t>("groups");
    bool is_transposed = node.op() == "conv_transpose2d";
    Dim pixels = element_count((is_transposed ? x : y).shape(), 2, 2 + axes);
    return direct_convolution_work(x.dim(0), Dim::floordiv(x.dim(1), groups), y.dim(1), pixels, 1, taps);
}

Work product_work(const OpNode& node) {
    const Type &a = node.operand(0)->type(), &y = node.result().type();
    Work work;
    work.multiplications = element_count(a.shape()) * y.dim(-1);
    work.rows = element_count(a.shape(), 0, a.shape().size() - 1);
    return work;
}

Work attention_work(const OpNode& node) {
    const Type &q = node.operand(0)->type(), &k = node.operand(1)->type(), &v = node.operand(2)->type();
    Work work;
    work.multiplications = element_count(q.shape(), 0, q.shape().size() - 1) * k.dim(-1) * (q.dim(-1) + v.dim(-1));
    work.rows = q.dim(-2);
    return work;
}

Work recurrent_work(const OpNode& node) {
    const Type& y = node.result().type(); // [steps, batch, hidden]
    Dim gates = node.op() == "lstm" ? 4 : node.op() == "gru" ? 3 : 1;
    Work work;
    work.multiplications = element_count(y.shape()) * gates * y.dim(-1);
    work.rows = y.dim(1);
    return work;
}

Work kernel_work(const Plan& plan, const OpNode& node) {
    auto kernel = plan.kernels.find(&node);
    if (kernel == plan.kernels.end()) return {};
    if (node.op() == "conv2d" || node.op() == "conv_transpose2d" || kernel->second.starts_with("conv_"))
        return convolution_work(node, kernel->second);
    if (node.op() == "matmul") return product_work(node);
    if (kernel->second == "attention") return attention_work(node);
    if (kernel->second == "recurrent") return recurrent_work(node);
    return {};
}

// Products at the points of all tiles along one direction: the small tiles behind the others leave one out for each
// phase of the window.
Dim line_products(const PointScheme& scheme, const Dim& outputs) {
    Dim tiles = Dim::ceildiv(outputs, scheme.tile), small = Dim::min(tiles * scheme.tile - outputs, tiles);
    Dim products = tiles * Dim(scheme.points());
    return scheme.taps == 3 ? products - small * scheme.stride : products;
}

} // namespace

Work direct_convolution_work(const Dim& n, const Dim& c, const Dim& k, const Dim& oh, const Dim& ow, const Dim& taps) {
    Work work;
    work.rows = n * oh * ow;
    work.multiplications = work.rows * c * k * taps;
    work.weights = c * k * taps * Dim(sizeof(float));
    return work;
}

Work winograd_work(const PointScheme& scheme, const Dim& n, const Dim& c, const Dim& k, const Dim& oh, const Dim& ow) {
    Dim products = n * line_products(scheme, oh) * line_products(scheme, ow);
    Work work;
    work.rows = n * Dim::ceildiv(oh, scheme.tile) * Dim::ceildiv(ow, scheme.tile);
    work.multiplications = products * c * k;
    work.weights = Dim(scheme.weights() * scheme.weights()) * c * k * Dim(sizeof(float));
    work.transforms = products * (Dim::ceildiv(c, 16) + Dim::ceildiv(k, 16));
    return work;
}

Work work_of(const Plan& plan, const Step& step) {
    Work work = step.anchor ? kernel_work(plan, *step.anchor) : Work{};
    for (const Step& inner : step.within)
        work.multiplications = work.multiplications + kernel_work(plan, *inner.anchor).multiplications;
    work.weights = 0;
    const auto add = [](Dim& bytes, const Value& value) { bytes = bytes + bytes_of(value.type()); };
    for (const Value* value : memory_operands(step))
        add(is_constant(alias_root(*value)) ? work.weights : work.values, *value);
    for (const Value* value : step.outputs) add(work.values, *value);
    return work;
}

std::optional<Estimate> estimate(const Work& work) {
    for (const auto& [name, member] : work_members)
        if (!(work.*member).constant()) return std::nullopt;
    const auto number = [](const Dim& size) { return static_cast<double>(*size.constant()); };
    const CoreRates& core = cpu_x86_64;
    double at_peak = number(work.multiplications) / core.multiplications;
    double computing = at_peak / std::min(1.0, std::max(1.0, number(work.rows)) / core.full_rows) +
                       number(work.weights) / core.weights + number(work.transforms) / core.transforms;
    double time = std::max(computing, number(work.values) / core.values);
    return Estimate{time, time > 0 ? at_peak / time : 0};
}

} // namespace cuvil
