#include "import/builder.hpp"

#include "import/elements.hpp"
#include "ir/record_check.hpp"
#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace cuvil {
namespace {

constexpr size_t most_terms = 64;
constexpr size_t most_parts = 4096;
constexpr size_t most_rank = 32;
constexpr size_t most_elements = 4096;

size_t parts_of(const Dim& dim, size_t budget) {
    size_t parts = 0;
    for (const DimTerm& term : dim.terms()) {
        parts++;
        for (const DimAtom& atom : term.atoms) {
            parts++;
            for (const Dim& argument : atom.args)
                if (parts < budget) parts += parts_of(argument, budget - parts);
        }
        if (parts >= budget) break;
    }
    return parts;
}

bool is_complex(const Dim& dim) { return dim.terms().size() > most_terms || parts_of(dim, most_parts) >= most_parts; }

[[noreturn]] void too_complex(std::string_view what) {
    throw ImportError("too-complex", fmt::format("{} are more than can be handled", what));
}

template <class T> std::string bytes_of(T value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::string integer_bytes(DType dtype, int64_t value) {
    std::string bytes = bytes_of(value);
    bytes.resize(size_of(dtype)); // little-endian: the low bytes are the narrow integer
    return bytes;
}

std::pair<double, double> integer_range(DType dtype) {
    int bits = static_cast<int>(size_of(dtype)) * 8;
    if (is_unsigned_integer(dtype)) return {0.0, std::ldexp(1.0, bits)};
    return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1)};
}

template <class T> double read_as(std::span<const std::byte> bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return static_cast<double>(value);
}

std::optional<double> number_of(DType dtype, std::span<const std::byte> bytes) {
    if (bytes.size() != size_of(dtype) || bytes.empty()) return std::nullopt;
    switch (dtype) {
    case DType::F64: return read_as<double>(bytes);
    case DType::F32: return read_as<float>(bytes);
    case DType::I64: return read_as<int64_t>(bytes);
    case DType::I32: return read_as<int32_t>(bytes);
    case DType::I16: return read_as<int16_t>(bytes);
    case DType::I8: return read_as<int8_t>(bytes);
    case DType::U64: return read_as<uint64_t>(bytes);
    case DType::U32: return read_as<uint32_t>(bytes);
    case DType::U16: return read_as<uint16_t>(bytes);
    case DType::U8:
    case DType::Bool: return read_as<uint8_t>(bytes);
    default: return std::nullopt;
    }
}

} // namespace

void check_complexity(const Dim& dim) {
    if (is_complex(dim)) too_complex("the expressions of the sizes");
}

Dim checked_count(std::span<const Dim> shape) {
    Dim count = 1;
    for (const Dim& d : shape) {
        count = count * d;
        check_complexity(count);
    }
    return count;
}

void check_complexity(Value& value) {
    const Type& type = value.type();
    if (!type.has_rank()) return;
    if (type.shape().size() > most_rank) too_complex(fmt::format("{} axes", type.shape().size()));
    for (const Dim& d : type.shape()) check_complexity(d);
    checked_count(type.shape()) * Dim(static_cast<int64_t>(std::max<size_t>(size_of(type.dtype()), 1)));
    if (!value.elements()) return;
    bool is_simple = value.elements()->size() <= most_elements &&
                     std::none_of(value.elements()->begin(), value.elements()->end(), is_complex);
    if (!is_simple) value.set_elements(std::nullopt);
}

namespace {

[[noreturn]] void broadcast_mismatch(size_t axis_from_end, const Shape& a, const Shape& b) {
    throw ImportError("shape-mismatch",
                      fmt::format("Broadcast mismatch at axis -{}: {} and {}", axis_from_end, text(a), text(b)));
}

} // namespace

Shape broadcast_shapes(const Shape& a, const Shape& b) {
    if (a.size() < b.size()) return broadcast_shapes(b, a);
    Shape shape = a;
    for (size_t i = 1; i <= b.size(); i++) {
        Dim& to = shape[a.size() - i];
        const Dim& from = b[b.size() - i];
        if (to == from || from.is(1)) continue;
        if (!to.is(1) && compare(to, from) == Equality::Different) broadcast_mismatch(i, a, b);
        // Of two sizes that must turn out equal, the fixed one tells later ops more.
        if (to.is(1) || from.constant()) to = from;
    }
    return shape;
}

