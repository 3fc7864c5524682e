// Ops without a kernel, in terms of those that have one.
#include "optimize/channel_affine.hpp"
#include "optimize/constants.hpp"
#include "optimize/passes.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// Builds the values that follow a batch_norm's x.
class BatchNorm {
public:
    BatchNorm(OpNode& node, Rewriter& rewriter) : node_(node), rewriter_(rewriter), type_(node.operand(0)->type()) {}

    Value& decomposed() {
        if (auto affine = affine_of_batch_norm(node_, rewriter_.program())) return scaled_and_shifted(*affine);
        return by_definition();
    }

private:
    Value& scaled_and_shifted(const ChannelAffine& affine) {
        Value& scale = constant_for_channels(affine.scale, *node_.operand(1));
        Value& shift = constant_for_channels(affine.shift, *node_.operand(2));
        Value& scaled = rewriter_.make("mul", {node_.operand(0), &scale});
        return rewriter_.make("add", {&scaled, &shift});
    }

    // (x - mean) / sqrt(variance + epsilon) * scale + bias
    Value& by_definition() {
        double epsilon = node_.get<double>("epsilon");
        const Type& channels = node_.operand(4)->type();
        Value& single = rewriter_.constant(Type::tensor(type_.dtype(), {}), float_bytes({&epsilon, 1}, type_.dtype()));
        Value& spread = rewriter_.make("broadcast", {&single}, {{"shape", channels.shape()}});
        Value& variance = rewriter_.make("add", {node_.operand(4), &spread});
        Value& deviation = rewriter_.make("sqrt", {&variance});
        Value& centered = rewriter_.make("sub", {node_.operand(0), &for_channels(*node_.operand(3))});
        Value& normal = rewriter_.make("div", {&centered, &for_channels(deviation)});
        Value& scaled = rewriter_.make("mul", {&normal, &for_channels(*node_.operand(1))});
        return rewriter_.make("add", {&scaled, &for_channels(*node_.operand(2))});
    }

    // [C] -> [C,1,...,1], which aligns with axis 1 of x.
    Shape aligned() const {
        Shape shape(static_cast<size_t>(type_.rank() - 1), Dim(1));
        shape[0] = type_.dim(1);
        return shape;
    }

    Value& for_channels(Value& values) {
        Value& column = rewriter_.make("reshape", {&values}, {{"shape", aligned()}});
        return rewriter_.make("broadcast", {&column}, {{"shape", type_.shape()}});
    }

    Value& constant_for_channels(const std::vector<double>& elements, const Value& from) {
        Value& column = rewriter_.constant(Type::tensor(type_.dtype(), aligned()), float_bytes(elements, type_.dtype()),
                                           folded_name(from));
        return rewriter_.make("broadcast", {&column}, {{"shape", type_.shape()}});
    }

    OpNode& node_;
    Rewriter& rewriter_;
    Type type_;
};

// Kernels reduce neighbouring axes; others move to the end first, in their order. A size that is known to be 1 must not
// change bits, so an axis of size 1 is passed over only where the values are neighbours in memory with and without it.
Value* reduce_at_the_end(OpNode& node, Rewriter& rewriter) {
    const Type& type = node.operand(0)->type();
    std::vector<int64_t> kept, reduced, longer; // longer: the reduced ones of other sizes than 1
    const auto& axes = node.get<std::vector<int64_t>>("axes");
    for (int64_t i = 0; i < type.rank(); i++) {
        bool is_reduced =
            std::ranges::any_of(axes, [&](int64_t axis) { return (axis < 0 ? axis + type.rank() : axis) == i; });
        (is_reduced ? reduced : kept).push_back(i);
        if (is_reduced && !type.dim(i).is(1)) longer.push_back(i);
    }
    auto none_kept = [&](int64_t begin, int64_t end) {
        return std::ranges::none_of(kept, [&](int64_t i) { return i >= begin && i < end && !type.dim(i).is(1); });
    };
    if (reduced.empty() || none_kept(reduced.front(), reduced.back())) return nullptr;
    if (longer.empty() || none_kept(longer.front(), type.rank())) return nullptr;
    std::vector<int64_t> perm = kept, last;
    perm.insert(perm.end(), reduced.begin(), reduced.end());
    for (auto i = static_cast<int64_t>(kept.size()); i < type.rank(); i++) last.push_back(i);
    Value& moved = rewriter.make("transpose", {node.operand(0)}, {{"perm", perm}});
    Value& result = rewriter.make(node.op(), {&moved}, {{"axes", last}});
    return &rewriter.make("reshape", {&result}, {{"shape", node.result().type().shape()}});
}

size_t decompose_region(Region& region, Rewriter& rewriter) {
    size_t changes = 0;
    for (auto at = region.nodes().begin(); at != region.nodes().end();) {
        OpNode& node = **at++;
        for (const auto& inner : node.regions()) changes += decompose_region(*inner, rewriter);
        rewriter.insert_before(node);
        rewriter.set_location(node.location());
        if (node.op().starts_with("reduce_")) {
            if (Value* result = reduce_at_the_end(node, rewriter)) {
                rewriter.replace(node, *result);
                changes++;
            }
            continue;
        }
        if (node.op() != "batch_norm") continue;
        Value& decomposed = BatchNorm(node, rewriter).decomposed();
        decomposed.set_type(node.result().type());
        rewriter.replace(node, decomposed);
        changes++;
    }
    return changes;
}

} // namespace

void decompose(FuncIR& function, PassContext& context) {
    Rewriter rewriter(context.program, function);
    context.changes += decompose_region(function.body(), rewriter);
}

} // namespace cuvil
