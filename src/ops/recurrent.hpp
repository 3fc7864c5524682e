// The activations that recurrent layers may have.
#pragma once

#include <span>
#include <string_view>

namespace cuvil {

// `expression` is C++ over kernels/math.hpp of v, a vector of T; alpha and beta are such vectors, too.
struct RecurrentActivation {
    std::string_view name, expression;
};
std::span<const RecurrentActivation> recurrent_activations();
// Its expression. Empty: there is none of that name.
std::string_view recurrent_activation(std::string_view name);

} // namespace cuvil