int64_t normal_axis(int64_t axis, int64_t rank) {
    if (axis < -rank || axis >= rank)
        throw ImportError("bad-attribute", fmt::format("axis {} is out of range for rank {}", axis, rank));
    return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> normal_axes(std::vector<int64_t> axes, int64_t rank) {
    for (int64_t& axis : axes) axis = normal_axis(axis, rank);
    std::sort(axes.begin(), axes.end());
    if (auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end())
        throw ImportError("bad-attribute", fmt::format("axis {} is named twice", *twice));
    return axes;
}

std::vector<int64_t> all_axes(int64_t rank) {
    std::vector<int64_t> axes(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
}

GraphBuilder::GraphBuilder(Program& program, FuncIR& function) : rewriter_(program, function) {
    enter(function.body());
}

Value& GraphBuilder::make(std::string_view op, const std::vector<Value*>& operands, Attributes attributes) {
    const OpDef* def = program().ops().find(op);
    CUVIL_ASSERT(def, "no op named " + std::string(op));
    for (size_t i = 0; i < operands.size(); i++) {
        if (!operands[i]) continue;
        const OperandDef& operand = def->operands[std::min(i, def->operands.size() - 1)];
        if (!accepts(operand.accepts, operands[i]->type().dtype()))
            throw ImportError("unsupported-type", fmt::format("{} does not take elements of type {}", op,
                                                              name(operands[i]->type().dtype())));
    }
    Value& result = rewriter_.make(op, operands, std::move(attributes));
    for (const Dim& size : result.type().shape())
        if (size.constant().value_or(0) < 0)
            throw ImportError("shape-mismatch",
                              fmt::format("the result would have a negative size, {}", result.type().text()));
    follow_elements(*result.producer());
    return result;
}

std::vector<Value*> GraphBuilder::broadcast_together(const std::vector<Value*>& operands) {
    Shape shape = operands[0]->type().shape();
    for (const Value* operand : operands) shape = broadcast_shapes(shape, operand->type().shape());
    std::vector<Value*> all;
    for (Value* operand : operands) all.push_back(&broadcast_to(*operand, shape));
    return all;
}

Value& GraphBuilder::elementwise(std::string_view op, const std::vector<Value*>& operands) {
    for (const Value* operand : operands)
        if (operand->type().dtype() != operands[0]->type().dtype())
            throw ImportError("type-mismatch",
                              fmt::format("the operands have different types, {} and {}",
                                          name(operands[0]->type().dtype()), name(operand->type().dtype())));
    return make(op, broadcast_together(operands));
}

Value& GraphBuilder::broadcast_to(Value& x, const Shape& shape) {
    if (x.type().shape() == shape) return x;
    size_t rank = x.type().shape().size();
    if (rank > shape.size())
        throw ImportError("shape-mismatch", fmt::format("{} has more axes than {}", x.type().text(), text(shape)));
    Shape own = x.type().shape();
    for (size_t i = 1; i <= rank; i++) {
        const Dim& to = shape[shape.size() - i];
        if (own[rank - i].is(1)) continue;
        if (compare(own[rank - i], to) == Equality::Different) broadcast_mismatch(i, x.type().shape(), shape);
        own[rank - i] = to;
    }
    Value& fitted = fit(x, own);
    return fitted.type().shape() == shape ? fitted : make("broadcast", {&fitted}, {{"shape", shape}});
}

Value& GraphBuilder::cast(Value& x, DType to) {
    if (x.type().dtype() == to) return x;
    if (x.type().dtype() == DType::String || to == DType::String)
        throw ImportError("unsupported-type", "strings are not converted to or from other types");
    if (to >= DType::C64 || x.type().dtype() >= DType::C64)
        throw ImportError("unsupported-type", "complex numbers are not converted");
    return make("cast", {&x}, {{"to", to}});
}

Value& GraphBuilder::reshape(Value& x, const Shape& shape) {
    if (x.type().shape() == shape) return x;
    Dim from = checked_count(x.type().shape()), to = checked_count(shape);
    if (compare(from, to) == Equality::Unknown) require_equal(from, to);
    return make("reshape", {&x}, {{"shape", shape}});
}

Value& GraphBuilder::fit(Value& x, const Shape& shape) {
    if (x.type().shape() == shape) return x;
    if (x.type().shape().size() != shape.size())
        throw ImportError("shape-mismatch", fmt::format("{} has not the rank of {}", x.type().text(), text(shape)));
    for (size_t i = 0; i < shape.size(); i++) require_equal(x.type().shape()[i], shape[i]);
    return make("reshape", {&x}, {{"shape", shape}});
}

Value& GraphBuilder::squeeze(Value& x, const std::vector<int64_t>& axes) {
    Shape shape;
    for (int64_t i = 0; i < x.type().rank(); i++) {
        if (std::find(axes.begin(), axes.end(), i) == axes.end())
            shape.push_back(x.type().dim(i));
        else
            require_equal(x.type().dim(i), 1);
    }
    return reshape(x, shape);
}

Value& GraphBuilder::unsqueeze(Value& x, const std::vector<int64_t>& axes) {
    Shape shape;
    auto next = x.type().shape().begin();
    for (int64_t i = 0; i < x.type().rank() + static_cast<int64_t>(axes.size()); i++)
        shape.push_back(std::find(axes.begin(), axes.end(), i) == axes.end() ? *next++ : Dim(1));
    return reshape(x, shape);
}

Value& GraphBuilder::transpose(Value& x, const std::vector<int64_t>& perm) {
    return perm == all_axes(x.type().rank()) ? x : make("transpose", {&x}, {{"perm", perm}});
}

Value& GraphBuilder::swap_last_axes(Value& x) {
    std::vector<int64_t> perm = all_axes(x.type().rank());
    std::swap(perm.at(perm.size() - 1), perm.at(perm.size() - 2));
    return transpose(x, perm);
}

Value& GraphBuilder::concat(const std::vector<Value*>& parts, int64_t axis) {
    if (parts.size() == 1) return *parts[0];
    std::vector<Value*> fitting;
    for (Value* part : parts) {
        if (part->type().rank() != parts[0]->type().rank())
            throw ImportError("shape-mismatch", fmt::format("the operands have different ranks, {} and {}",
                                                            parts[0]->type().text(), part->type().text()));
        Shape shape = parts[0]->type().shape();
        shape[static_cast<size_t>(axis)] = part->type().dim(axis);
        fitting.push_back(&fit(*part, shape));
    }
    return make("concat", fitting, {{"axis", axis}});
}

Value& GraphBuilder::slice(Value& x, int64_t axis, const Dim& start, const Dim& size, int64_t step) {
    Shape starts(x.type().shape().size(), 0), sizes = x.type().shape();
    std::vector<int64_t> steps(starts.size(), 1);
    auto at = static_cast<size_t>(axis);
    starts[at] = start;
    sizes[at] = size;
    steps[at] = step;
    if (start.is(0) && step == 1 && sizes == x.type().shape()) return x;
    return make("slice", {&x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

Value& GraphBuilder::pad(Value& x, const Shape& low, const Shape& high, double value) {
    auto is_zero = [](const Dim& d) { return d.is(0); };
    if (std::all_of(low.begin(), low.end(), is_zero) && std::all_of(high.begin(), high.end(), is_zero)) return x;
    return make("pad", {&x}, {{"low", low}, {"high", high}, {"value", value}});
}

Value& GraphBuilder::reduce(std::string_view op, Value& x, const std::vector<int64_t>& axes, bool keep) {
    if (axes.empty()) return x;
    Value& reduced = make(op, {&x}, {{"axes", axes}});
    return keep ? reduced : squeeze(reduced, axes);
}

Value& GraphBuilder::gather(Value& x, Value& indices, int64_t axis) {
    return make("gather", {&x, &indices}, {{"axis", axis}});
}

Value& GraphBuilder::range(Value& start, Value& delta, const Dim& size) {
    return make("range", {&start, &delta}, {{"size", Shape{size}}});
}

Value& GraphBuilder::positions(const Dim& size, DType dtype) { return range(scalar(dtype, 0), scalar(dtype, 1), size); }

Value& GraphBuilder::matmul(Value& a, Value& b) {
    if (a.type().rank() == 0 || b.type().rank() == 0)
        throw ImportError("shape-mismatch",
                          fmt::format("matmul does not take scalars, {} and {}", a.type().text(), b.type().text()));
    if (a.type().rank() == 1) {
        Value& product = matmul(unsqueeze(a, {0}), b);
        return squeeze(product, {product.type().rank() - (b.type().rank() == 1 ? 1 : 2)});
    }
    if (b.type().rank() == 1) {
        Value& product = matmul(a, unsqueeze(b, {1}));
        return squeeze(product, {product.type().rank() - 1});
    }
    auto stack_of = [](const Value& v) { return Shape(v.type().shape().begin(), v.type().shape().end() - 2); };
    auto with_stack = [](Shape stack, const Dim& rows, const Dim& columns) {
        stack.push_back(rows);
        stack.push_back(columns);
        return stack;
    };
    Shape stack_a = stack_of(a), stack_b = stack_of(b);
    // Inner sizes that turn out different at run time fail there; those that are different here are the op's error.
    Value* left = &a;
    const Dim& inner = b.type().dim(-2);
    if (compare(a.type().dim(-1), inner) == Equality::Unknown)
        left = &fit(a, with_stack(stack_a, a.type().dim(-2), inner));
    if (std::all_of(stack_b.begin(), stack_b.end(), [](const Dim& d) { return d.is(1); }) &&
        stack_b.size() <= stack_a.size())
        return make("matmul", {left, &reshape(b, {inner, b.type().dim(-1)})});
    Shape stack = broadcast_shapes(stack_a, stack_b);
    left = &broadcast_to(*left, with_stack(stack, left->type().dim(-2), left->type().dim(-1)));
    return make("matmul", {left, &broadcast_to(b, with_stack(stack, inner, b.type().dim(-1)))});
}

Value& GraphBuilder::scalar(DType dtype, double value) {
    Type type = Type::tensor(dtype, {});
    switch (dtype) {
    case DType::F64: return rewriter_.constant(type, bytes_of(value));
    case DType::F32: return rewriter_.constant(type, bytes_of(static_cast<float>(value)));
    case DType::F16:
    case DType::BF16: return cast(scalar(DType::F32, value), dtype);
    case DType::Bool: return bools({value != 0}, {});
    default: break;
    }
    if (!is_integer(dtype)) throw ImportError("unsupported-type", fmt::format("no number has type {}", name(dtype)));
    auto [low, high] = integer_range(dtype);
    if (!(value >= low && value < high) || value != std::floor(value))
        throw ImportError("bad-attribute", fmt::format("{} is not a value of type {}", value, name(dtype)));
    auto integer =
        dtype == DType::U64 ? static_cast<int64_t>(static_cast<uint64_t>(value)) : static_cast<int64_t>(value);
    return rewriter_.constant(type, integer_bytes(dtype, integer));
}

Value& GraphBuilder::dims(const std::vector<Dim>& elements, Shape shape, DType dtype) {
    std::string bytes;
    for (const Dim& d : elements)
        if (auto value = d.constant()) bytes += integer_bytes(dtype, *value);
    Type type = Type::tensor(dtype, std::move(shape));
    if (bytes.size() == elements.size() * size_of(dtype)) return rewriter_.constant(std::move(type), std::move(bytes));
    Value& value = rewriter_.create_typed("dims", {}, {{"values", Shape(elements)}}, {std::move(type)}).result();
    value.set_elements(elements);
    return value;
}

Value& GraphBuilder::bools(const std::vector<bool>& elements, Shape shape) {
    std::string bytes;
    for (bool element : elements) bytes += element ? '\1' : '\0';
    return rewriter_.constant(Type::tensor(DType::Bool, std::move(shape)), std::move(bytes));
}

void GraphBuilder::require_equal(const Dim& a, const Dim& b) {
    switch (compare(a, b)) {
    case Equality::Equal: return;
    case Equality::Different:
        throw ImportError("shape-mismatch", fmt::format("sizes {} and {} must be equal", a.text(), b.text()));
    case Equality::Unknown: break;
    }
    require(a, b, fmt::format("sizes {} and {} must be equal, but are {{0}} and {{1}}", a.text(), b.text()));
}

std::optional<double> GraphBuilder::constant_number(const Value& value) const {
    if (auto bytes = constant_bytes(program(), value)) return number_of(value.type().dtype(), *bytes);
    const OpNode* producer = value.producer();
    if (!producer || (producer->op() != "cast" && producer->op() != "reshape") ||
        !checked_count(value.type().shape()).is(1))
        return std::nullopt;
    auto number = constant_number(*producer->operand(0));
    if (!number || producer->op() == "reshape") return number;
    if (value.type().dtype() == DType::F64) return number;
    if (value.type().dtype() == DType::F32) return static_cast<double>(static_cast<float>(*number));
    if (!is_integer(value.type().dtype())) return std::nullopt;
    auto [low, high] = integer_range(value.type().dtype());
    return *number >= low && *number < high ? std::optional(std::trunc(*number)) : std::nullopt;
}

std::optional<std::vector<double>> GraphBuilder::constant_reals(const Value& value) const {
    const Type& type = value.type();
    if (auto bytes = constant_bytes(program(), value)) {
        if (type.dtype() != DType::F32 && type.dtype() != DType::F64) return std::nullopt;
        std::vector<double> numbers;
        size_t size = size_of(type.dtype());
        for (size_t at = 0; at + size <= bytes->size(); at += size)
            numbers.push_back(*number_of(type.dtype(), bytes->subspan(at, size)));
        return numbers;
    }
    const OpNode* producer = value.producer();
    if (!producer) return std::nullopt;
    if (producer->op() == "reshape") return constant_reals(*producer->operand(0));
    if (producer->op() != "concat" || type.rank() != 1) return std::nullopt;
    std::vector<double> all;
    for (const Value* part : producer->operands()) {
        auto numbers = constant_reals(*part);
        if (!numbers) return std::nullopt;
        all.insert(all.end(), numbers->begin(), numbers->end());
    }
    return all;
}

namespace {

// Which known sizes are equal; nothing where one of the comparisons is open.
std::optional<std::vector<bool>> equal_elements(const Value& a, const Value& b) {
    if (!a.elements() || !b.elements() || a.elements()->size() != b.elements()->size()) return std::nullopt;
    std::vector<bool> all;
    for (size_t i = 0; i < a.elements()->size(); i++) {
        Equality equality = compare((*a.elements())[i], (*b.elements())[i]);
        if (equality == Equality::Unknown) return std::nullopt;
        all.push_back(equality == Equality::Equal);
    }
    return all;
}

} // namespace

std::optional<std::vector<bool>> GraphBuilder::constant_bools(const Value& value) const {
    if (value.type().dtype() != DType::Bool) return std::nullopt;
    if (const OpNode* producer = value.producer()) {
        if (producer->op() == "reshape") return constant_bools(*producer->operand(0));
        if (producer->op() == "equal") return equal_elements(*producer->operand(0), *producer->operand(1));
        if (producer->op() == "logical_not") {
            auto all = constant_bools(*producer->operand(0));
            if (all) all->flip();
            return all;
        }
    }
    auto bytes = constant_bytes(program(), value);
    if (!bytes) return std::nullopt;
    std::vector<bool> all;
    for (std::byte b : *bytes) all.push_back(b != std::byte{0});
    return all;
}

Dim GraphBuilder::fresh_dim(std::string_view hint) {
    std::string symbol = program().fresh_symbol(hint);
    levels_.back().symbols.insert(symbol);
    return Dim::symbol(std::move(symbol));
}

void GraphBuilder::enter(Region& region) {
    levels_.push_back({&region, {}, {}, {}});
    rewriter_.insert_at_end(region);
}

std::set<std::string> GraphBuilder::leave() {
    std::set<std::string> symbols = std::move(levels_.back().symbols);
    levels_.pop_back();
    rewriter_.insert_at_end(*levels_.back().region);
    return symbols;
}

} // namespace cuvil
