#include "optimize/passes.hpp"
#include "optimize/rules/rule.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// What folding may make of constants in all, beside four times the bytes of the weights, which may be cast, transposed
// and so on. Otherwise a file of a few bytes could ask for any amount of memory.
constexpr int64_t most_folded = int64_t{256} << 20;

int64_t bytes_of_weights(const Program& program) {
    int64_t bytes = 0;
    for (const auto& [name, weight] : program.weights()) bytes += static_cast<int64_t>(weight.bytes.size());
    return bytes;
}

class Canonicalizer {
public:
    Canonicalizer(FuncIR& function, PassContext& context)
        : context_(context), function_(function), rewriter_(context.program, function),
          rules_(RuleKind::Simplify, context.program.ops(), {algebra_rules(), shape_rules()}) {
        if (!context.may_fold) context.may_fold = most_folded + 4 * bytes_of_weights(context.program);
        if (context.evaluate)
            evaluate_ = [this](const Program& program, const OpNode& node) { return evaluated(program, node); };
    }

    void run() {
        size_t changes = 0;
        do {
            changes = sweep(function_.body());
            changes += merge_common_subexpressions(function_.body(), rewriter_);
            changes += remove_dead_code(function_, rewriter_);
            context_.changes += changes;
        } while (changes);
        remove_unused_weights(context_.program);
    }

private:
    // Once over all nodes in order, so that a node sees its operands already simplified. New nodes wait for the next.
    size_t sweep(Region& region) {
        size_t changes = 0;
        for (auto at = region.nodes().begin(); at != region.nodes().end();) {
            OpNode& node = **at++;
            for (const auto& inner : node.regions()) changes += sweep(*inner);
            changes += simplify(node);
        }
        return changes;
    }

    bool simplify(OpNode& node) {
        if (node.def().has(terminator)) return false;
        rewriter_.insert_before(node);
        rewriter_.set_location(node.location());
        learn_elements(node);
        return inline_constant_if(node, rewriter_) || fold_read_size(node, rewriter_) ||
               erase_met_requirement(node, rewriter_) || fold_constant(node, rewriter_, evaluate_) ||
               rules_.apply(node, rewriter_) || sink_transposes(node, rewriter_) || sink_reshapes(node, rewriter_);
    }

    // An operand may have become known since the node was made.
    static void learn_elements(OpNode& node) {
        if (node.results().size() != 1 || node.result().elements() || !node.def().has(pure)) return;
        auto is_known = [](const Value* operand) { return operand && operand->elements(); };
        if (std::ranges::none_of(node.operands(), is_known)) return;
        Type given = node.result().type();
        infer(node);
        node.result().set_type(std::move(given));
    }

    std::optional<std::vector<std::string>> evaluated(const Program& program, const OpNode& node) {
        int64_t bytes = 0;
        for (const auto& result : node.results())
            if (!result->type().has_rank() ||
                __builtin_add_overflow(bytes, result->type().bytes().constant().value_or(0), &bytes))
                return std::nullopt;
        if (bytes > *context_.may_fold) return std::nullopt;
        auto results = context_.evaluate(program, node);
        if (results) *context_.may_fold -= bytes;
        return results;
    }

    PassContext& context_;
    FuncIR& function_;
    Rewriter rewriter_;
    RuleSet rules_;
    ConstantEvaluator evaluate_;
};

} // namespace

void canonicalize(FuncIR& function, PassContext& context) { Canonicalizer(function, context).run(); }

} // namespace cuvil
