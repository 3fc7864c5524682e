// What the compiler knows of an op: one record in the op table (src/ops), from which parser, printer, verifier, typed
// views, `docs/ops.md` and the shared tests are derived.
#pragma once

#include "ir/attribute.hpp"
#include "ir/type.hpp"

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cuvil {

class Inference;
class OpNode;

// Which dtypes an operand takes.
enum class Accepts { Any, Floating, Integer, Number, Bool, Index, F32 };

struct OperandDef {
    enum Arity { One, Optional, Variadic }; // only the last may be variadic
    std::string_view name;
    Accepts accepts = Accepts::Any;
    Arity arity = One;
};

struct AttributeDef {
    std::string_view name;
    AttributeKind kind;
    std::optional<Attribute> default_value = {}; // none: required
};

// How an op becomes code.
struct Lowering {
    enum Kind {
        None,   // gone before planning
        Scalar, // `text` is the C++ expression of one element, in the operands' names, over kernels/math.hpp
        Kernel, // src/codegen calls the template family named `text`
        Alias,  // the result is the first operand's memory
        Control // regions
    };
    Kind kind = None;
    std::string_view text;
};
constexpr Lowering scalar_loop(std::string_view expression) { return {Lowering::Scalar, expression}; }
constexpr Lowering kernel(std::string_view family) { return {Lowering::Kernel, family}; }
constexpr Lowering alias{Lowering::Alias, {}};
constexpr Lowering control{Lowering::Control, {}};

enum Trait : unsigned {
    pure = 1,        // no effect but its results: may be removed, merged and folded
    elementwise = 2, // result element i depends on operand elements i only, all of one shape
    commutative = 4,
    terminator = 8,
    source = 16 // no operands; its result types are given, not inferred
};

// The shared tests of src/ops records: shapes and dtypes that tests/ops feeds, values compared with `reference`.
struct TestGrid {
    std::vector<std::vector<std::vector<int64_t>>> shapes; // a list of operand shapes per case
    std::vector<std::string_view> dtypes;
    double low = -4, high = 4;
};

struct OpDef {
    std::string_view name;
    std::string_view summary; // one sentence, the written definition
    std::vector<OperandDef> operands;
    std::vector<AttributeDef> attributes = {};
    std::vector<std::string_view> results = {"result"}; // "...": as many as the node is given
    std::vector<std::string_view> regions = {};
    void (*infer)(Inference&) = nullptr;
    unsigned traits = pure;
    Lowering lower = {};
    std::string_view reference = {}; // the same in NumPy, for the shared tests: "np.maximum(x, 0)"
    const TestGrid* tests = nullptr;

    bool has(Trait t) const { return (traits & t) != 0; }
    const AttributeDef* find_attribute(std::string_view attribute) const;
};

// All ops of one compilation: the built-in records and those registered at run time.
class OpTable {
public:
    void add(OpDef def); // std::invalid_argument when the name is taken
    const OpDef* find(std::string_view name) const;
    const std::deque<OpDef>& all() const { return defs_; }

private:
    std::deque<OpDef> defs_; // addresses stay
    std::unordered_map<std::string_view, const OpDef*> by_name_;
};

// What an op's `infer` sees: operands and attributes in, result types out.
class Inference {
public:
    explicit Inference(OpNode& node) : node_(node) {}

    OpNode& node() const { return node_; }
    size_t operand_count() const;
    bool has_operand(size_t i) const; // false: an optional one was left out
    const Type& type(size_t i) const;
    // Type of operand i, which must have a rank; fails otherwise.
    const Type& ranked(size_t i) const;
    // The elements of a small integer tensor as dims, where they are known.
    const std::optional<std::vector<Dim>>& elements(size_t i) const;

    void result(Type type, size_t i = 0);
    // After result(). Elements that the result's dtype would wrap stay unknown.
    void result_elements(std::vector<Dim> elements, size_t i = 0);
    [[noreturn]] void fail(const std::string& message) const; // throws InferenceError
    // The op works only where both shapes have as many elements. Different counts are the caller's to refuse; what is
    // not known is noted, and the verifier asks for a `require`.
    void assume_equal_counts(const Shape& a, const Shape& b);
    const std::vector<std::pair<Shape, Shape>>& assumptions() const { return assumptions_; }

private:
    OpNode& node_;
    std::vector<std::pair<Shape, Shape>> assumptions_;
};

// A node's operands do not fit; the message is in the words of op and shapes, without a place.
class InferenceError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

} // namespace cuvil
