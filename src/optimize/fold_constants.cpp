// Constants are computed at compile time, by the kernels themselves.
#include "optimize/constants.hpp"
#include "optimize/passes.hpp"

#include <algorithm>
#include <limits>

namespace cuvil {
namespace {

// A folded result may take this much more of the file than its operands did.
constexpr int64_t largest_growth = int64_t{16} << 20;
// The same where an operand is a broadcast: a large result of it is better made again at run time.
constexpr int64_t largest_growth_by_broadcast = 1024;

std::optional<int64_t> static_bytes(const Value& value) {
    return value.type().has_rank() ? value.type().bytes().constant() : std::nullopt;
}

// A broadcast stays: planning reads it as a stride of 0.
bool stays(const OpNode& node) { return node.def().has(source) || node.op() == "broadcast"; }

// All operands are constants or broadcasts of them, and the result is not much larger.
bool is_foldable(const OpNode& node) {
    if (!node.def().has(pure) || stays(node) || !node.regions().empty()) return false;
    if (node.results().size() != 1 || node.operands().empty()) return false;
    auto size = static_bytes(node.result());
    if (!size) return false;
    int64_t allowed = largest_growth;
    for (const Value* operand : node.operands()) {
        if (!operand) continue;
        if (!is_constant(behind_broadcast(*operand))) return false;
        if (!is_constant(*operand)) allowed = largest_growth_by_broadcast;
    }
    for (const Value* operand : node.operands())
        if (operand) allowed += static_bytes(behind_broadcast(*operand)).value_or(0);
    return *size <= allowed;
}

const Value& named_source(const OpNode& node) {
    for (const Value* operand : node.operands()) {
        const OpNode* producer = operand ? behind_broadcast(*operand).producer() : nullptr;
        if (producer && producer->op() == "weight") return producer->result();
    }
    return node.result();
}

std::string name_of_result(const OpNode& node) {
    return node.result().name().empty() ? folded_name(named_source(node)) : node.result().name();
}

// Puts the elements of a broadcast constant in place of operand i; false where they cannot be computed.
bool write_out_operand(OpNode& node, size_t i, Rewriter& rewriter, const ConstantEvaluator& evaluate) {
    Value* operand = node.operand(i);
    if (!operand || is_constant(*operand)) return true;
    auto elements = evaluate(rewriter.program(), *operand->producer());
    if (elements) rewriter.set_operand(node, i, &rewriter.constant(operand->type(), std::move(elements->at(0))));
    return elements.has_value();
}

void put_back_operand(OpNode& node, size_t i, Value* given, Rewriter& rewriter) {
    Value* written_out = node.operand(i);
    if (written_out == given) return;
    rewriter.set_operand(node, i, given);
    OpNode& temporary = *written_out->producer();
    if (temporary.op() == "weight") rewriter.program().remove_weight(temporary.get<std::string>("name"));
    rewriter.erase(temporary);
}

std::optional<std::vector<std::string>> computed(OpNode& node, Rewriter& rewriter, const ConstantEvaluator& evaluate) {
    std::vector<Value*> given(node.operands().begin(), node.operands().end());
    bool known = true;
    for (size_t i = 0; i < given.size(); i++) known = known && write_out_operand(node, i, rewriter, evaluate);
    auto results = known ? evaluate(rewriter.program(), node) : std::nullopt;
    for (size_t i = 0; i < given.size(); i++) put_back_operand(node, i, given[i], rewriter);
    return results;
}

// The elements as bytes of the dtype; nothing unless all are constants that it can hold.
std::optional<std::string> constant_elements(const std::vector<Dim>& elements, DType dtype) {
    std::string bytes;
    for (const Dim& element : elements) {
        auto number = element.constant();
        if (!number) return std::nullopt;
        bool fits = dtype == DType::I64 ||
                    (*number >= std::numeric_limits<int32_t>::min() && *number <= std::numeric_limits<int32_t>::max());
        if (!fits) return std::nullopt;
        bytes.append(reinterpret_cast<const char*>(&*number), size_of(dtype)); // little-endian
    }
    return bytes;
}

// What inference knows of the elements, as a constant or as `dims`; nullptr where it knows nothing new.
Value* known_elements(OpNode& node, Rewriter& rewriter) {
    if (node.results().size() != 1 || node.def().has(source)) return nullptr;
    const Value& result = node.result();
    if (!result.elements() || !result.type().has_rank()) return nullptr;
    const Type& type = result.type();
    if (type.dtype() != DType::I64 && type.dtype() != DType::I32) return nullptr;
    if (!element_count(type.shape()).is(static_cast<int64_t>(result.elements()->size()))) return nullptr;
    if (auto bytes = constant_elements(*result.elements(), type.dtype()))
        return &rewriter.constant(type, std::move(*bytes), name_of_result(node));
    bool symbolic = std::ranges::any_of(*result.elements(), [](const Dim& d) { return !d.constant(); });
    if (!symbolic || node.op() == "dims") return nullptr;
    OpNode& dims = rewriter.create_typed("dims", {}, {{"values", *result.elements()}}, {type});
    infer(dims);
    return &dims.result();
}

} // namespace

bool fold_constant(OpNode& node, Rewriter& rewriter, const ConstantEvaluator& evaluate) {
    Value* folded = known_elements(node, rewriter);
    if (!folded && evaluate && is_foldable(node))
        if (auto bytes = computed(node, rewriter, evaluate))
            folded = &rewriter.constant(node.result().type(), std::move(bytes->at(0)), name_of_result(node));
    if (!folded) return false;
    drop(node, {&folded, 1}, rewriter);
    return true;
}

} // namespace cuvil
