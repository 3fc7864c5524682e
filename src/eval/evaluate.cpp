#include "eval/evaluate.hpp"

#include "eval/compute.hpp"

#include <algorithm>
#include <cstring>

namespace cuvil {
namespace {

using evaluation::Array;
using evaluation::Result;
using Ints = std::vector<int64_t>;

constexpr int64_t largest_result = int64_t{256} << 20; // bytes
// Multiplications of one node; some seconds.
constexpr int64_t most_work = int64_t{1} << 30;

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

    std::span<const Array> all() const { return arrays_; }

private:
    bool read_one(const Program& program, const Value& value, size_t i) {
        auto bytes = constant_bytes(program, value);
        auto shape = bytes && value.type().has_rank() ? evaluation::values_of(value.type().shape(), {}) : std::nullopt;
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

// False as well where the product is too large to count.
bool is_little_work(const OpNode& node, std::span<const Array> x, const Result& y) {
    Ints factors;
    if (node.op() == "matmul") factors = {x[0].shape.back()};
    if (node.op() == "conv2d") factors = {x[1].shape.begin() + 1, x[1].shape.end()};
    if (node.op() == "max_pool2d" || node.op() == "avg_pool2d") factors = node.get<Ints>("kernel");
    int64_t work = y.count();
    for (int64_t factor : factors)
        if (__builtin_mul_overflow(work, factor, &work)) return false;
    return factors.empty() || work <= most_work;
}

} // namespace

std::optional<std::vector<std::string>> evaluate(const Program& program, const OpNode& node) {
    auto row = evaluation::row_of(node.def());
    if (!row || !row->folds || node.results().size() != 1) return std::nullopt;
    const Type& type = node.result().type();
    auto shape = type.has_rank() ? evaluation::values_of(type.shape(), {}) : std::nullopt;
    auto size = shape ? type.bytes().constant() : std::nullopt;
    if (!size || *size > largest_result || size_of(type.dtype()) == 0) return std::nullopt;

    Operands operands;
    if (!operands.read(program, node)) return std::nullopt;
    std::vector<std::string> results(1, std::string(static_cast<size_t>(*size), '\0'));
    Result result{cxx_name(type.dtype()), size_of(type.dtype()), std::move(*shape),
                  reinterpret_cast<std::byte*>(results[0].data())};
    if (!is_little_work(node, operands.all(), result)) return std::nullopt;
    if (!row->compute({node, operands.all(), {&result, 1}, {}})) return std::nullopt;
    return results;
}

} // namespace cuvil
