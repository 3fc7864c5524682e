// The families of the op table, one source file each.
#pragma once

#include "ir/op_def.hpp"

#include <span>

namespace cuvil {

std::span<const OpDef> source_ops();
std::span<const OpDef> arithmetic_ops();
std::span<const OpDef> elementary_ops();
std::span<const OpDef> activation_ops();
std::span<const OpDef> logic_ops();
std::span<const OpDef> linear_ops();
std::span<const OpDef> convolution_ops();
std::span<const OpDef> pooling_ops();
std::span<const OpDef> recurrent_ops();
std::span<const OpDef> resize_ops();
std::span<const OpDef> sampling_ops();
std::span<const OpDef> reduction_ops();
std::span<const OpDef> normalization_ops();
std::span<const OpDef> movement_ops();
std::span<const OpDef> indexing_ops();
std::span<const OpDef> order_ops();
std::span<const OpDef> control_ops();

} // namespace cuvil
