// Convolutions read and write images in blocks of 16 channels with a halo of zeros. Values that elementwise ops connect
// form a class that has one layout, halo included, so that an epilogue finds the elements of every operand at the same
// offset. Only what can write blocks belongs to a class: elementwise ops, convolutions, and what reads blocks itself,
// such as pools. A class is blocked if one of the latter two writes into it; `relayout` nodes stand where values enter
// or leave.
#include "ir/rewriter.hpp"
#include "plan/plan.hpp"
#include "plan/winograd.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_set>

namespace cuvil {
namespace {

// An image whose elements the blocked kernels could hold if they were f32.
bool has_image_shape(const Value& v) {
    return v.type().has_rank() && v.type().rank() == 4 && v.type().dim(1).constant();
}

bool is_image(const Value& v) { return has_image_shape(v) && v.type().dtype() == DType::F32; }

class LayoutChooser {
public:
    LayoutChooser(Program& program, FuncIR& function, Plan& plan, Region& region)
        : edit_(program, function), plan_(plan), region_(region) {}

    void choose() {
        find_joining();
        connect();
        choose_readers();
        for (const auto& node : region_.nodes())
            for (const auto& result : node->results())
                if (is_blocked(*result)) result->set_type(result->type().with_layout(layout_of(*result)));
        // Nodes that are inserted on the way stand before or behind the current one and need no treatment.
        std::vector<OpNode*> nodes;
        for (const auto& node : region_.nodes()) nodes.push_back(node.get());
        for (OpNode* node : nodes) {
            adapt_operands(*node);
            for (const auto& result : node->results())
                if (is_blocked(*result)) adapt_outer_uses(*result);
        }
    }

private:
    struct Class {
        bool blocked = false;
        Layout layout = {Layout::Blocked, 0, 0, 0, 0};
    };

    const std::string& kernel(const OpNode& node) const {
        static const std::string none;
        auto found = plan_.kernels.find(&node);
        return found == plan_.kernels.end() ? none : found->second;
    }

    bool is_here(const Value& v) const { return v.producer() && v.producer()->parent() == &region_; }

    // Finds the elementwise nodes whose operands and result could all be blocked images. Memory holds no truth values
    // in blocks, so those join only between two such nodes, which then share a loop.
    void find_joining() {
        for (const auto& node : region_.nodes())
            if (is_loop_op(*node) && has_image_shape(node->result())) joining_.insert(node.get());
        // One that does not join may keep others out.
        size_t count = 0;
        do {
            count = joining_.size();
            std::erase_if(joining_, [&](const OpNode* node) { return !fits_class(*node); });
        } while (joining_.size() < count);
    }

    bool fits_class(const OpNode& node) const {
        const Value& result = node.result();
        bool is_inner =
            result.type().dtype() == DType::Bool && result.has_one_use() && joining_.contains(result.uses()[0].node);
        if (!is_inner && !is_image(result)) return false;
        return std::ranges::all_of(node.operands(), [&](const Value* v) {
            return v->type().dtype() == DType::F32 ||
                   (v->type().dtype() == DType::Bool && joining_.contains(v->producer()));
        });
    }

    bool joins_class(const OpNode& node) const { return joining_.contains(&node); }

    // Kernels whose result may be a blocked image; but for convolutions, x then is one.
    static bool is_convolution(std::string_view k) { return k.starts_with("conv2d_") || k == "conv_transpose_blocked"; }
    static bool reads_blocks(std::string_view convolution) {
        return convolution != "conv2d_padded" && convolution != "conv2d_phased";
    }
    static bool writes_blocks(std::string_view k) {
        return is_convolution(k) || k.ends_with("_blocked") || k == "global_avg_pool";
    }

