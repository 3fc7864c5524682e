#include "eval/evaluate.hpp"

#include "eval/arrays.hpp"

#include <algorithm>
#include <cstring>

namespace cuvil {
namespace {

using evaluation::Array;
using evaluation::Result;
using evaluation::Window;
using Ints = std::vector<int64_t>;

constexpr int64_t largest_result = int64_t{256} << 20; // bytes
// Multiplications of one node; some seconds.
constexpr int64_t most_work = int64_t{1} << 30;

std::optional<Ints> constants(const std::vector<Dim>& dims) {
    Ints values;
    for (const Dim& dim : dims) {
        auto value = dim.constant();
        if (!value) return std::nullopt;
        values.push_back(*value);
    }
    return values;
}

int64_t from_front(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

// The operands as arrays: aligned, with sound bools. Absent ones hold no data.
class Operands {
public:
    // False where an operand is not a known constant of static shape.
    bool read(const Program& program, const OpNode& node) {
        storage_.resize(node.operands().size());
        for (size_t i = 0; i < node.operands().size(); i++) {
            const Value* value = node.operand(i);
            arrays_.push_back({});
            if (value && !read_one(program, *value, i)) return false;
        }
        return true;
    }

    const Array& operator[](size_t i) const { return arrays_[i]; }
    const Array* optional(size_t i) const { return i < arrays_.size() && arrays_[i].data ? &arrays_[i] : nullptr; }
    std::span<const Array> all() const { return arrays_; }

private:
    bool read_one(const Program& program, const Value& value, size_t i) {
        auto bytes = constant_bytes(program, value);
        auto shape = bytes && value.type().has_rank() ? constants(value.type().shape()) : std::nullopt;
        if (!shape) return false;
        DType dtype = value.type().dtype();
        Array& array = arrays_[i];
        array = {cxx_name(dtype), size_of(dtype), std::move(*shape), bytes->data()};
        if (static_cast<size_t>(array.count()) * array.element_size != bytes->size()) return false;
        bool sound = dtype != DType::Bool ||
                     std::ranges::all_of(*bytes, [](std::byte b) { return b == std::byte{0} || b == std::byte{1}; });
        if (!sound) return false;
        // Weights lie in a model file as its format has them.
        bool aligned = reinterpret_cast<uintptr_t>(bytes->data()) % alignof(uint64_t) == 0;
        if (!aligned || bytes->empty()) {
            storage_[i].resize(bytes->size() / sizeof(uint64_t) + 1);
            if (!bytes->empty()) std::memcpy(storage_[i].data(), bytes->data(), bytes->size());
            array.data = reinterpret_cast<const std::byte*>(storage_[i].data());
        }
        return true;
    }

    std::vector<Array> arrays_;
    std::vector<std::vector<uint64_t>> storage_;
};

Window window_of(const OpNode& node) {
    Window window;
    if (node.def().find_attribute("kernel")) window.kernel = node.get<Ints>("kernel");
    window.strides = node.get<Ints>("strides");
    window.dilations = node.get<Ints>("dilations");
    window.pads = node.get<Ints>("pads");
    return window;
}

// False as well where the product is too large to count.
bool is_little_work(const Result& y, std::initializer_list<int64_t> factors) {
    int64_t work = y.count();
    for (int64_t factor : factors)
        if (__builtin_mul_overflow(work, factor, &work)) return false;
    return work <= most_work;
}

bool keep_bytes(const OpNode&, const Operands& x, const Result& y) {
    std::memcpy(y.data, x[0].data, static_cast<size_t>(y.count()) * y.element_size);
    return true;
}

bool cast(const OpNode&, const Operands& x, const Result& y) { return evaluation::cast_elements(x[0], y); }

bool elementwise(const OpNode& node, const Operands& x, const Result& y) {
    return evaluation::map_elements(node.op(), x.all(), y);
}

bool matmul(const OpNode&, const Operands& x, const Result& y) {
    return is_little_work(y, {x[0].shape.back()}) && evaluation::matmul(x[0], x[1], y);
}

bool conv2d(const OpNode& node, const Operands& x, const Result& y) {
    const Ints& weight = x[1].shape;
    return is_little_work(y, {weight[1], weight[2], weight[3]}) &&
           evaluation::conv2d(x[0], x[1], x.optional(2), window_of(node), node.get<int64_t>("groups"), y);
}

bool max_pool2d(const OpNode& node, const Operands& x, const Result& y) {
    Window window = window_of(node);
    return is_little_work(y, {window.kernel[0], window.kernel[1]}) && evaluation::max_pool2d(x[0], window, y);
}

bool avg_pool2d(const OpNode& node, const Operands& x, const Result& y) {
    Window window = window_of(node);
    return is_little_work(y, {window.kernel[0], window.kernel[1]}) &&
           evaluation::avg_pool2d(x[0], window, node.get<bool>("count_include_pad"), y);
}

bool reduce(const OpNode& node, const Operands& x, const Result& y) {
    Ints axes = node.get<Ints>("axes");
    for (int64_t& axis : axes) axis = from_front(axis, x[0].shape.size());
    return evaluation::reduce(node.def().lower.text, x[0], axes, y);
}

bool softmax(const OpNode& node, const Operands& x, const Result& y) {
    int64_t axis = from_front(node.get<int64_t>("axis"), x[0].shape.size());
    return evaluation::softmax(x[0], axis, node.op() == "log_softmax", y);
}

bool transpose(const OpNode& node, const Operands& x, const Result& y) {
    return evaluation::transpose(x[0], node.get<Ints>("perm"), y);
}

bool broadcast(const OpNode&, const Operands& x, const Result& y) { return evaluation::broadcast(x[0], y); }

bool slice(const OpNode& node, const Operands& x, const Result& y) {
    auto starts = constants(node.get<Shape>("starts"));
    return starts && evaluation::slice(x[0], *starts, node.get<Ints>("steps"), y);
}

bool concat(const OpNode& node, const Operands& x, const Result& y) {
    return evaluation::concat(x.all(), from_front(node.get<int64_t>("axis"), y.shape.size()), y);
}

bool pad(const OpNode& node, const Operands& x, const Result& y) {
    auto low = constants(node.get<Shape>("low"));
    return low && evaluation::pad(x[0], *low, node.get<double>("value"), y);
}

bool gather(const OpNode& node, const Operands& x, const Result& y) {
    return evaluation::gather(x[0], x[1], from_front(node.get<int64_t>("axis"), x[0].shape.size()), y);
}

bool range(const OpNode&, const Operands& x, const Result& y) { return evaluation::range(x[0], x[1], y); }

struct Row {
    std::string_view op;
    bool (*compute)(const OpNode&, const Operands&, const Result&);
};

// Besides the elementwise ops.
constexpr Row rows[] = {
    {"avg_pool2d", avg_pool2d}, {"bitcast", keep_bytes},  {"broadcast", broadcast},   {"cast", cast},
    {"concat", concat},         {"conv2d", conv2d},       {"gather", gather},         {"identity", keep_bytes},
    {"log_softmax", softmax},   {"matmul", matmul},       {"max_pool2d", max_pool2d}, {"pad", pad},
    {"range", range},           {"reduce_max", reduce},   {"reduce_mean", reduce},    {"reduce_min", reduce},
    {"reduce_prod", reduce},    {"reduce_sum", reduce},   {"reshape", keep_bytes},    {"slice", slice},
    {"softmax", softmax},       {"transpose", transpose},
};

bool (*function_for(const OpNode& node))(const OpNode&, const Operands&, const Result&) {
    for (const Row& row : rows)
        if (row.op == node.op()) return row.compute;
    return node.def().lower.kind == Lowering::Scalar ? elementwise : nullptr;
}

} // namespace

std::optional<std::vector<std::string>> evaluate(const Program& program, const OpNode& node) {
    auto compute = function_for(node);
    if (!compute || node.results().size() != 1) return std::nullopt;
    const Type& type = node.result().type();
    auto shape = type.has_rank() ? constants(type.shape()) : std::nullopt;
    auto size = shape ? type.bytes().constant() : std::nullopt;
    if (!size || *size > largest_result || size_of(type.dtype()) == 0) return std::nullopt;

    Operands operands;
    if (!operands.read(program, node)) return std::nullopt;
    std::vector<std::string> results(1, std::string(static_cast<size_t>(*size), '\0'));
    Result result{cxx_name(type.dtype()), size_of(type.dtype()), std::move(*shape),
                  reinterpret_cast<std::byte*>(results[0].data())};
    if (!compute(node, operands, result)) return std::nullopt;
    return results;
}

} // namespace cuvil
