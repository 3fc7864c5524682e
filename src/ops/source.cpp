// Values without operands, and the end of a region.
#include "ops/families.hpp"
#include "ops/infer.hpp"

#include <cstring>

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
        .name = "require",
        .summary = "Fails with `message` unless each size in `left` equals its partner in `right`.",
        .operands = {},
        .attributes = {{"left", AttributeKind::Dims},
                       {"right", AttributeKind::Dims},
                       {"message", AttributeKind::String}},
        .results = {},
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
