// Equal nodes become one. A node serves its own region, behind it, and the regions inside.
#include "ir/equality.hpp"
#include "optimize/passes.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace cuvil {
namespace {

bool same_attributes(const OpNode& a, const OpNode& b) {
    for (const AttributeDef& attribute : a.def().attributes)
        if (!same(a.attribute(attribute.name), b.attribute(attribute.name))) return false;
    return true;
}

bool same_results(const OpNode& a, const OpNode& b) {
    return std::equal(a.results().begin(), a.results().end(), b.results().begin(), b.results().end(),
                      [](const auto& x, const auto& y) { return x->type() == y->type(); });
}

bool is_mergeable(const OpNode& node) { return node.def().has(pure) && node.regions().empty(); }

bool are_equal(const OpNode& a, const OpNode& b) {
    return &a.def() == &b.def() &&
           std::equal(a.operands().begin(), a.operands().end(), b.operands().begin(), b.operands().end()) &&
           same_attributes(a, b) && same_results(a, b);
}

// Equal nodes have equal hashes; collisions are settled by are_equal.
size_t hash_of(const OpNode& node) {
    size_t hash = std::hash<std::string_view>()(node.op());
    auto mix = [&](size_t part) { hash = hash * 0x9e3779b97f4a7c15u + part; };
    for (const Value* operand : node.operands()) mix(std::hash<const Value*>()(operand));
    if (node.op() == "constant") mix(std::hash<std::string>()(*node.get<Data>("value").bytes));
    if (node.op() == "weight") mix(std::hash<std::string>()(node.get<std::string>("name")));
    return hash;
}

class Merger {
public:
    explicit Merger(Rewriter& rewriter) : rewriter_(rewriter) {}

    size_t merge(Region& region) {
        size_t changes = 0;
        std::vector<std::pair<size_t, OpNode*>> added; // by this region, to be forgotten behind it
        for (auto at = region.nodes().begin(); at != region.nodes().end();) {
            OpNode& node = **at++;
            for (const auto& inner : node.regions()) changes += merge(*inner);
            if (!is_mergeable(node)) continue;
            size_t hash = hash_of(node);
            if (OpNode* earlier = find(hash, node)) {
                replace(node, *earlier);
                changes++;
            } else {
                seen_[hash].push_back(&node);
                added.emplace_back(hash, &node);
            }
        }
        for (auto it = added.rbegin(); it != added.rend(); ++it) seen_[it->first].pop_back();
        return changes;
    }

private:
    OpNode* find(size_t hash, const OpNode& node) const {
        auto bucket = seen_.find(hash);
        if (bucket == seen_.end()) return nullptr;
        for (OpNode* earlier : bucket->second)
            if (are_equal(*earlier, node)) return earlier;
        return nullptr;
    }

    void replace(OpNode& node, OpNode& earlier) {
        std::vector<Value*> results;
        for (const auto& result : earlier.results()) results.push_back(result.get());
        drop(node, results, rewriter_);
    }

    Rewriter& rewriter_;
    std::unordered_map<size_t, std::vector<OpNode*>> seen_;
};

} // namespace

size_t merge_common_subexpressions(Region& region, Rewriter& rewriter) { return Merger(rewriter).merge(region); }

} // namespace cuvil
