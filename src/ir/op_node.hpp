// The graph: values, nodes and regions in SSA form, one block per region. Edit through ir/rewriter.hpp only.
#pragma once

#include "cuvil/diagnostic.hpp"
#include "ir/attribute.hpp"
#include "ir/op_def.hpp"
#include "ir/type.hpp"

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cuvil {

class OpNode;
class Region;
class Value;

struct Use {
    OpNode* node;
    size_t operand;
    bool operator==(const Use&) const = default;
};

class Value {
public:
    Value(Type type, std::string name) : type_(std::move(type)), name_(std::move(name)) {}
    Value(const Value&) = delete;
    Value& operator=(const Value&) = delete;

    const Type& type() const { return type_; }
    // A name for printing and generated code; need not be unique.
    const std::string& name() const { return name_; }
    // The node that makes it; nullptr for a region's argument.
    OpNode* producer() const { return producer_; }
    // The region whose argument it is; nullptr for a node's result.
    Region* argument_of() const { return argument_of_; }
    size_t index() const { return index_; } // among the producer's results or the region's arguments
    const std::vector<Use>& uses() const { return uses_; }
    bool has_one_use() const { return uses_.size() == 1; }

    // The elements of a small integer tensor as dims, row-major, where they are known.
    const std::optional<std::vector<Dim>>& elements() const { return elements_; }

    void set_type(Type type) { type_ = std::move(type); }
    void set_name(std::string name) { name_ = std::move(name); }
    void set_elements(std::optional<std::vector<Dim>> elements) { elements_ = std::move(elements); }

private:
    friend class OpNode;
    friend class Region;
    friend class Rewriter;
    Type type_;
    std::string name_;
    OpNode* producer_ = nullptr;
    Region* argument_of_ = nullptr;
    size_t index_ = 0;
    std::vector<Use> uses_;
    std::optional<std::vector<Dim>> elements_;
};

// One block: arguments, nodes in order, the last of which is a terminator ("return").
class Region {
public:
    explicit Region(OpNode* parent) : parent_(parent) {}

    OpNode* parent() const { return parent_; } // nullptr: a function's body
    const std::vector<std::unique_ptr<Value>>& arguments() const { return arguments_; }
    const std::list<std::unique_ptr<OpNode>>& nodes() const { return nodes_; }
    // The terminator; nullptr while the region is being built.
    OpNode* terminator() const;

    Value& add_argument(Type type, std::string name);

private:
    friend class Rewriter;
    OpNode* parent_;
    std::vector<std::unique_ptr<Value>> arguments_;
    std::list<std::unique_ptr<OpNode>> nodes_;
};

// The base of all operators: what any node has. The typed views (MatMulOp, ReluOp, ...; generated from the op table as
// ops/views.hpp) add named accessors and nothing else: `if (auto conv = node.as<Conv2dOp>()) use(conv->weight());`
class OpNode {
public:
    virtual ~OpNode() = default;
    OpNode(const OpNode&) = delete;
    OpNode& operator=(const OpNode&) = delete;

    const OpDef& def() const { return *def_; }
    std::string_view op() const { return def_->name; }
    const Location& location() const { return location_; }
    Region* parent() const { return parent_; }

    std::span<Value* const> operands() const { return operands_; }
    Value* operand(size_t i) const { return i < operands_.size() ? operands_[i] : nullptr; } // nullptr: left out
    const std::vector<std::unique_ptr<Value>>& results() const { return results_; }
    Value& result(size_t i = 0) const { return *results_.at(i); }
    const std::vector<std::unique_ptr<Region>>& regions() const { return regions_; }
    Region& region(size_t i) const { return *regions_.at(i); }

    const Attributes& attributes() const { return attributes_; } // those given; defaults are not in it
    // The attribute or its default; a bug if the op has no such attribute.
    const Attribute& attribute(std::string_view name) const;
    template <class T> const T& get(std::string_view name) const { return std::get<T>(attribute(name)); }

    template <class View> std::optional<View> as() {
        return op() == View::op_name ? std::optional<View>(View(*this)) : std::nullopt;
    }

    void set_location(Location location) { location_ = std::move(location); }

protected:
    OpNode(const OpDef& def, Location location) : def_(&def), location_(std::move(location)) {}

private:
    friend class Rewriter;
    const OpDef* def_;
    Location location_;
    Region* parent_ = nullptr;
    std::list<std::unique_ptr<OpNode>>::iterator position_;
    std::vector<Value*> operands_;
    std::vector<std::unique_ptr<Value>> results_;
    std::vector<std::unique_ptr<Region>> regions_;
    Attributes attributes_;
};

// A named view of a node; copies are cheap and own nothing.
class OpView {
public:
    explicit OpView(OpNode& node) : node_(&node) {}
    OpNode& node() const { return *node_; }
    OpNode* operator->() const { return node_; }

private:
    OpNode* node_;
};

} // namespace cuvil
