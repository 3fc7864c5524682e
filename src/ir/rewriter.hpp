// The one way to edit a graph: keeps uses, positions, types and places right.
#pragma once

#include "ir/program.hpp"

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

class Rewriter {
public:
    // New nodes go to the end of the function's body until told otherwise.
    Rewriter(Program& program, FuncIR& function);

    Program& program() const { return program_; }
    FuncIR& function() const { return function_; }

    void insert_before(OpNode& node);
    void insert_after(OpNode& node);
    void insert_at_end(Region& region);
    // The place that new nodes get.
    void set_location(Location location) { location_ = std::move(location); }
    const Location& location() const { return location_; }

    // Makes a node and infers its result types. An InferenceError leaves the graph as it was. Unknown op or attribute
    // names, or missing required ones, are bugs. Absent optional operands are nullptr.
    OpNode& create(std::string_view op, const std::vector<Value*>& operands, Attributes attributes = {});
    // The same for ops whose result types are given (constants, results of regions). Regions come empty.
    OpNode& create_typed(std::string_view op, const std::vector<Value*>& operands, Attributes attributes,
                         std::vector<Type> results);
    // The first result of such a node.
    Value& make(std::string_view op, const std::vector<Value*>& operands, Attributes attributes = {});

    // Small constants stand in the graph, those above 64 elements in the table of weights under `name`.
    Value& constant(Type type, std::string bytes, std::string_view name = "constant");
    Value& constant(std::span<const int64_t> elements, Shape shape);
    template <class T> Value& scalar_constant(DType dtype, T value) {
        return constant(Type::tensor(dtype, {}), std::string(reinterpret_cast<const char*>(&value), sizeof value));
    }
    Value& weight(std::string_view name);

    void set_operand(OpNode& node, size_t i, Value* value);
    void add_operand(OpNode& node, Value* value);
    void set_attribute(OpNode& node, std::string name, Attribute value);
    void replace_all_uses(Value& old, Value& replacement);
    // Replaces all results of `old`, joins its place into the producers of the replacements, and erases it.
    void replace(OpNode& old, std::span<Value* const> replacements);
    void replace(OpNode& old, Value& replacement);
    // The node must have no uses left.
    void erase(OpNode& node);
    // Moves the node before `position`, which may be in another region.
    void move_before(OpNode& node, OpNode& position);

private:
    OpNode& insert(std::string_view op, const std::vector<Value*>& operands, Attributes attributes,
                   std::vector<Type> results);
    Program& program_;
    FuncIR& function_;
    Region* region_;
    std::list<std::unique_ptr<OpNode>>::iterator position_;
    Location location_;
};

// Infers the result types of `node` anew from its operands; throws InferenceError, and DimOverflow where a size or the
// bytes of a result exceed 64 bits. Gives the shapes that the op takes to have as many elements without knowing it.
std::vector<std::pair<Shape, Shape>> infer(OpNode& node);

} // namespace cuvil