    // The kernel that computes a node in blocks: because the images that it reads lie in blocks, or because a
    // convolution reads what it makes, so that blocks are only laid out one step earlier. Nothing if there is none.
    std::optional<std::string_view> kernel_in_blocks(const OpNode& node) const {
        const std::string& k = kernel(node);
        std::string_view in_blocks;
        if (k == "pool_any") in_blocks = "pool_blocked";
        if (k == "resize_any" && is_resized_in_plane(node)) in_blocks = "resize_blocked";
        if (k == "concat" && joins_whole_blocks(node)) in_blocks = "concat_blocked";
        if (k == "slice" && takes_whole_blocks(node)) in_blocks = "slice_blocked";
        if (in_blocks.empty() || !is_image(node.result())) return std::nullopt;
        std::span<Value* const> images = k == "concat" ? node.operands() : std::span(node.operands()).first(1);
        auto lies_in_blocks = [&](const Value* operand) { return is_blocked(*operand); };
        if (std::ranges::all_of(images, lies_in_blocks)) return in_blocks;
        // Pools and resizing are quicker in blocks; a slice would lay out more than it takes.
        bool pays = k == "concat" ? std::ranges::any_of(images, lies_in_blocks) : k != "slice";
        bool are_images = std::ranges::all_of(images, [](const Value* operand) { return is_image(*operand); });
        return pays && are_images && leads_to_convolution(node) ? std::optional(in_blocks) : std::nullopt;
    }

    // Whether a convolution reads the node's result in blocks, or a concatenation of it with others.
    bool leads_to_convolution(const OpNode& node) const {
        return std::ranges::any_of(node.result().uses(), [&](const Use& use) {
            const std::string& k = kernel(*use.node);
            if (use.node->parent() != &region_) return false;
            if (is_convolution(k)) return use.operand == 0 && reads_blocks(k);
            return k == "concat" && joins_whole_blocks(*use.node) && feeds_convolution(*use.node);
        });
    }

    static bool is_resized_in_plane(const OpNode& node) {
        return std::ranges::all_of(node.get<std::vector<int64_t>>("axes"), [](int64_t axis) { return axis >= 2; });
    }

    // Channels behind channels, where all but the last operand fill their blocks.
    static bool joins_whole_blocks(const OpNode& node) {
        int64_t axis = node.get<int64_t>("axis");
        if (axis != 1 && axis != -3) return false;
        std::span<Value* const> operands = node.operands();
        return std::ranges::all_of(operands.first(operands.size() - 1), [](const Value* operand) {
            auto channels = operand->type().dim(1).constant();
            return channels && *channels % 16 == 0;
        });
    }

    // Some channels, from the first one of a block on.
    static bool takes_whole_blocks(const OpNode& node) {
        const Shape &starts = node.get<Shape>("starts"), &sizes = node.get<Shape>("sizes");
        const auto& steps = node.get<std::vector<int64_t>>("steps");
        auto first = starts.size() == 4 ? starts[1].constant() : std::nullopt;
        if (!first || *first % 16 != 0 || std::ranges::count(steps, 1) != 4) return false;
        const Shape& whole = node.operand(0)->type().shape();
        for (size_t axis : {0UL, 2UL, 3UL})
            if (!starts[axis].is(0) || sizes[axis] != whole[axis]) return false;
        return true;
    }

    // Whether an operand of a node that joins a class is in the same class: it is made here, and in blocks if need be.
    bool is_member(const OpNode& node, const Value& operand) const {
        if (!is_here(operand) || operand.type().shape() != node.result().type().shape()) return false;
        const OpNode& producer = *operand.producer();
        const std::string& k = kernel(producer);
        return joins_class(producer) || writes_blocks(k);
    }

    // The value that stands for the class; halves the way to it.
    const Value* root(const Value* v) const {
        for (auto up = parent_.find(v); up != parent_.end(); up = parent_.find(v)) {
            if (auto above = parent_.find(up->second); above != parent_.end()) up->second = above->second;
            v = up->second;
        }
        return v;
    }

    // Operands come before, so one pass in order knows of each whether it is blocked.
    void connect() {
        for (const auto& node : region_.nodes()) {
            const std::string& k = kernel(*node);
            if (is_convolution(k)) {
                classes_[&node->result()].blocked = true;
            } else if (is_global_mean(*node)) {
                plan_.kernels[node.get()] = "global_avg_pool";
                if (feeds_convolution(*node)) classes_[&node->result()].blocked = true;
            } else if (auto in_blocks = kernel_in_blocks(*node)) {
                plan_.kernels[node.get()] = *in_blocks;
                classes_[&node->result()].blocked = true;
            } else if (joins_class(*node)) {
                for (Value* operand : node->operands())
                    if (is_member(*node, *operand)) unite(*operand, node->result());
            }
        }
    }

