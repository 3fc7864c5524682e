// An `if` whose condition is a constant becomes the branch that it takes.
#include "ir/rewriter.hpp"
#include "optimize/passes.hpp"
#include "optimize/substitute.hpp"

namespace cuvil {
namespace {

// Adds what must hold for `general` to be `actual`, sizes that only the taken branch knows; false where that is more
// than values of symbols.
bool match(const Type& general, const Type& actual, Sizes& sizes) {
    if (general == actual) return true;
    if (!general.has_rank() || !actual.has_rank() || general.rank() != actual.rank()) return false;
    if (general.with_shape({}) != actual.with_shape({})) return false;
    for (int64_t axis = 0; axis < general.rank(); axis++) {
        if (general.dim(axis) == actual.dim(axis)) continue;
        auto symbol = general.dim(axis).as_symbol();
        if (!symbol) return false;
        auto [known, added] = sizes.emplace(*symbol, actual.dim(axis));
        if (!added && known->second != actual.dim(axis)) return false;
    }
    return true;
}

// The region that always runs; nullptr where that is not known.
Region* taken_branch(const OpNode& node, const Program& program) {
    auto condition = constant_bytes(program, *node.operand(0));
    if (!condition || condition->size() != 1) return nullptr;
    return &node.region(condition->front() != std::byte{0} ? 0 : 1);
}

} // namespace

bool inline_constant_if(OpNode& node, Rewriter& rewriter) {
    if (node.op() != "if") return false;
    Region* branch = taken_branch(node, rewriter.program());
    if (!branch) return false;
    std::vector<Value*> results(branch->terminator()->operands().begin(), branch->terminator()->operands().end());
    Sizes sizes;
    for (size_t i = 0; i < results.size(); i++)
        if (!match(node.result(i).type(), results[i]->type(), sizes)) return false;
    if (!may_hold(rewriter.function().body(), sizes)) return false;
    while (branch->nodes().front().get() != branch->terminator()) rewriter.move_before(*branch->nodes().front(), node);
    drop(node, results, rewriter);
    if (!sizes.empty()) substitute(rewriter.function().body(), sizes, rewriter);
    return true;
}

} // namespace cuvil
