// Control flow: regions that run by a condition or again and again. Regions see the values around them.
#include "ops/families.hpp"
#include "ops/infer.hpp"

namespace cuvil {
namespace {

const OpDef defs[] = {
    {
        .name = "if",
        .summary = "The results of region `then` where the condition is true, else of region `else`",
        .operands = {{"condition", Accepts::Bool}},
        .results = {"..."},
        .regions = {"then", "else"},
        .lower = control,
    },
    {
        .name = "loop",
        .summary = "Runs the body at most `trips` times while the condition holds. The body takes the iteration "
                   "number, the condition "
                   "and the carried values; it returns the next condition, the next carried values, and one slice for "
                   "each stacked result. "
                   "`count` names the number of iterations that ran",
        .operands = {{"trips", Accepts::Index, OperandDef::Optional},
                     {"condition", Accepts::Bool, OperandDef::Optional},
                     {"carried", Accepts::Any, OperandDef::Variadic}},
        .attributes = {{"count", AttributeKind::String}},
        .results = {"..."},
        .regions = {"body"},
        .lower = control,
    },
};

} // namespace

std::span<const OpDef> control_ops() { return defs; }

} // namespace cuvil
