// conv(x, w, b) * scale + shift = conv(x, w * scale, b * scale + shift): what follows a convolution channel by channel
// costs nothing. The new weights are computed in f64 and rounded once.
#include "optimize/channel_affine.hpp"
#include "optimize/constants.hpp"
#include "optimize/passes.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// The convolution that makes operand i, if nobody else sees its result and its weights are known.
OpNode* private_convolution(const OpNode& node, size_t i, const Program& program) {
    OpNode* conv = node.operand(i)->producer();
    if (!conv || conv->op() != "conv2d" || !conv->result().has_one_use()) return nullptr;
    const Type& type = conv->result().type();
    if (type.dtype() != DType::F32 && type.dtype() != DType::F64) return nullptr;
    if (!constant_bytes(program, *conv->operand(1))) return nullptr;
    if (conv->operand(2) && !constant_bytes(program, *conv->operand(2))) return nullptr;
    return conv;
}

struct Match {
    OpNode* conv;
    ChannelAffine affine;
};

std::optional<Match> match_operand(const OpNode& node, size_t i, const Program& program) {
    OpNode* conv = private_convolution(node, i, program);
    if (!conv) return std::nullopt;
    auto affine = node.op() == "batch_norm" ? affine_of_batch_norm(node, program) : affine_of_binary(node, i, program);
    if (!affine) return std::nullopt;
    return Match{conv, std::move(*affine)};
}

std::optional<Match> match(const OpNode& node, const Program& program) {
    bool binary = node.op() == "add" || node.op() == "mul";
    if (!binary && node.op() != "batch_norm") return std::nullopt;
    auto found = match_operand(node, 0, program);
    return found || !binary ? found : match_operand(node, 1, program);
}

bool is_scaled(const ChannelAffine& affine) {
    return std::ranges::any_of(affine.scale, [](double s) { return s != 1; });
}

Value& scaled_weight(Value& weight, const ChannelAffine& affine, Rewriter& rewriter) {
    if (!is_scaled(affine)) return weight;
    std::vector<double> elements = *constant_floats(rewriter.program(), weight);
    size_t per_channel = elements.size() / affine.scale.size();
    for (size_t i = 0; i < elements.size(); i++) elements[i] *= affine.scale[i / per_channel];
    const Type& type = weight.type();
    return rewriter.constant(type, float_bytes(elements, type.dtype()), folded_name(weight));
}

// Named after the weight where the convolution had no bias.
Value& shifted_bias(const OpNode& conv, const ChannelAffine& affine, Rewriter& rewriter) {
    std::vector<double> elements = affine.shift;
    const Value* bias = conv.operand(2);
    if (bias) {
        std::vector<double> given = *constant_floats(rewriter.program(), *bias);
        for (size_t k = 0; k < elements.size(); k++) elements[k] += given[k] * affine.scale[k];
    }
    DType dtype = conv.result().type().dtype();
    return rewriter.constant(Type::tensor(dtype, {conv.result().type().dim(1)}), float_bytes(elements, dtype),
                             bias ? folded_name(*bias) : folded_name(*conv.operand(1)) + "_bias");
}

void fuse_into_convolution(OpNode& node, const Match& found, Rewriter& rewriter) {
    rewriter.insert_before(node);
    rewriter.set_location(found.conv->location());
    Value& weight = scaled_weight(*found.conv->operand(1), found.affine, rewriter);
    Value& bias = shifted_bias(*found.conv, found.affine, rewriter);
    Value& fused = rewriter.make("conv2d", {found.conv->operand(0), &weight, &bias}, found.conv->attributes());
    fused.set_type(node.result().type());
    rewriter.replace(node, fused);
    rewriter.erase(*found.conv);
}

void fuse_region(Region& region, Rewriter& rewriter) {
    for (auto at = region.nodes().begin(); at != region.nodes().end();) {
        OpNode& node = **at++;
        for (const auto& inner : node.regions()) fuse_region(*inner, rewriter);
        if (auto found = match(node, rewriter.program())) fuse_into_convolution(node, *found, rewriter);
    }
}

} // namespace

void fuse_operators(FuncIR& function, PassContext& context) {
    Rewriter rewriter(context.program, function);
    fuse_region(function.body(), rewriter);
}

} // namespace cuvil
