#include "optimize/channel_affine.hpp"

#include "optimize/constants.hpp"

#include <algorithm>
#include <cmath>

namespace cuvil {
namespace {

bool all_finite(const std::vector<double>& values) {
    return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

// The elements of a constant that is broadcast to `like` along all axes but one.
std::optional<std::vector<double>> one_for_each_index(const Value& value, const Type& like, int64_t axis,
                                                      const Program& program) {
    const Value& constant = behind_broadcast(value);
    if (!constant.type().has_rank() || !like.has_rank() || like.rank() <= axis || constant.type().rank() > like.rank())
        return std::nullopt;
    auto count = like.dim(axis).constant();
    if (!count) return std::nullopt;
    for (int64_t from_end = 1; from_end <= constant.type().rank(); from_end++) {
        const Dim& size = constant.type().dim(-from_end);
        if (!size.is(1) && !(from_end == like.rank() - axis && size == like.dim(axis))) return std::nullopt;
    }
    auto elements = constant_floats(program, constant);
    if (elements && elements->size() == 1) elements->resize(static_cast<size_t>(*count), elements->front());
    return elements;
}

} // namespace

std::optional<ChannelAffine> affine_of_batch_norm(const OpNode& node, const Program& program) {
    std::vector<std::vector<double>> constants;
    for (size_t i = 1; i < 5; i++) {
        auto elements = constant_floats(program, *node.operand(i));
        if (!elements) return std::nullopt;
        constants.push_back(std::move(*elements));
    }
    const auto &scale = constants[0], &bias = constants[1], &mean = constants[2], &variance = constants[3];
    double epsilon = node.get<double>("epsilon");
    ChannelAffine affine;
    for (size_t c = 0; c < scale.size(); c++) {
        affine.scale.push_back(scale[c] / std::sqrt(variance[c] + epsilon));
        affine.shift.push_back(bias[c] - mean[c] * affine.scale[c]);
    }
    if (!all_finite(affine.scale)) return std::nullopt;
    return affine;
}

std::optional<ChannelAffine> affine_of_binary(const OpNode& node, const Value& constant, int64_t axis,
                                              const Program& program) {
    auto elements = one_for_each_index(constant, node.result().type(), axis, program);
    if (!elements) return std::nullopt;
    const std::vector<double> ones(elements->size(), 1), zeros(elements->size(), 0);
    if (node.op() == "sub" || node.op() == "div")
        for (double& e : *elements) e = node.op() == "sub" ? -e : 1 / e;
    if (node.op() == "add" || node.op() == "sub") return ChannelAffine{ones, std::move(*elements)};
    return all_finite(*elements) ? std::optional(ChannelAffine{std::move(*elements), zeros}) : std::nullopt;
}

} // namespace cuvil
