// Builds IR the way foreign models think: NumPy broadcasting, axes that disappear, sizes that only turn out equal at
// run time. Every importer builds through this.
#pragma once

#include "ir/dim_quotient.hpp"
#include "ir/rewriter.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cuvil {

// One node of the model cannot be imported. The message is about the node and gives no place.
class ImportError : public std::runtime_error {
public:
    ImportError(std::string code, const std::string& message, std::string help = {})
        : std::runtime_error(message), code(std::move(code)), help(std::move(help)) {}
    std::string code, help;
};

// Makes nodes at the end of the current region. Shapes and dtypes that do not fit throw InferenceError or ImportError;
// operands must be tensors of known rank.
class GraphBuilder {
public:
    GraphBuilder(Program& program, FuncIR& function);

    Rewriter& rewriter() { return rewriter_; }
    Program& program() const { return rewriter_.program(); }

    // Like Rewriter::make, and checks that the op accepts the operands' dtypes.
    Value& make(std::string_view op, const std::vector<Value*>& operands, Attributes attributes = {});
    // The same after broadcasting the operands to their common shape. All must have one dtype.
    Value& elementwise(std::string_view op, const std::vector<Value*>& operands);
    Value& elementwise(std::string_view op, Value& a, double b) { return elementwise(op, {&a, &scalar(a, b)}); }
    std::vector<Value*> broadcast_together(const std::vector<Value*>& operands);
    // Right-aligned; the result is `shape`.
    Value& broadcast_to(Value& x, const Shape& shape);
    Value& cast(Value& x, DType to);

    // `x` unchanged where the shape is the same already.
    Value& reshape(Value& x, const Shape& shape);
    // Sizes that must be equal: where that is not known, it is required at run time. Another rank is refused.
    Value& fit(Value& x, const Shape& shape);
    Value& squeeze(Value& x, const std::vector<int64_t>& axes);   // axes in range, each once
    Value& unsqueeze(Value& x, const std::vector<int64_t>& axes); // positions in the result, in range, each once
    Value& transpose(Value& x, const std::vector<int64_t>& perm);
    Value& swap_last_axes(Value& x);
    Value& concat(const std::vector<Value*>& parts, int64_t axis);
    // One axis only; `start` is in range where `size` is not 0.
    Value& slice(Value& x, int64_t axis, const Dim& start, const Dim& size, int64_t step = 1);
    Value& pad(Value& x, const Shape& low, const Shape& high, double value);
    // reduce_sum, ... over `axes` (in range, each once); without `keep` they disappear.
    Value& reduce(std::string_view op, Value& x, const std::vector<int64_t>& axes, bool keep);
    // Along the axis; indices are i64 or i32.
    Value& gather(Value& x, Value& indices, int64_t axis);
    // start, start + delta, ...: `size` of them; both are scalars of one dtype.
    Value& range(Value& start, Value& delta, const Dim& size);
    // 0, 1, 2, ...
    Value& positions(const Dim& size, DType dtype = DType::I64);
    Value& matmul(Value& a, Value& b); // NumPy's: vectors, and stacks that broadcast

    // A constant of rank 0. Integers hold `value` exactly or throw ImportError.
    Value& scalar(DType dtype, double value);
    Value& scalar(const Value& like, double value) { return scalar(like.type().dtype(), value); }
    // Integers (i64 or i32) given as dims, row-major; a `constant` where all are numbers.
    Value& dims(const std::vector<Dim>& elements, Shape shape, DType dtype = DType::I64);
    Value& bools(const std::vector<bool>& elements, Shape shape);

    // Does nothing for equal dims, throws for different ones ("shape-mismatch"), and makes a `require` for others.
    void require_equal(const Dim& a, const Dim& b);

    // Makes a `require` of `message`, in which {0} and {1} are the sizes; once for each pair.
    void require(const Dim& left, const Dim& right, std::string message);
    // "`what` is -3, expected at least 0", here if it is known, else while running.
    void require_at_least(const Dim& dim, int64_t least, std::string_view what);

    // ---- Sizes from data. Elements that are not known when compiling are read while running, each into symbols of the
    // region that the value belongs to. Throw ImportError ("data-dependent-shape") where their number is not known.
    std::vector<Dim> sizes_of(Value& integers);
    // The same with `what` required not to be negative.
    std::vector<Dim> counts_of(Value& integers, std::string_view what);
    // Whether a size that was read takes part in it.
    bool is_from_data(const Dim& dim) const;
    // x with one symbol in place of each longer expression in its shape that is from data: such would grow from op to
    // op.
    Value& name_sizes(Value& x);
    // How many elements they are, and what is known of them without reading.
    int64_t length_of(const Value& integers) const;
    std::vector<std::optional<Dim>> known_elements(const Value& integers) const;

    // The value of a constant with one element, seen through reshapes and casts.
    std::optional<double> constant_number(const Value& value) const;
    // The elements of a floating-point constant, seen through reshapes and concatenations.
    std::optional<std::vector<double>> constant_reals(const Value& value) const;
    std::optional<std::vector<bool>> constant_bools(const Value& value) const;

    // A new symbol that the current region binds.
    Dim fresh_dim(std::string_view hint);
    // New nodes go to the end of `region`, until leave().
    void enter(Region& region);
    // The symbols that the region bound.
    std::set<std::string> leave();

private:
    // An element is the difference of the two, of which one is 0: symbols are never negative.
    struct ReadSize {
        Dim size, below_zero;
    };
    struct Level {
        Region* region;
        std::set<std::string> symbols;
        std::set<std::pair<Dim, Dim>> required;
        std::map<const Value*, std::vector<ReadSize>> read; // of the region's own values
    };
    const std::vector<ReadSize>& read(Value& integers);

    Rewriter rewriter_;
    std::vector<Level> levels_;
    std::set<std::string> read_symbols_;
};

// Throws ImportError ("too-complex") where an expression outgrows what a model can sensibly hold.
void check_complexity(const Dim& dim);
// The product of the sizes, with the same check.
Dim checked_count(std::span<const Dim> shape);
inline Dim checked_count(const Shape& shape) { return checked_count(std::span(shape)); }
// Checks rank, sizes and their product of a value's type. Known elements that are too many or too long are forgotten.
void check_complexity(Value& value);

// NumPy's common shape. Where two sizes may or may not be equal, they are taken to be.
Shape broadcast_shapes(const Shape& a, const Shape& b);
// axis counted from the front; throws ImportError ("bad-attribute") when out of range.
int64_t normal_axis(int64_t axis, int64_t rank);
// Each normal, sorted; throws when one stands twice.
std::vector<int64_t> normal_axes(std::vector<int64_t> axes, int64_t rank);
std::vector<int64_t> all_axes(int64_t rank);

} // namespace cuvil
