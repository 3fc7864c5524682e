// Nodes that scale and shift each channel (axis 1) by constants.
#pragma once

#include "ir/program.hpp"

#include <optional>
#include <vector>

namespace cuvil {

// y = x * scale + shift, one pair for each channel. Computed in f64 from the constants of the model.
struct ChannelAffine {
    std::vector<double> scale, shift;
};

// What a batch_norm does to x, if its other operands are constants and all factors are finite.
std::optional<ChannelAffine> affine_of_batch_norm(const OpNode& node, const Program& program);

// What an `add` or `mul` does to its operand `x`, if the other one is a constant with one element for each channel.
std::optional<ChannelAffine> affine_of_binary(const OpNode& node, size_t x, const Program& program);

} // namespace cuvil
