// Reshapes go behind elementwise ops: what follows a convolution along one axis, which is computed as an image of one
// row, or a product of flattened rows, then joins its kernel.
//
//   %1 = conv2d %x, %w : f32[N,C,1,L]                %1 = conv2d %x, %w : f32[N,C,1,L]
//   %2 = reshape %1 {shape = [N,C,L]}          ->    %2 = relu %1 : f32[N,C,1,L]
//   %3 = relu %2 : f32[N,C,L]                        %3 = reshape %2 {shape = [N,C,L]}
//
// Exact, and free: a reshape moves nothing. Of the other operands only constants follow, so that what is computed of a
// reshaped tensor, such as its mean, still meets that tensor in the patterns of rules.
#include "optimize/constants.hpp"
#include "optimize/passes.hpp"

#include <algorithm>

namespace cuvil {
namespace {

bool is_one(const Dim& d) { return d.is(1); }

// What a tensor of shape `small`, which is broadcast to `after`, must be reshaped to, so that it can be broadcast to
// `before` and mean the same elements; nothing where there is no such shape. `before` and `after` are two shapes of the
// same elements.
std::optional<Shape> as_before(Shape small, const Shape& before, const Shape& after) {
    if (std::ranges::all_of(small, is_one)) return Shape{};
    small.insert(small.begin(), after.size() - small.size(), Dim(1));
    Shape shape(before.size(), Dim(1));
    // From the end, as long as the axes correspond; axes of size 1 correspond to nothing.
    size_t i = before.size(), k = after.size();
    while (k > 0) {
        if (is_one(after[k - 1])) {
            k--;
        } else if (i > 0 && is_one(before[i - 1])) {
            i--;
        } else if (i > 0 && before[i - 1] == after[k - 1]) {
            shape[--i] = small[--k];
        } else {
            break;
        }
    }
    bool all_there = std::all_of(small.begin(), small.begin() + static_cast<std::ptrdiff_t>(k), is_one);
    shape.erase(shape.begin(), std::ranges::find_if_not(shape, is_one)); // a broadcast needs none of them
    return all_there ? std::optional(shape) : std::nullopt;
}

class ReshapeSinking {
public:
    ReshapeSinking(OpNode& node, Rewriter& rewriter) : node_(node), rewriter_(rewriter) {}

    // What takes the node's place, or nullptr.
    Value* sunk() {
        if (!node_.def().has(elementwise) || !node_.result().type().has_rank()) return nullptr;
        if (std::ranges::count(node_.operands(), nullptr) != 0) return nullptr;
        for (const Value* operand : node_.operands())
            if (is_reshape(*operand)) before_ = &operand->producer()->operand(0)->type().shape();
        if (!before_) return nullptr;
        std::vector<Value*> operands;
        const Shape before = *before_, after = node_.result().type().shape();
        for (Value* operand : node_.operands())
            if (!is_possible(*operand, before, after)) return nullptr;
        for (Value* operand : node_.operands()) operands.push_back(&moved(*operand, before, after));
        Value& result = rewriter_.make(node_.op(), operands, node_.attributes());
        return &rewriter_.make("reshape", {&result}, {{"shape", after}});
    }

private:
    static bool is_reshape(const Value& value) { return value.producer() && value.producer()->op() == "reshape"; }
    static const Value& source(const Value& value) { return *value.producer()->operand(0); }

    static bool is_possible(const Value& operand, const Shape& before, const Shape& after) {
        if (is_reshape(operand)) return source(operand).type().shape() == before;
        const Value& elements = behind_broadcast(operand);
        return is_constant(elements) && (&elements == &operand || as_before(elements.type().shape(), before, after));
    }

    Value& moved(Value& operand, const Shape& before, const Shape& after) {
        if (is_reshape(operand)) return *operand.producer()->operand(0);
        if (is_constant(operand)) return rewriter_.make("reshape", {&operand}, {{"shape", before}});
        Value& elements = *operand.producer()->operand(0);
        Shape shape = *as_before(elements.type().shape(), before, after);
        return rewriter_.make("broadcast", {&rewriter_.make("reshape", {&elements}, {{"shape", shape}})},
                              {{"shape", before}});
    }

    OpNode& node_;
    Rewriter& rewriter_;
    const Shape* before_ = nullptr;
};

} // namespace

bool sink_reshapes(OpNode& node, Rewriter& rewriter) {
    return replace_by(node, rewriter, [&] { return ReshapeSinking(node, rewriter).sunk(); });
}

} // namespace cuvil
