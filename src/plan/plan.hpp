// What depends on the target: how each op is computed, how tensors lie in memory, which ops share a loop, and where
// every value lives. The four functions below run in this order; no rewrite rule runs after the first.
#pragma once

#include "ir/program.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace cuvil {

struct RegionPlan;

// One unit of work: a kernel with the elementwise ops in its epilogue, a loop of elementwise ops, or control flow.
struct Step {
    enum Kind { Kernel, Loop, Control };
    Kind kind = Kernel;
    int number = 0;             // over the whole program, in order
    std::string name;           // in the words of the model: "conv1 + relu"
    OpNode* anchor = nullptr;   // the kernel's or control flow's node; nullptr for a loop
    std::vector<OpNode*> fused; // elementwise nodes in order, the last of which makes the step's result
    std::vector<Value*> outputs;
    std::vector<Step> within;        // what this kernel runs, piece by piece: their outputs have no memory
    int scratch = -1;                // the buffer that the kernel works in; -1: it needs none
    std::vector<RegionPlan> regions; // control flow: a plan for each region
};

struct RegionPlan {
    Region* region = nullptr;
    std::vector<Step> steps;
};

// Where the memory of a value comes from.
struct Buffer {
    enum Place {
        Input,    // the caller's, number `index`
        Output,   // the caller's, number `index`
        Constant, // offset `offset` of the weights section
        Slot,     // slot `index` of the workspace
        Dynamic,  // the host's alloc, when the size is known; freed at the end of the region
        Bound     // set by the control flow around it: arguments of loop bodies
    };
    Place place = Slot;
    int index = 0;
    int64_t offset = 0;
    Dim bytes;
};

// Buffers that never live together share a slot: its size is the largest of theirs.
struct Slot {
    Dim size;
};

// The bytes behind the code: constants at 64-byte aligned offsets.
struct PlacedConstant {
    int64_t offset;
    std::string name;
    std::span<const std::byte> bytes;
};

// A size that is known only while running, and all sizes that callers see: the entries of the ABI's dims table.
struct DimEntry {
    Dim value;
    bool at_entry = true; // computed by bind() from the shapes of the inputs
};

// A sentence for something that only data or run-time shapes can show; {0}, {1}, ... are filled in by the loader.
struct Check {
    std::string message;
    std::string node;
};

struct Plan {
    std::map<const OpNode*, std::string> kernels; // template of kernels/ that computes the node: "conv2d", "conv_any"
    std::map<const OpNode*, std::string> choices; // what a node computes for which there are several kernels
    // Of products and attention: the transpose that is stored in place of the result, whose type it has taken.
    std::map<const OpNode*, std::vector<int64_t>> stored_transposed;
    std::map<const OpNode*, Dim> packed_rows; // of gathers that read the weights of a product: the rows there are
    RegionPlan main;

    std::vector<Buffer> buffers;
    std::unordered_map<const Value*, int> buffer_of; // of values that have memory; aliases share one
    std::vector<Slot> slots;
    std::vector<PlacedConstant> constants;
    int64_t constant_bytes = 0;

    std::vector<DimEntry> dims; // symbols first, in order of their binding; then derived sizes of outputs
    std::map<Dim, int> dim_index;
    std::vector<Check> checks;

    // Per loop and carried value: the two buffers between which it alternates, -1 where its size changes while running.
    std::map<const OpNode*, std::vector<std::pair<int, int>>> carried;

    int step_count = 0;

    // Index of a sentence in `checks`, added if new.
    int check(std::string message, std::string node);
    bool known_at_entry(const Dim& dim) const;
    bool known_at_entry(const Type& type) const;
    int buffer(const Value& value) const; // throws InternalError if it has none
};

// The first op that a pass would have taken apart, for it has no code of its own; nullptr if there is none.
const OpNode* first_without_code(const Region& region);

struct ChoiceOptions {
    bool least_bytes = false; // no kernel that needs larger weights than another, however much quicker it is
    std::map<std::string, std::string> kernels = {}; // by Plan::choices; these are taken in any case
    DType matrices = DType::F32; // in which constant matrices of products are kept: f32, bf16, f16 or i8
};

// Per op: the kernel, with its constant operands packed into new weights and its others behind `pack` and `view` nodes.
// Throws Refused for dtypes that no kernel computes in, for strings that do more than pass through, and for ops without
// code; for a kernel among the options that is none; and for a number in a matrix that the dtype of matrices cannot
// hold.
Plan choose_algorithms(Program& program, const ChoiceOptions& options = {});
// Gives values that convolutions and pools exchange blocked layouts, with `relayout` nodes at the borders.
void choose_layouts(Program& program, Plan& plan);
// Cuts each region into steps: epilogues of kernels, loops over chains of elementwise ops and broadcasts.
void fuse_loops(Program& program, Plan& plan);
// Places every value; the program is frozen from here on.
void plan_memory(Program& program, Plan& plan);

// The value whose memory `value` is: through reshapes, identities and views.
const Value& alias_root(const Value& value);
// The operand behind broadcasts, which elementwise loops read in place.
Value& behind_broadcasts(Value& value);
// Whether an op can be part of a loop or an epilogue.
bool is_loop_op(const OpNode& node);
// Strings have no memory of their own: an output is what the caller gave as an input.
bool is_strings(const Type& type);
// A constant of one element, which loops spell out in the code.
bool is_literal(const Value& value);
// Whether a tensor of this type, broadcast to the image [N,C,H,W], differs along C only.
bool is_per_channel(const Type& type, const Type& image);
// The values that a step reads from memory, each once.
std::vector<Value*> memory_operands(const Step& step);

} // namespace cuvil
