// Transposes go behind elementwise ops, concat and pad, where they meet others and vanish with them: what a model of
// channels-last does between two convolutions of channels-first is then computed channels-first, and joins their
// kernels.
//
//   %1 = transpose %x {perm = [0,2,3,1]}           %k = reshape %bias, as [C,1,1]
//   %k = broadcast %bias {shape = [N,H,W,C]}  ->   %2 = broadcast %k {shape = [N,C,H,W]}
//   %2 = add %1, %k                                %3 = add %x, %2
//                                                  %4 = transpose %3 {perm = [0,2,3,1]}
//
// Exact, since elements keep their values and are only numbered otherwise. It comes to an end, since transposes only
// ever move towards the outputs; there are never more of them than before.
#include "optimize/constants.hpp"
#include "optimize/passes.hpp"

#include <algorithm>
#include <numeric>

namespace cuvil {
namespace {

using Ints = std::vector<int64_t>;

// The transpose that makes the value, where it runs as often as the node does.
const OpNode* transpose_before(const Value& value, const OpNode& node) {
    const OpNode* producer = value.producer();
    return producer && producer->op() == "transpose" && producer->parent() == node.parent() ? producer : nullptr;
}

bool only_used_by(const Value& value, const OpNode& node) {
    return std::ranges::all_of(value.uses(), [&](const Use& use) { return use.node == &node; });
}

bool is_longer_than_one(const Dim& d) { return !d.is(1); }

// Another order of its axes costs nothing: a constant that is a vector, or that nobody else wants as it is.
bool has_any_order(const Value& value) {
    const Value& elements = behind_broadcast(value);
    bool is_vector = std::ranges::count_if(elements.type().shape(), is_longer_than_one) <= 1;
    return is_constant(elements) && (is_vector || elements.has_one_use());
}

class Sinking {
public:
    Sinking(OpNode& node, Rewriter& rewriter) : node_(node), rewriter_(rewriter) {}

    // What takes the node's place, or nullptr.
    Value* sunk() {
        bool is_elementwise = node_.def().has(elementwise);
        if (!is_elementwise && node_.op() != "concat" && node_.op() != "pad") return nullptr;
        if (!node_.result().type().has_rank() || !find_order(is_elementwise)) return nullptr;
        std::vector<Value*> operands;
        for (Value* operand : node_.operands()) operands.push_back(operand ? &in_order(*operand) : nullptr);
        Value& result = rewriter_.make(node_.op(), operands, attributes_in_order());
        return &rewriter_.make("transpose", {&result}, {{"perm", perm_}});
    }

private:
    // The order that the transposes before the node have in common. One of them at least must be gone afterwards.
    bool find_order(bool is_elementwise) {
        bool vanishes = false;
        for (const Value* operand : node_.operands()) {
            const OpNode* transpose = operand ? transpose_before(*operand, node_) : nullptr;
            if (!transpose) continue;
            const Ints& perm = transpose->get<Ints>("perm");
            if (!perm_.empty() && perm_ != perm) return false;
            perm_ = perm;
            vanishes = vanishes || only_used_by(*operand, node_);
        }
        return vanishes && std::ranges::all_of(node_.operands(), [&](const Value* operand) {
                   return !operand || transpose_before(*operand, node_) ||
                          (has_any_order(*operand) && (is_elementwise || &behind_broadcast(*operand) == operand));
               });
    }

    Value& in_order(Value& operand) {
        if (const OpNode* transpose = transpose_before(operand, node_)) return *transpose->operand(0);
        Value& elements = &behind_broadcast(operand) == &operand ? operand : *operand.producer()->operand(0);
        Shape shape = elements.type().shape();
        Value* moved = &elements;
        if (std::ranges::any_of(shape, is_longer_than_one)) {
            shape.insert(shape.begin(), perm_.size() - shape.size(), Dim(1));
            Ints inverse(perm_.size());
            for (size_t i = 0; i < perm_.size(); i++) inverse[static_cast<size_t>(perm_[i])] = static_cast<int64_t>(i);
            moved = &rewriter_.make("reshape", {moved}, {{"shape", shape}});
            moved = &rewriter_.make("transpose", {moved}, {{"perm", inverse}});
        }
        if (&elements == &operand) return *moved;
        return rewriter_.make("broadcast", {moved}, {{"shape", in_order(operand.type().shape())}});
    }

    // Sizes of the result's axes in the order of the operands before the transposes.
    Shape in_order(const Shape& given) const {
        Shape moved(given.size());
        for (size_t i = 0; i < given.size(); i++) moved[static_cast<size_t>(perm_[i])] = given[i];
        return moved;
    }

    Attributes attributes_in_order() const {
        Attributes attributes = node_.attributes();
        if (node_.op() == "concat") {
            int64_t axis = node_.get<int64_t>("axis"), rank = node_.result().type().rank();
            attributes["axis"] = perm_[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
        }
        if (node_.op() == "pad") {
            attributes["low"] = in_order(node_.get<Shape>("low"));
            attributes["high"] = in_order(node_.get<Shape>("high"));
        }
        return attributes;
    }

    OpNode& node_;
    Rewriter& rewriter_;
    Ints perm_;
};

} // namespace

bool sink_transposes(OpNode& node, Rewriter& rewriter) {
    return replace_by(node, rewriter, [&] { return Sinking(node, rewriter).sunk(); });
}

} // namespace cuvil
