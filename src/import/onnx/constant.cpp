// Values that the model itself holds, and those made of sizes.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cuvil::onnx {
namespace {

constexpr int64_t most_range = int64_t{1} << 24;

template <class T> std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Value& strings(Node& node, const std::vector<std::string_view>& values, Shape shape) {
    std::string bytes;
    for (std::string_view value : values) {
        uint64_t length = value.size();
        bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
        bytes.append(value);
    }
    return node.build.rewriter().constant(Type::tensor(DType::String, std::move(shape)), std::move(bytes));
}

Values constant(Node& node) {
    Rewriter& rewriter = node.build.rewriter();
    if (const TensorProto* value = node.tensor("value")) return {&node.constant(*value, "attribute \"value\"")};
    if (node.has_attribute("value_float"))
        return {&rewriter.scalar_constant(DType::F32, static_cast<float>(node.real("value_float")))};
    if (node.has_attribute("value_int")) return {&rewriter.scalar_constant(DType::I64, node.integer("value_int"))};
    if (node.has_attribute("value_string")) return {&strings(node, {node.text("value_string", "")}, {})};
    if (auto values = node.reals("value_floats"))
        return {
            &rewriter.constant(Type::tensor(DType::F32, {static_cast<int64_t>(values->size())}), bytes_of(*values))};
    if (auto values = node.integers("value_ints"))
        return {&rewriter.constant(*values, {static_cast<int64_t>(values->size())})};
    if (auto values = node.texts("value_strings"))
        return {&strings(node, *values, {static_cast<int64_t>(values->size())})};
    if (node.has_attribute("sparse_value")) node.unsupported("sparse_value");
    bad_attribute("it has no value");
}

Values constant_of_shape(Node& node) {
    GraphBuilder& build = node.build;
    const TensorProto* given = node.tensor("value");
    Value& value = given ? node.constant(*given, "attribute \"value\"") : build.scalar(DType::F32, 0);
    if (!checked_count(value.type().shape()).is(1)) bad_attribute("attribute \"value\" does not have one element");
    return {&build.broadcast_to(build.reshape(value, {}), node.sizes(0))};
}

Values shape(Node& node) {
    const Shape& sizes = node.type(0).shape();
    auto rank = static_cast<int64_t>(sizes.size());
    auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
    int64_t start = node.has_attribute("start") ? clamped(node.integer("start")) : 0;
    int64_t end = node.has_attribute("end") ? clamped(node.integer("end")) : rank;
    Shape part(sizes.begin() + start, sizes.begin() + std::max(start, end));
    auto count = static_cast<int64_t>(part.size());
    return {&node.build.dims(part, {count})};
}

Values size(Node& node) { return {&node.build.dims({checked_count(node.type(0).shape())}, {})}; }

// start, start + delta, ... below limit, when all three are known.
Values range(Node& node) {
    GraphBuilder& build = node.build;
    DType dtype = node.type(0).dtype();
    for (size_t i = 0; i < 3; i++) {
        if (node.type(i).dtype() != dtype) throw ImportError("type-mismatch", "the operands have different types");
        if (!checked_count(node.type(i).shape()).is(1))
            throw ImportError("shape-mismatch", "the operands must be scalars");
    }
    if (is_integer(dtype)) {
        int64_t start = 0, limit = 0, delta = 0, span = 0;
        if (dtype == DType::I64 || dtype == DType::I32) {
            start = node.numbers(0).at(0);
            limit = node.numbers(1).at(0);
            delta = node.numbers(2).at(0);
        } else {
            node.unsupported("elements of type " + std::string(name(dtype)));
        }
        if (delta == 0) throw ImportError("bad-node", "the step is 0");
        if (__builtin_sub_overflow(limit, start, &span) || delta == INT64_MIN) throw DimOverflow();
        int64_t count = std::max<int64_t>(Dim::ceildiv(span, delta).constant().value(), 0);
        if (count > most_range) node.unsupported(fmt::format("{} elements", count));
        std::vector<int64_t> values;
        for (int64_t i = 0; i < count; i++) values.push_back(start + i * delta);
        return {&build.cast(build.rewriter().constant(values, {count}), dtype)};
    }
    auto start = build.constant_number(node.input(0)), limit = build.constant_number(node.input(1)),
         delta = build.constant_number(node.input(2));
    if (!start || !limit || !delta) throw ImportError("data-dependent-shape", "the operands are no constants");
    if (*delta == 0) throw ImportError("bad-node", "the step is 0");
    double count = std::max(std::ceil((*limit - *start) / *delta), 0.0);
    if (!(count <= static_cast<double>(most_range))) node.unsupported(fmt::format("{} elements", count));
    Shape shape{static_cast<int64_t>(count)};
    if (dtype == DType::F64) {
        std::vector<double> values;
        for (int64_t i = 0; i < static_cast<int64_t>(count); i++)
            values.push_back(*start + static_cast<double>(i) * *delta);
        return {&build.rewriter().constant(Type::tensor(dtype, shape), bytes_of(values))};
    }
    std::vector<float> values;
    for (int64_t i = 0; i < static_cast<int64_t>(count); i++)
        values.push_back(static_cast<float>(*start) + static_cast<float>(i) * static_cast<float>(*delta));
    return {&build.cast(build.rewriter().constant(Type::tensor(DType::F32, shape), bytes_of(values)), dtype)};
}

Values identity(Node& node) { return {&node.input(0)}; }

const Row rows[] = {
    {"Constant", 1, 10, constant, 0, 0, "value", "constant"},
    {"Constant", 11, 11, constant, 0, 0, "value sparse_value", "constant"},
    {"Constant", 12, newest, constant, 0, 0,
     "value sparse_value value_float value_floats value_int value_ints value_string value_strings", "constant"},
    {"ConstantOfShape", 9, newest, constant_of_shape, 1, 1, "value", "broadcast"},
    {"Identity", 1, newest, identity, 1, 1, "", ""},
    {"Range", 11, 26, range, 3, 3, "", "constant"},
    {"Range", 27, newest, range, 3, 3, "stash_type", "constant"},
    {"Shape", 1, 14, shape, 1, 1, "", "dims"},
    {"Shape", 15, newest, shape, 1, 1, "start end", "dims"},
    {"Size", 1, newest, size, 1, 1, "", "dims"},
};

} // namespace

std::span<const Row> constant_rows() { return rows; }

} // namespace cuvil::onnx
