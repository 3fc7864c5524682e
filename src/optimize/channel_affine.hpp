// Nodes that scale and shift each channel by constants.
#pragma once

#include "ir/program.hpp"

#include <optional>
#include <vector>

namespace cuvil {

// y = x * scale + shift, one pair for each index of an axis. Computed in f64 from the constants of the model.
struct ChannelAffine {
    std::vector<double> scale, shift;
};

// What a batch_norm does to x along axis 1, if its other operands are constants and all factors are finite.
std::optional<ChannelAffine> affine_of_batch_norm(const OpNode& node, const Program& program);

// What an `add`, `mul`, `sub` or `div` does to its other operand (of the last two the left one), if `constant` is a
// constant that differs along `axis` of the result only, and all factors are finite.
std::optional<ChannelAffine> affine_of_binary(const OpNode& node, const Value& constant, int64_t axis,
                                              const Program& program);

} // namespace cuvil
