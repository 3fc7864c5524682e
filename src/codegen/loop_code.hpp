// The elementwise part of a step: a loop of its own or a kernel's epilogue.
#pragma once

#include "codegen/step_context.hpp"

namespace cuvil {

// Strides, in elements, of a row-major tensor seen in a shape it is broadcast to.
std::vector<Dim> broadcast_strides(const Shape& from, const Shape& to);

// A walk over several tensors in the same order.
struct MergedShape {
    Shape shape;
    std::vector<std::vector<Dim>> strides; // of each tensor
};
// Drops dims of size 1 and merges neighbours that every tensor walks without a gap; at least one dim is left.
MergedShape merge(const Shape& shape, const std::vector<std::vector<Dim>>& strides);

class LoopCode {
public:
    explicit LoopCode(const StepContext& context);

    // `const f32* o0 = ...;` for each tensor that the fused nodes read from memory.
    void declare_operands(CxxText& out) const;
    // What it calls one of them.
    const std::string& name_of(const Value& read) const { return find(read)->name; }
    // The whole loop, for steps without a kernel.
    void emit(CxxText& out) const;
    // The body of a kernel's epilogue: from `accumulator`, the kernel's value, to a return statement. The patterns say
    // how a tensor that lies as the result does, and one that varies along columns or channels only, are read; {0} is
    // the pointer.
    void emit_epilogue(CxxText& out, std::string_view accumulator, std::string_view full, std::string_view along) const;

private:
    struct Operand {
        Value* value; // behind broadcasts
        std::string name;
    };

    const Operand* find(const Value& read) const;
    void emit_plain(CxxText& out) const;
    void emit_blocked(CxxText& out) const;
    // Statements for the fused nodes, with `text_of` giving what stands for each value from outside; then a return.
    template <class F> void emit_nodes(CxxText& out, F text_of) const;

    const StepContext& c_;
    std::vector<Operand> operands_;
};

} // namespace cuvil
