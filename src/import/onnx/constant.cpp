// Values that the model itself holds, and those made of sizes.
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cuvil::onnx {
namespace {

constexpr int64_t most_range = int64_t{1} << 24;
constexpr int64_t most_sizes = 64; // whose values are followed

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
    return {&build.broadcast_to(build.reshape(value, {}), node.counts(0, "a size"))};
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

// ceil((limit - start) / delta), at least 0, where all three are known.
std::optional<Dim> known_count_of_range(Node& node) {
    std::vector<Dim> elements;
    std::vector<double> numbers;
    for (size_t i = 0; i < 3; i++) {
        if (const auto& known = node.input(i).elements()) elements.push_back(known->at(0));
        if (auto number = node.build.constant_number(node.input(i))) numbers.push_back(*number);
    }
    if (elements.size() == 3 && elements[2].constant() && !elements[2].is(INT64_MIN))
        return Dim::max(Dim::ceildiv(elements[1] - elements[0], elements[2]), 0);
    if (numbers.size() < 3 || !is_floating(node.type(0).dtype())) return std::nullopt;
    double span = numbers[1] - numbers[0];
    if (node.type(0).dtype() == DType::F32) span = static_cast<float>(numbers[1]) - static_cast<float>(numbers[0]);
    double count = std::max(std::ceil(span / numbers[2]), 0.0);
    if (!(count <= static_cast<double>(most_range))) node.unsupported(fmt::format("{} elements", count));
    return static_cast<int64_t>(count);
}

// The same as a tensor.
Value& count_of_range(GraphBuilder& build, Value& start, Value& limit, Value& delta) {
    Value& span = build.elementwise("sub", {&limit, &start});
    if (is_floating(start.type().dtype())) {
        Value& steps = build.elementwise("div", {&build.cast(span, DType::F64), &build.cast(delta, DType::F64)});
        return build.cast(build.make("ceil", {&steps}), DType::I64);
    }
    // Rounded away from the start: 1 + (span - sign) / delta where the range goes the way of delta.
    auto both = [&](std::string_view comparison) -> Value& {
        return build.elementwise("logical_and",
                                 {&build.elementwise(comparison, span, 0), &build.elementwise(comparison, delta, 0)});
    };
    Value& goes_on = build.elementwise("logical_or", {&both("greater"), &both("less")});
    Value& before =
        build.elementwise("div", {&build.elementwise("sub", {&span, &build.make("sign", {&delta})}), &delta});
    return build.cast(build.make("where", {&goes_on, &build.elementwise("add", before, 1), &build.scalar(start, 0)}),
                      DType::I64);
}

// The elements of a short range of sizes.
std::optional<Shape> known_range(const Value& start, const Value& delta, const Dim& count) {
    auto length = count.constant();
    if (!length || *length > most_sizes || !start.elements() || !delta.elements()) return std::nullopt;
    Shape sizes;
    for (int64_t i = 0; i < *length; i++) sizes.push_back(start.elements()->at(0) + delta.elements()->at(0) * i);
    return sizes;
}

// start, start + delta, ... below limit.
Values range(Node& node) {
    GraphBuilder& build = node.build;
    DType dtype = node.type(0).dtype();
    std::vector<Value*> operands;
    for (size_t i = 0; i < 3; i++) {
        if (node.type(i).dtype() != dtype) throw ImportError("type-mismatch", "the operands have different types");
        if (!checked_count(node.type(i).shape()).is(1))
            throw ImportError("shape-mismatch", "the operands must be scalars");
        operands.push_back(&build.reshape(node.input(i), {}));
    }
    if (build.constant_number(*operands[2]) == 0) throw ImportError("bad-node", "the step is 0");
    std::optional<Dim> count = known_count_of_range(node);
    if (!count) {
        Value& counted = count_of_range(build, *operands[0], *operands[1], *operands[2]);
        count = build.counts_of(build.elementwise("maximum", counted, 0), "the number of elements").at(0);
    }
    if (std::optional<Shape> sizes = known_range(*operands[0], *operands[2], *count))
        return {&build.dims(*sizes, {*count}, dtype)};
    return {&build.range(*operands[0], *operands[2], *count)};
}

Values identity(Node& node) { return {&node.input(0)}; }

const Row rows[] = {
    {"Constant", 1, 10, constant, 0, 0, "value", "constant"},
    {"Constant", 11, 11, constant, 0, 0, "value sparse_value", "constant"},
    {"Constant", 12, newest, constant, 0, 0,
     "value sparse_value value_float value_floats value_int value_ints value_string value_strings", "constant"},
    {"ConstantOfShape", 9, newest, constant_of_shape, 1, 1, "value", "broadcast"},
    {"Identity", 1, newest, identity, 1, 1, "", "", 1},
    {"Range", 11, 26, range, 3, 3, "", "range"},
    {"Range", 27, newest, range, 3, 3, "stash_type", "range"},
    {"Shape", 1, 14, shape, 1, 1, "", "dims"},
    {"Shape", 15, newest, shape, 1, 1, "start end", "dims"},
    {"Size", 1, newest, size, 1, 1, "", "dims"},
};

} // namespace

std::span<const Row> constant_rows() { return rows; }

} // namespace cuvil::onnx
