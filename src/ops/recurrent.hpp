// The activations that recurrent layers may have.
#pragma once

#include <string_view>

namespace cuvil {

// The C++ expression over kernels/math.hpp of v, a vector; alpha and beta are such vectors, too. Empty: there is none.
std::string_view recurrent_activation(std::string_view name);

} // namespace cuvil