    void unite(const Value& operand, const Value& result) {
        const Value *from = root(&operand), *to = root(&result);
        if (from == to) return;
        parent_[from] = to;
        if (classes_[from].blocked) classes_[to].blocked = true;
    }

    // A mean over whole images that lie in blocks.
    bool is_global_mean(const OpNode& node) const {
        return kernel(node) == "Mean" && is_blocked(*node.operand(0)) && is_image(node.result()) &&
               node.get<std::vector<int64_t>>("axes") == std::vector<int64_t>{2, 3};
    }

    bool feeds_convolution(const OpNode& node) const {
        return std::ranges::any_of(node.result().uses(), [&](const Use& use) {
            return use.node->parent() == &region_ && use.operand == 0 && is_convolution(kernel(*use.node));
        });
    }

    // Whether a broadcast spreads one value per channel and image, which loops over blocks read in place.
    bool is_spread_over_image(const OpNode& node) const {
        if (node.op() != "broadcast" || !is_image(node.result())) return false;
        const Shape &from = node.operand(0)->type().shape(), &to = node.result().type().shape();
        return from.size() == 4 && from[0] == to[0] && from[1] == to[1] && from[2].is(1) && from[3].is(1) &&
               !is_constant(*node.operand(0)) && std::ranges::all_of(node.result().uses(), [&](const Use& use) {
                   return joins_class(*use.node) && is_blocked(use.node->result());
               });
    }

    // A halo is the largest that a convolution needs that reads the class.
    void choose_readers() {
        for (const auto& node : region_.nodes()) {
            const std::string& k = kernel(*node);
            if (!is_convolution(k) || !reads_blocks(k) || !is_blocked(*node->operand(0))) continue;
            Layout& layout = classes_[root(node->operand(0))].layout;
            Layout wanted = halo_for(*node);
            layout.top = Dim::max(layout.top, wanted.top);
            layout.left = Dim::max(layout.left, wanted.left);
            layout.bottom = Dim::max(layout.bottom, wanted.bottom);
            layout.right = Dim::max(layout.right, wanted.right);
        }
    }

    // What a convolution reads beyond the edges of its image.
    static Layout halo_for(const OpNode& node, Layout::Kind kind = Layout::Blocked) {
        const auto& pads = node.get<std::vector<int64_t>>("pads");
        if (node.op() == "conv2d") return {kind, pads[0], pads[1], pads[2], pads[3]};
        Dim before[2], behind[2];
        const Type &weight = node.operand(1)->type(), &x = node.operand(0)->type();
        for (int64_t i = 0; i < 2; i++) {
            auto at = static_cast<size_t>(i);
            int64_t stride = node.get<std::vector<int64_t>>("strides")[at];
            int64_t reach = node.get<std::vector<int64_t>>("dilations")[at] * (*weight.dim(2 + i).constant() - 1);
            before[i] = Dim::max(Dim::ceildiv(reach - pads[at], stride), 0);
            Dim last = Dim::floordiv(node.result().type().dim(2 + i) - 1 + Dim(pads[at]), stride);
            behind[i] = Dim::max(last - (x.dim(2 + i) - 1), 0);
        }
        return {Layout::Blocked, before[0], before[1], behind[0], behind[1]};
    }

    // The same in phases of two pixels.
    static Layout phases_for(const OpNode& node) {
        const auto& pads = node.get<std::vector<int64_t>>("pads");
        const Shape &x = node.operand(0)->type().shape(), &y = node.result().type().shape();
        int64_t taps = point_scheme(node, "conv2d_phased").taps;
        int64_t top = phase_halo(pads[0]), left = phase_halo(pads[1]);
        const auto behind = [&](const Dim& outputs, int64_t before, const Dim& size) {
            return Dim::max(outputs + Dim(taps - 1 - before) - Dim::ceildiv(size, 2), 0);
        };
        return {Layout::Phased, top, left, behind(y[2], top, x[2]), behind(y[3], left, x[3])};
    }

