// Values without operands, and the end of a region.
#include "ops/families.hpp"
#include "ops/infer.hpp"

#include <cstring>
#include <string>

namespace cuvil {
namespace {

// Integers of a small constant are known as dims, so that shape arithmetic folds away.
void infer_constant(Inference& in) {
    const Type& type = in.node().result().type();
    if (!type.is_tensor() || (type.dtype() != DType::I64 && type.dtype() != DType::I32)) return;
    const std::string& bytes = *in.node().get<Data>("value").bytes;
    std::vector<Dim> elements;
    for (size_t at = 0; at < bytes.size(); at += size_of(type.dtype())) {
        int64_t wide = 0;
        int32_t narrow = 0;
        if (type.dtype() == DType::I64)
            std::memcpy(&wide, bytes.data() + at, sizeof wide);
        else
            std::memcpy(&narrow, bytes.data() + at, sizeof narrow);
        elements.emplace_back(type.dtype() == DType::I64 ? wide : narrow);
    }
    in.result_elements(std::move(elements));
}

void infer_dims(Inference& in) {
    const Shape& values = in.node().get<Shape>("values");
    const Type& given = in.node().result().type();
    if (!given.is_tensor()) in.result(Type::tensor(DType::I64, {Dim(static_cast<int64_t>(values.size()))}));
    in.result_elements(values);
}

void infer_range(Inference& in) {
    const Type &start = in.ranked(0), &delta = in.ranked(1);
    const Shape& count = in.node().get<Shape>("size");
    if (start.rank() != 0 || start != delta) in.fail("start and delta must be scalars of one dtype");
    if (count.size() != 1) in.fail("attribute 'size' needs one size");
    in.result(start.with_shape(count));
}

void infer_read_size(Inference& in) {
    const Type& x = in.ranked(0);
    auto count = element_count(x.shape()).constant();
    int64_t at = in.node().get<int64_t>("at");
    if (!count || at < 0 || at >= *count) in.fail(x.text() + " has no element " + std::to_string(at));
}

// Without elements it may stand for an optional that is empty.
void infer_list(Inference& in) {
    const Type& given = in.node().result().type();
    if (in.operand_count() == 0 && given.kind() == Type::Kind::Optional) return in.result(given);
    std::vector<Type> types;
    for (size_t i = 0; i < in.operand_count(); i++) types.push_back(in.type(i));
    in.result(Type::tuple(std::move(types)));
}

void infer_require(Inference& in) {
    const Shape &left = in.node().get<Shape>("left"), &right = in.node().get<Shape>("right");
    if (left.size() != right.size())
        in.fail("attributes 'left' and 'right' have " + std::to_string(left.size()) + " and " +
                std::to_string(right.size()) + " sizes");
}

const OpDef defs[] = {
    {
        .name = "constant",
        .summary = "A small constant, written out in the text.",
        .operands = {},
        .attributes = {{"value", AttributeKind::Data}},
        .infer = infer_constant,
        .traits = pure | source,
    },
    {
        .name = "weight",
        .summary = "An entry of the table of weights, by its name.",
        .operands = {},
        .attributes = {{"name", AttributeKind::String}},
        .traits = pure | source,
    },
    {
        .name = "dims",
        .summary = "Sizes as an integer tensor: what is left of a model's shape arithmetic.",
        .operands = {},
        .attributes = {{"values", AttributeKind::Dims}},
        .infer = infer_dims,
        .lower = kernel("dims"),
    },
    {
        .name = "range",
        .summary = "start, start + delta, start + 2 * delta, ..., `size` of them",
        .operands = {{"start", Accepts::Number}, {"delta", Accepts::Number}},
        .attributes = {{"size", AttributeKind::Dims}},
        .infer = infer_range,
        .lower = kernel("range"),
    },
    {
        .name = "read_size",
        .summary = "Makes element `at` of x known as the size that `count` names: 0 if it is negative; if `negated`, "
                   "that of -x. An element is the difference of the two.",
        .operands = {{"x", Accepts::Index}},
        .attributes = {{"at", AttributeKind::Int},
                       {"count", AttributeKind::String},
                       {"negated", AttributeKind::Bool, false}},
        .results = {},
        .infer = infer_read_size,
        .lower = kernel("read_size"),
    },
    {
        .name = "list",
        .summary = "The operands as one value, of which importers take them again: a list of known length",
        .operands = {{"values", Accepts::Any, OperandDef::Variadic}},
        .infer = infer_list,
    },
    {
        .name = "require",
        .summary = "Fails with `message` unless each size in `left` equals its partner in `right`.",
        .operands = {},
        .attributes = {{"left", AttributeKind::Dims},
                       {"right", AttributeKind::Dims},
                       {"message", AttributeKind::String}},
        .results = {},
        .infer = infer_require,
        .traits = 0,
        .lower = kernel("require"),
    },
    {
        .name = "return",
        .summary = "Ends a region; its operands are the region's results.",
        .operands = {{"values", Accepts::Any, OperandDef::Variadic}},
        .results = {},
        .traits = terminator,
    },
};

} // namespace

std::span<const OpDef> source_ops() { return defs; }

} // namespace cuvil
