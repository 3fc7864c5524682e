// conv(x, w, b) * scale + shift = conv(x, w * scale, b * scale + shift): what follows a convolution channel by channel,
// or a product column by column, costs nothing. The new weights are computed in f64 and rounded once.
#include "optimize/channel_affine.hpp"
#include "optimize/constants.hpp"
#include "optimize/rules/rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cuvil {
namespace {

bool is_known(const MatchContext& match, std::string_view name) {
    return !match[name] || constant_floats(match.program(), *match[name]).has_value();
}

bool has_known_weights(const MatchContext& match) { return is_known(match, "w") && is_known(match, "b"); }

// A copy of a matrix that others use as well would cost more than the factors do.
bool has_own_matrix(const MatchContext& match) {
    return match["w"]->type().rank() == 2 && match["w"]->has_one_use() && is_known(match, "w");
}

// The weight with a factor for each index of an axis, behind which it has `inner` elements. nullptr where a finite
// element would become infinite.
Value* scaled_weight(Value& weight, const std::vector<double>& scale, size_t inner, Rewriter& rewriter) {
    if (std::ranges::all_of(scale, [](double s) { return s == 1; })) return &weight;
    const Type& type = weight.type();
    double limit = type.dtype() == DType::F32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    std::vector<double> elements = *constant_floats(rewriter.program(), weight);
    for (size_t i = 0; i < elements.size(); i++) {
        double product = elements[i] * scale[i / inner % scale.size()];
        if (std::isfinite(elements[i]) && std::abs(product) > limit) return nullptr;
        elements[i] = product;
    }
    return &rewriter.constant(type, float_bytes(elements, type.dtype()), folded_name(weight));
}

// The bias that is left, one element for each channel; named after the weight where there was none.
Value& shifted_bias(const Value* bias, const Value& weight, const ChannelAffine& affine, Rewriter& rewriter) {
    std::vector<double> elements = affine.shift;
    if (bias) {
        std::vector<double> given = *constant_floats(rewriter.program(), *bias);
        for (size_t k = 0; k < elements.size(); k++) elements[k] += given[k] * affine.scale[k];
    }
    DType dtype = weight.type().dtype();
    return rewriter.constant(Type::tensor(dtype, {static_cast<int64_t>(elements.size())}), float_bytes(elements, dtype),
                             bias ? folded_name(*bias) : folded_name(weight) + "_bias");
}

// What the root does to each channel.
std::optional<ChannelAffine> affine_of_root(const MatchContext& match, int64_t axis) {
    if (match.root().op() == "batch_norm") return affine_of_batch_norm(match.root(), match.program());
    return affine_of_binary(match.root(), *match["k"], axis, match.program());
}

// Output channels are the first axis of a convolution's weight, and the second one of a transposed convolution's.
FusedOp into_convolution(const MatchResult& match) {
    auto affine = affine_of_root(match, 1);
    if (!affine || affine->scale.empty()) return nullptr;
    const OpNode& conv = match.node("c");
    const Shape& shape = match["w"]->type().shape();
    auto inner =
        element_count({shape.begin() + (conv.op().starts_with("conv_transpose") ? 2 : 1), shape.end()}).constant();
    Value* weight =
        scaled_weight(*match["w"], affine->scale, static_cast<size_t>(std::max<int64_t>(*inner, 1)), match.rewriter());
    if (!weight) return nullptr;
    Value& bias = shifted_bias(match["b"], *match["w"], *affine, match.rewriter());
    return &match.make(conv.op(), {match["x"], weight, &bias}, conv.attributes());
}

// The channels stay axis 1 through the reshape behind a convolution along one axis.
bool keeps_channels(const MatchContext& match) {
    const Type &image = match["c"]->type(), &line = match["f"]->type();
    return has_known_weights(match) && line.rank() >= 2 && image.dim(0) == line.dim(0) && image.dim(1) == line.dim(1);
}

FusedOp into_convolution_before_reshape(const MatchResult& match) {
    Value* fused = into_convolution(match);
    if (!fused) return nullptr;
    fused->set_type(match["c"]->type());
    return &match.make("reshape", {fused}, match.node("f").attributes());
}

// A product has no bias of its own: what is added stays an `add` of a broadcast vector, as planning expects it.
FusedOp into_product(const MatchResult& match, const Value* bias) {
    const Type& type = match.root().result().type();
    auto affine = affine_of_root(match, type.rank() - 1);
    if (!affine || affine->scale.empty()) return nullptr;
    Value* weight = scaled_weight(*match["w"], affine->scale, 1, match.rewriter());
    if (!weight) return nullptr;
    Value& product = match.make("matmul", {match["x"], weight});
    product.set_type(type);
    if (!bias && match.root().op() != "batch_norm") return &product;
    Value& shift = shifted_bias(bias, *match["w"], *affine, match.rewriter());
    Value& everywhere = match.make("broadcast", {&shift}, {{"shape", type.shape()}});
    return &match.make("add", {&product, &everywhere});
}

FusedOp factors_into_product(const MatchResult& match) { return into_product(match, nullptr); }

// The same behind the product's bias.
FusedOp factors_into_biased_product(const MatchResult& match) { return into_product(match, match["b"]); }

bool has_own_matrix_and_bias(const MatchContext& match) {
    const Type &bias = match["b"]->type(), &matrix = match["w"]->type();
    return has_own_matrix(match) && is_known(match, "b") && bias.rank() > 0 && bias.dim(-1) == matrix.dim(1) &&
           element_count(bias.shape()) == matrix.dim(1);
}

// batch_norm knows channels of axis 1 only.
bool has_columns_as_channels(const MatchContext& match) {
    return has_own_matrix(match) && match.root().result().type().rank() == 2;
}

const Rule rules[] = {
    {"conv_bn_fuse", "%c = conv2d %x, %w, %b  %r = batch_norm %c, %scale, %shift, %mean, %variance", has_known_weights,
     into_convolution},
    {"conv_reshape_bn", "%c = conv2d %x, %w, %b  %f = reshape %c  %r = batch_norm %f, %scale, %shift, %mean, %variance",
     keeps_channels, into_convolution_before_reshape},
    {"conv_mul", "%c = conv2d %x, %w, %b  %r = mul %c, %k", has_known_weights, into_convolution},
    {"conv_add", "%c = conv2d %x, %w, %b  %r = add %c, %k", has_known_weights, into_convolution},
    {"conv_sub", "%c = conv2d %x, %w, %b  %r = sub %c, %k", has_known_weights, into_convolution},
    {"conv_div", "%c = conv2d %x, %w, %b  %r = div %c, %k", has_known_weights, into_convolution},
    {"conv3d_bn", "%c = conv3d %x, %w, %b  %r = batch_norm %c, %scale, %shift, %mean, %variance", has_known_weights,
     into_convolution},
    // The channels of a group are no axis of the weight, so there is one group.
    {"conv_transpose_bn",
     "%c = conv_transpose2d %x, %w, %b {groups = 1}  %r = batch_norm %c, %scale, %shift, %mean, %variance",
     has_known_weights, into_convolution},
    {"conv_transpose_mul", "%c = conv_transpose2d %x, %w, %b {groups = 1}  %r = mul %c, %k", has_known_weights,
     into_convolution},
    {"conv_transpose_add", "%c = conv_transpose2d %x, %w, %b {groups = 1}  %r = add %c, %k", has_known_weights,
     into_convolution},
    {"matmul_mul", "%p = matmul %x, %w  %r = mul %p, %k", has_own_matrix, factors_into_product},
    {"matmul_div", "%p = matmul %x, %w  %r = div %p, %k", has_own_matrix, factors_into_product},
    {"matmul_bn", "%p = matmul %x, %w  %r = batch_norm %p, %scale, %shift, %mean, %variance", has_columns_as_channels,
     factors_into_product},
    {"matmul_add_mul", "%p = matmul %x, %w  %v = broadcast %b  %s = add %p, %v  %r = mul %s, %k",
     has_own_matrix_and_bias, factors_into_biased_product},
    {"matmul_add_div", "%p = matmul %x, %w  %v = broadcast %b  %s = add %p, %v  %r = div %s, %k",
     has_own_matrix_and_bias, factors_into_biased_product},
    {"matmul_add_bn",
     "%p = matmul %x, %w  %v = broadcast %b  %s = add %p, %v  %r = batch_norm %s, %scale, %shift, %mean, %variance",
     [](const MatchContext& match) { return has_own_matrix_and_bias(match) && has_columns_as_channels(match); },
     factors_into_biased_product},
};

} // namespace

std::span<const Rule> channel_rules() { return rules; }

} // namespace cuvil
