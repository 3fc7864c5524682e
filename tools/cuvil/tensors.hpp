// Values of runs and files as the tensors that are compared.
#pragma once

#include "cuvil/cuvil.h"
#include "eval/compare.hpp"
#include "npy.hpp"

namespace cuvil::cli {

using evaluation::Tensor;

// Copies of the elements, without the gaps that they may have. Throws InputError for a list.
Tensor tensor_of(const cuvil_value& value);
Tensor tensor_of(const Array& array);

} // namespace cuvil::cli