    bool is_blocked(const Value& v) const {
        auto found = classes_.find(root(&v));
        return is_here(v) && found != classes_.end() && found->second.blocked;
    }

    Layout layout_of(const Value& v) const { return classes_.at(root(&v)).layout; }

    Value& relayout(Value& v, Layout layout) {
        OpNode& node = edit_.create_typed("relayout", {&v}, {}, {v.type().with_layout(std::move(layout))});
        node.result().set_name(v.name());
        plan_.kernels[&node] = "relayout";
        return node.result();
    }

    Value& plain(Value& v) {
        auto [at, is_new] = plain_.try_emplace(&v, nullptr);
        if (is_new) {
            edit_.insert_after(*v.producer());
            edit_.set_location(v.producer()->location());
            at->second = &relayout(v, {});
        }
        return *at->second;
    }

    void adapt_operands(OpNode& node) {
        for (size_t i = 0; i < node.operands().size(); i++) {
            Value* operand = node.operand(i);
            if (!operand) continue;
            Layout wanted = wanted_layout(node, i);
            if (operand->type().is_tensor() && operand->type().layout() == wanted) continue;
            if (!operand->type().is_tensor()) continue;
            Value* now = operand->type().layout().is_plain() ? operand : &plain(*operand);
            if (!wanted.is_plain()) {
                edit_.insert_before(node);
                edit_.set_location(node.location());
                now = &relayout(*now, wanted);
            }
            edit_.set_operand(node, i, now);
        }
    }

    Layout wanted_layout(const OpNode& node, size_t i) const {
        Value& operand = *node.operand(i);
        const std::string& k = kernel(node);
        if (is_convolution(k) && i == 0) {
            if (reads_blocks(k) && is_blocked(operand)) return operand.type().layout();
            return k == "conv2d_phased" ? phases_for(node)
                                        : halo_for(node, k == "conv2d_padded" ? Layout::Padded : Layout::Blocked);
        }
        bool is_read_in_blocks = writes_blocks(k) && !is_convolution(k) && (i == 0 || k == "concat_blocked");
        if (is_read_in_blocks && operand.type().layout().is_plain()) return {Layout::Blocked, 0, 0, 0, 0};
        if (writes_blocks(k)) return operand.type().layout();
        if (is_spread_over_image(node)) return {Layout::Blocked, 0, 0, 0, 0};
        if (joins_class(node) && is_blocked(node.result())) {
            if (operand.producer() && is_spread_over_image(*operand.producer())) return {};
            const Value& read = behind_broadcasts(operand);
            bool per_channel = is_constant(read) && is_per_channel(read.type(), node.result().type());
            if (is_literal(read) || per_channel) return {};
            return node.result().type().layout();
        }
        return {};
    }

    // Regions inside see values of this one in plain form.
    void adapt_outer_uses(Value& v) {
        std::vector<Use> uses = v.uses();
        for (const Use& use : uses)
            if (use.node->parent() != &region_) edit_.set_operand(*use.node, use.operand, &plain(v));
    }

    Rewriter edit_;
    Plan& plan_;
    Region& region_;
    std::unordered_set<const OpNode*> joining_;                     // elementwise nodes
    mutable std::unordered_map<const Value*, const Value*> parent_; // from a member towards the root of its class
    std::unordered_map<const Value*, Class> classes_;
    std::unordered_map<const Value*, Value*> plain_;
};

void choose_in(Program& program, FuncIR& function, Plan& plan, Region& region) {
    for (const auto& node : region.nodes())
        for (const auto& inner : node->regions()) choose_in(program, function, plan, *inner);
    LayoutChooser(program, function, plan, region).choose();
}

} // namespace

bool is_per_channel(const Type& type, const Type& image) {
    const Shape& shape = type.shape();
    if (shape.size() < 3 || shape.size() > 4) return false;
    size_t channel = shape.size() - 3;
    return (channel == 0 || shape[0].is(1)) && shape[channel] == image.dim(1) && shape[channel + 1].is(1) &&
           shape[channel + 2].is(1);
}

void choose_layouts(Program& program, Plan& plan) {
    for (const auto& function : program.functions()) choose_in(program, *function, plan, function->body());
}

} // namespace cuvil
