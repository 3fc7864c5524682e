// Elementwise ops of one shape and layout become one loop; where such a chain begins at a convolution or matrix product
// that nobody else reads, it becomes that kernel's epilogue. A node joins the chain behind it only if all its uses are
// in there, so nothing is computed twice and every value outside has memory.
#include "plan/plan.hpp"

#include "support/diagnostics.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <string>
#include <unordered_set>

namespace cuvil {
namespace {

constexpr size_t longest_chain = 64;

struct Group {
    std::vector<OpNode*> nodes; // in order
    OpNode* anchor = nullptr;
};

class LoopFuser {
public:
    // `symbols`: those that the inputs of the program show.
    LoopFuser(Plan& plan, const std::set<std::string>& symbols, Region& region) : plan_(plan), symbols_(symbols) {
        int position = 0;
        for (const auto& node : region.nodes()) {
            nodes_.push_back(node.get());
            position_[node.get()] = position++;
        }
    }

    RegionPlan fuse(Region& region) {
        for (OpNode* node : nodes_ | std::views::reverse)
            if (is_loop_op(*node) && !grouped_.contains(node)) grow(*node);
        RegionPlan out;
        out.region = &region;
        for (OpNode* node : nodes_) {
            if (auto group = group_at_.find(node); group != group_at_.end())
                out.steps.push_back(step_of(group->second));
            else if (!grouped_.contains(node) && needs_step(*node))
                out.steps.push_back(step_of({{}, node}));
            else
                continue;
            if (out.steps.size() > 1 && runs_within(out.steps[out.steps.size() - 2], out.steps.back()))
                join_last_two(out.steps);
        }
        return out;
    }

private:
    bool all_uses_in(const Value& v, const std::unordered_set<const OpNode*>& members) const {
        return std::ranges::all_of(v.uses(), [&](const Use& use) { return members.contains(use.node); });
    }

    void grow(OpNode& root) {
        const Type& type = root.result().type();
        std::unordered_set<const OpNode*> members = {&root};
        std::vector<OpNode*> nodes = {&root};
        for (size_t i = 0; i < nodes.size(); i++)
            for (Value* operand : nodes[i]->operands()) {
                // Truth values join whatever the length: those in blocks have no other place.
                if (nodes.size() >= longest_chain && operand->type().dtype() != DType::Bool) continue;
                OpNode* p = operand->producer();
                if (!p || !position_.contains(p) || !is_loop_op(*p) || grouped_.contains(p) || members.contains(p))
                    continue;
                const Type& t = operand->type();
                if (t.shape() != type.shape() || t.layout() != type.layout() || !all_uses_in(*operand, members))
                    continue;
                members.insert(p);
                nodes.push_back(p);
            }
        std::ranges::sort(nodes, {}, [&](OpNode* n) { return position_.at(n); });
        Group group{nodes, find_anchor(nodes, members, type)};
        for (OpNode* n : nodes) grouped_.insert(n);
        if (group.anchor) grouped_.insert(group.anchor);
        group_at_[&root] = std::move(group);
    }

    // The last kernel before the chain that can carry all of it in its epilogue.
    OpNode* find_anchor(const std::vector<OpNode*>& nodes, const std::unordered_set<const OpNode*>& members,
                        const Type& type) const {
        OpNode* best = nullptr;
        for (OpNode* node : nodes)
            for (Value* operand : node->operands()) {
                OpNode* p = operand->producer();
                if (!p || !position_.contains(p) || grouped_.contains(p) || !has_epilogue(*p)) continue;
                if (operand->type() != type || !all_uses_in(*operand, members)) continue;
                if (best == nullptr || position_.at(p) > position_.at(best)) best = p;
            }
        if (!best) return nullptr;
        for (OpNode* node : nodes)
            for (Value* operand : node->operands()) {
                bool inner = operand->producer() == best || members.contains(operand->producer());
                if (!inner && !is_readable(*operand, type)) return nullptr;
            }
        return best;
    }

    bool has_epilogue(const OpNode& node) const {
        auto kernel = plan_.kernels.find(&node);
        return kernel != plan_.kernels.end() &&
               (kernel->second.starts_with("gemm") || kernel->second.starts_with("conv2d_") ||
                kernel->second == "conv_transpose_blocked");
    }

    // Operands of an epilogue: lying exactly as the result does, a constant along the columns or channels, or a
    // literal.
    static bool is_readable(Value& operand, const Type& result) {
        const Value& read = behind_broadcasts(operand);
        if (&read == &operand && operand.type() == result) return true;
        if (is_literal(read)) return true;
        if (read.type().dtype() != DType::F32) return false;
        if (result.layout().kind == Layout::Blocked) return is_constant(read) && is_per_channel(read.type(), result);
        const Shape& shape = read.type().shape();
        if (shape.empty() || shape.back() != result.dim(-1)) return false;
        return std::all_of(shape.begin(), shape.end() - 1, [](const Dim& d) { return d.is(1); });
    }

    bool needs_step(const OpNode& node) const {
        switch (node.def().lower.kind) {
        case Lowering::Control: return true;
        case Lowering::None:
        case Lowering::Alias: return false;
        case Lowering::Scalar: CUVIL_ASSERT(false, "an elementwise node outside of all loops");
        case Lowering::Kernel: break;
        }
        if (node.op() != "broadcast") return true;
        return std::ranges::any_of(node.result().uses(), [](const Use& use) { return !is_loop_op(*use.node); });
    }

