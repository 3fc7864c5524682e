#include "ir/rewriter.hpp"

#include "ir/record_check.hpp"
#include "support/diagnostics.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// The concrete node: OpNode is abstract only in that nobody else may make one.
class Node final : public OpNode {
public:
    Node(const OpDef& def, Location location) : OpNode(def, std::move(location)) {}
};

constexpr size_t inline_constant_elements = 64;

} // namespace

Rewriter::Rewriter(Program& program, FuncIR& function)
    : program_(program), function_(function), region_(&function.body()), position_(region_->nodes_.end()) {}

void Rewriter::insert_before(OpNode& node) {
    region_ = node.parent_;
    position_ = node.position_;
}

void Rewriter::insert_after(OpNode& node) {
    region_ = node.parent_;
    position_ = std::next(node.position_);
}

void Rewriter::insert_at_end(Region& region) {
    region_ = &region;
    position_ = region.nodes_.end();
}

OpNode& Rewriter::insert(std::string_view op, const std::vector<Value*>& operands, Attributes attributes,
                         std::vector<Type> results) {
    const OpDef* def = program_.ops().find(op);
    CUVIL_ASSERT(def, "no op named " + std::string(op));
    for (const auto& [attribute, value] : attributes) {
        const AttributeDef* known = def->find_attribute(attribute);
        CUVIL_ASSERT(known && known->kind == kind_of(value), "attribute " + attribute + " of " + std::string(op));
    }
    auto node = std::make_unique<Node>(*def, location_);
    node->parent_ = region_;
    node->attributes_ = std::move(attributes);
    for (Type& type : results) {
        auto value = std::make_unique<Value>(std::move(type), "");
        value->producer_ = node.get();
        value->index_ = node->results_.size();
        node->results_.push_back(std::move(value));
    }
    for (size_t i = 0; i < def->regions.size(); i++) node->regions_.push_back(std::make_unique<Region>(node.get()));
    OpNode& inserted = *node;
    inserted.position_ = region_->nodes_.insert(position_, std::move(node));
    for (Value* operand : operands) add_operand(inserted, operand);
    return inserted;
}

OpNode& Rewriter::create(std::string_view op, const std::vector<Value*>& operands, Attributes attributes) {
    const OpDef* def = program_.ops().find(op);
    CUVIL_ASSERT(def, "no op named " + std::string(op));
    OpNode& node = insert(op, operands, std::move(attributes), std::vector<Type>(def->results.size()));
    try {
        infer(node);
    } catch (...) {
        erase(node);
        throw;
    }
    return node;
}

OpNode& Rewriter::create_typed(std::string_view op, const std::vector<Value*>& operands, Attributes attributes,
                               std::vector<Type> results) {
    return insert(op, operands, std::move(attributes), std::move(results));
}

Value& Rewriter::make(std::string_view op, const std::vector<Value*>& operands, Attributes attributes) {
    return create(op, operands, std::move(attributes)).result();
}

Value& Rewriter::constant(Type type, std::string bytes, std::string_view name) {
    auto count = element_count(type.shape()).constant();
    CUVIL_ASSERT(count, "a constant of symbolic size");
    if (static_cast<size_t>(*count) > inline_constant_elements)
        return weight(program_.add_weight(std::string(name), std::move(type), std::move(bytes)));
    Data data{std::make_shared<const std::string>(std::move(bytes))};
    OpNode& node = create_typed("constant", {}, {{"value", std::move(data)}}, {std::move(type)});
    infer(node);
    return node.result();
}

Value& Rewriter::constant(std::span<const int64_t> elements, Shape shape) {
    return constant(Type::tensor(DType::I64, std::move(shape)),
                    std::string(reinterpret_cast<const char*>(elements.data()), elements.size_bytes()));
}

Value& Rewriter::weight(std::string_view name) {
    auto found = program_.weights().find(name);
    CUVIL_ASSERT(found != program_.weights().end(), "no weight named " + std::string(name));
    OpNode& node = create_typed("weight", {}, {{"name", std::string(name)}}, {found->second.type});
    node.result().set_name(std::string(name));
    return node.result();
}

void Rewriter::set_operand(OpNode& node, size_t i, Value* value) {
    if (Value* old = node.operands_.at(i)) std::erase(old->uses_, Use{&node, i});
    node.operands_[i] = value;
    if (value) value->uses_.push_back({&node, i});
}

void Rewriter::add_operand(OpNode& node, Value* value) {
    node.operands_.push_back(nullptr);
    set_operand(node, node.operands_.size() - 1, value);
}

void Rewriter::set_attribute(OpNode& node, std::string name, Attribute value) {
    const AttributeDef* known = node.def().find_attribute(name);
    CUVIL_ASSERT(known && known->kind == kind_of(value), "attribute " + name + " of " + std::string(node.op()));
    node.attributes_.insert_or_assign(std::move(name), std::move(value));
}

void Rewriter::replace_all_uses(Value& old, Value& replacement) {
    if (&old == &replacement) return;
    while (!old.uses_.empty()) {
        Use use = old.uses_.back();
        set_operand(*use.node, use.operand, &replacement);
    }
}

void Rewriter::replace(OpNode& old, std::span<Value* const> replacements) {
    CUVIL_ASSERT(replacements.size() == old.results_.size(), "replacement of " + std::string(old.op()));
    for (size_t i = 0; i < replacements.size(); i++) {
        if (OpNode* producer = replacements[i]->producer_; producer && producer != &old)
            producer->location_ = join(producer->location_, old.location_);
        if (replacements[i]->name_.empty()) replacements[i]->name_ = old.results_[i]->name_;
        replace_all_uses(*old.results_[i], *replacements[i]);
    }
    erase(old);
}

void Rewriter::replace(OpNode& old, Value& replacement) {
    Value* only = &replacement;
    replace(old, std::span<Value* const>(&only, 1));
}

void Rewriter::erase(OpNode& node) {
    for (const auto& result : node.results_)
        CUVIL_ASSERT(result->uses_.empty(), "erasing " + std::string(node.op()) + ", which has uses");
    for (const auto& region : node.regions_)
        while (!region->nodes_.empty()) erase(*region->nodes_.back());
    for (size_t i = 0; i < node.operands_.size(); i++) set_operand(node, i, nullptr);
    if (node.parent_ == region_ && position_ == node.position_) ++position_;
    node.parent_->nodes_.erase(node.position_);
}

void Rewriter::move_before(OpNode& node, OpNode& position) {
    Region* to = position.parent_;
    to->nodes_.splice(position.position_, node.parent_->nodes_, node.position_);
    node.parent_ = to;
}

std::vector<std::pair<Shape, Shape>> infer(OpNode& node) {
    if (!node.def().infer) return {};
    Inference inference(node);
    node.def().infer(inference);
    for (const auto& result : node.results())
        if (result->type().has_rank()) (void)plain_bytes(result->type());
    return inference.assumptions();
}

} // namespace cuvil
