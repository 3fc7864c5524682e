#include "ir/op_def.hpp"

#include "ir/op_node.hpp"
#include "ir/rewriter.hpp"
#include "support/diagnostics.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace cuvil {

std::string_view name(AttributeKind kind) {
    static constexpr std::array<std::string_view, 10> names = {
        "integer",        "float",           "bool",
        "string",         "dtype",           "list of integers",
        "list of floats", "list of strings", "list of dimensions",
        "constant"};
    return names[static_cast<size_t>(kind)];
}

const AttributeDef* OpDef::find_attribute(std::string_view attribute) const {
    for (const AttributeDef& a : attributes)
        if (a.name == attribute) return &a;
    return nullptr;
}

void OpTable::add(OpDef def) {
    if (find(def.name)) throw std::invalid_argument("op \"" + std::string(def.name) + "\" is registered already");
    defs_.push_back(std::move(def));
    by_name_.emplace(defs_.back().name, &defs_.back());
}

const OpDef* OpTable::find(std::string_view name) const {
    auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
}

size_t Inference::operand_count() const { return node_.operands().size(); }
bool Inference::has_operand(size_t i) const { return node_.operand(i) != nullptr; }

const Type& Inference::type(size_t i) const {
    CUVIL_ASSERT(has_operand(i), "inference of " + std::string(node_.op()) + " reads an absent operand");
    return node_.operand(i)->type();
}

const Type& Inference::ranked(size_t i) const {
    const Type& t = type(i);
    if (!t.has_rank()) {
        const auto& operands = node_.def().operands;
        fail("operand '" + std::string(operands[std::min(i, operands.size() - 1)].name) + "' is " + t.text() +
             ", expected a tensor of known rank");
    }
    return t;
}

const std::optional<std::vector<Dim>>& Inference::elements(size_t i) const { return node_.operand(i)->elements(); }

void Inference::result(Type type, size_t i) { node_.result(i).set_type(std::move(type)); }

void Inference::result_elements(std::vector<Dim> elements, size_t i) {
    auto wraps = [&](const Dim& d) {
        auto number = d.constant();
        return number && node_.result(i).type().dtype() != DType::I64 && (*number < INT32_MIN || *number > INT32_MAX);
    };
    if (std::ranges::none_of(elements, wraps)) node_.result(i).set_elements(std::move(elements));
}

void Inference::assume_equal_counts(const Shape& a, const Shape& b) {
    if (element_count(a) != element_count(b)) assumptions_.emplace_back(a, b);
}

void Inference::fail(const std::string& message) const {
    throw InferenceError(std::string(node_.op()) + ": " + message);
}

} // namespace cuvil