    // Whether a step is a convolution that only the next one reads, which is depthwise (see
    // kernels/conv_depthwise.hpp).
    bool runs_within(const Step& first, const Step& second) const {
        if (!is_kernel(first, {"conv2d_blocked", "conv2d_padded"}) || !is_kernel(second, {"conv2d_narrow"}))
            return false;
        const Value& between = *first.outputs.at(0);
        bool is_depthwise = second.anchor->operand(1)->type().dim(4).is(1);
        if (!is_depthwise || second.anchor->operand(0) != &between || !between.has_one_use()) return false;
        // The scratch memory is a part of the workspace.
        if (!is_known_at_entry(between.type().dim(3)) || !is_known_at_entry(second.outputs.at(0)->type().dim(3)))
            return false;
        return std::ranges::all_of(memory_operands(first), [&](const Value* operand) {
            return operand == first.anchor->operand(0) || is_constant(*operand);
        });
    }

    bool is_known_at_entry(const Dim& size) const {
        std::set<std::string> needed;
        size.collect_symbols(needed);
        return std::ranges::includes(symbols_, needed);
    }

    bool is_kernel(const Step& step, std::initializer_list<std::string_view> names) const {
        auto kernel = plan_.kernels.find(step.anchor);
        return kernel != plan_.kernels.end() && std::ranges::find(names, kernel->second) != names.end();
    }

    void join_last_two(std::vector<Step>& steps) {
        Step second = std::move(steps.back());
        steps.pop_back();
        Step first = std::move(steps.back());
        plan_.kernels[second.anchor] = "conv2d_depthwise";
        second.name = first.name + " + " + second.name;
        second.number = first.number;
        plan_.step_count--;
        second.within.push_back(std::move(first));
        steps.back() = std::move(second);
    }

    Step step_of(const Group& group) {
        Step step;
        step.anchor = group.anchor;
        step.fused = group.nodes;
        const OpNode* last = group.nodes.empty() ? group.anchor : group.nodes.back();
        for (const auto& result : last->results()) step.outputs.push_back(result.get());
        step.kind = !group.anchor ? Step::Loop : group.anchor->regions().empty() ? Step::Kernel : Step::Control;
        Location where = group.anchor ? group.anchor->location() : Location{};
        for (OpNode* node : group.nodes) where = join(where, node->location());
        step.name = where.name.empty() ? std::string(last->op()) : where.name;
        step.number = plan_.step_count++;
        if (group.anchor)
            for (const auto& inner : group.anchor->regions())
                step.regions.push_back(LoopFuser(plan_, symbols_, *inner).fuse(*inner));
        return step;
    }

    Plan& plan_;
    const std::set<std::string>& symbols_;
    std::vector<OpNode*> nodes_;
    std::unordered_map<const OpNode*, int> position_;
    std::unordered_set<const OpNode*> grouped_;
    std::unordered_map<const OpNode*, Group> group_at_; // by its last node
};

} // namespace

bool is_loop_op(const OpNode& node) {
    return node.def().has(elementwise) && node.def().lower.kind == Lowering::Scalar && node.result().type().has_rank();
}

bool is_literal(const Value& value) {
    return is_constant(value) && value.type().has_rank() && element_count(value.type().shape()).is(1) &&
           value.type().dtype() != DType::String;
}

Value& behind_broadcasts(Value& value) {
    Value* v = &value;
    while (v->producer() && v->producer()->op() == "broadcast") v = v->producer()->operand(0);
    return *v;
}

const Value& alias_root(const Value& value) {
    const Value* v = &value;
    while (v->producer() && v->producer()->def().lower.kind == Lowering::Alias) v = v->producer()->operand(0);
    return *v;
}

std::vector<Value*> memory_operands(const Step& step) {
    std::vector<Value*> out;
    auto add = [&](Value* v) {
        if (v && std::ranges::find(out, v) == out.end()) out.push_back(v);
    };
    auto is_made_within = [&](const Value* v) {
        return std::ranges::any_of(step.within, [&](const Step& inner) { return inner.outputs.at(0) == v; });
    };
    for (const Step& inner : step.within)
        for (Value* v : memory_operands(inner)) add(v);
    if (step.anchor)
        for (Value* v : step.anchor->operands())
            if (!is_made_within(v)) add(v);
    auto is_inner = [&](const Value& v) {
        return v.producer() &&
               (v.producer() == step.anchor || std::ranges::find(step.fused, v.producer()) != step.fused.end());
    };
    for (OpNode* node : step.fused)
        for (Value* v : node->operands()) {
            Value& read = behind_broadcasts(*v);
            if (!is_inner(*v) && !is_literal(read)) add(&read);
        }
    return out;
}

void fuse_loops(Program& program, Plan& plan) {
    std::set<std::string> symbols;
    for (const auto& input : program.main().body().arguments())
        if (input->type().has_rank())
            for (const Dim& d : input->type().shape())
                if (auto symbol = d.as_symbol()) symbols.insert(*symbol);
    plan.main = LoopFuser(plan, symbols, program.main().body()).fuse(program.main().body());
}

} // namespace cuvil
