#include "optimize/passes.hpp"
#include "optimize/rules/rule.hpp"

namespace cuvil {
namespace {

// A fused node stands where its root stood, so that the nodes behind it match it in the same sweep.
size_t fuse_region(Region& region, const RuleSet& rules, Rewriter& rewriter) {
    size_t changes = 0;
    for (auto at = region.nodes().begin(); at != region.nodes().end();) {
        OpNode& node = **at++;
        for (const auto& inner : node.regions()) changes += fuse_region(*inner, rules, rewriter);
        changes += rules.apply(node, rewriter);
    }
    return changes;
}

} // namespace

void fuse_operators(FuncIR& function, PassContext& context) {
    Rewriter rewriter(context.program, function);
    RuleSet rules(RuleKind::Fuse, context.program.ops(),
                  {channel_rules(), activation_rules(), normalization_rules(), attention_rules()});
    while (size_t changes = fuse_region(function.body(), rules, rewriter)) context.changes += changes;
}

} // namespace cuvil
