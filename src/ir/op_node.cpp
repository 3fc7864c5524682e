#include "ir/op_node.hpp"

#include "support/diagnostics.hpp"

namespace cuvil {

OpNode* Region::terminator() const {
    if (nodes_.empty() || !nodes_.back()->def().has(Trait::terminator)) return nullptr;
    return nodes_.back().get();
}

Value& Region::add_argument(Type type, std::string name) {
    auto value = std::make_unique<Value>(std::move(type), std::move(name));
    value->argument_of_ = this;
    value->index_ = arguments_.size();
    arguments_.push_back(std::move(value));
    return *arguments_.back();
}

const Attribute& OpNode::attribute(std::string_view name) const {
    if (auto given = attributes_.find(name); given != attributes_.end()) return given->second;
    const AttributeDef* def = def_->find_attribute(name);
    CUVIL_ASSERT(def && def->default_value, "no attribute " + std::string(name) + " on " + std::string(op()));
    return *def->default_value;
}

} // namespace cuvil
