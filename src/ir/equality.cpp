#include "ir/equality.hpp"

#include "ir/program.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace cuvil {
namespace {

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

// Compares two graphs in step: a value of the left is the same as the one that took its place on the right.
class Comparison {
public:
    bool regions(const Region& a, const Region& b) {
        if (a.arguments().size() != b.arguments().size() || a.nodes().size() != b.nodes().size()) return false;
        for (size_t i = 0; i < a.arguments().size(); i++)
            if (!pair(*a.arguments()[i], *b.arguments()[i])) return false;
        return std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(),
                          [&](const auto& x, const auto& y) { return nodes(*x, *y); });
    }

private:
    bool nodes(const OpNode& a, const OpNode& b) {
        if (a.op() != b.op() || a.location() != b.location() || a.results().size() != b.results().size() ||
            a.regions().size() != b.regions().size())
            return false;
        // Optional operands that are left out at the end may stand there or not.
        for (size_t i = 0; i < std::max(a.operands().size(), b.operands().size()); i++)
            if (counterpart(a.operand(i)) != b.operand(i)) return false;
        for (const AttributeDef& def : a.def().attributes)
            if (!attributes(a, b, def)) return false;
        for (size_t i = 0; i < a.regions().size(); i++)
            if (!regions(a.region(i), b.region(i))) return false;
        for (size_t i = 0; i < a.results().size(); i++)
            if (!pair(a.result(i), b.result(i))) return false;
        return true;
    }

    static bool attributes(const OpNode& a, const OpNode& b, const AttributeDef& def) {
        auto value = [&](const OpNode& node) -> const Attribute* {
            auto given = node.attributes().find(def.name);
            if (given != node.attributes().end()) return &given->second;
            return def.default_value ? &*def.default_value : nullptr;
        };
        const Attribute *x = value(a), *y = value(b);
        return x && y ? same(*x, *y) : x == y;
    }

    bool pair(const Value& a, const Value& b) {
        counterparts_[&a] = &b;
        return a.type() == b.type();
    }

    const Value* counterpart(const Value* a) const {
        auto found = counterparts_.find(a);
        return found == counterparts_.end() ? nullptr : found->second;
    }

    std::unordered_map<const Value*, const Value*> counterparts_;
};

} // namespace

bool same(const Attribute& a, const Attribute& b) {
    if (a.index() != b.index()) return false;
    if (const auto* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
    if (const auto* x = std::get_if<std::vector<double>>(&a)) {
        const auto& y = std::get<std::vector<double>>(b);
        return std::equal(x->begin(), x->end(), y.begin(), y.end(), same_bits);
    }
    return a == b;
}

bool operator==(const FuncIR& a, const FuncIR& b) {
    return a.name() == b.name() && a.inputs == b.inputs && a.outputs == b.outputs &&
           Comparison().regions(a.body(), b.body());
}

bool operator==(const Program& a, const Program& b) {
    auto same_weight = [](const auto& x, const auto& y) {
        return x.first == y.first && x.second.type == y.second.type && x.second.hash == y.second.hash;
    };
    return std::equal(a.functions().begin(), a.functions().end(), b.functions().begin(), b.functions().end(),
                      [](const auto& x, const auto& y) { return *x == *y; }) &&
           std::equal(a.weights().begin(), a.weights().end(), b.weights().begin(), b.weights().end(), same_weight);
}

} // namespace cuvil
