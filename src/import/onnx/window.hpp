// Sliding windows of Conv and the pools: kernel, strides, dilations and padding over the spatial axes, those behind
// batch and channels.
#pragma once

#include "import/onnx/node.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cuvil::onnx {

struct Window {
    std::vector<int64_t> kernel, strides, dilations;
    std::vector<Dim> low, high; // padding before and behind, as the model has it
    std::vector<int64_t> extra; // more padding behind, so that with ceil_mode the last window fits
    std::vector<std::optional<Dim>>
        outputs; // fewer windows than all this padding gives: those that start in it are gone

    bool has_fixed_padding() const;
    // top, left, bottom, right; the padding must be fixed.
    std::vector<int64_t> pads() const;
};

// The window over input 0, which must have one to three spatial axes. `kernel` is that of the weights; pools have it as
// an attribute. An axis that holds no window is refused, here or while running.
Window read_window(const Node& node, const std::vector<int64_t>* kernel);

// The attribute, one integer of `least` to 2^30 for each of `count`, else `fallback` for all.
std::vector<int64_t> read_integers(const Node& node, std::string_view name, size_t count, int64_t least,
                                   int64_t fallback);
// A number of groups, at least 1.
int64_t read_groups(const Node& node, std::string_view name);
// The sizes of the weights, input 1, which must be fixed. Products of two are within 64 bits.
std::vector<int64_t> weight_sizes(const Node& node);
// Whether attribute "auto_pad" is SAME_UPPER or SAME_LOWER; throws if it is no known word.
bool pads_to_same(const Node& node);

// One-dimensional windows become two-dimensional ones over [N,C,1,L].
Value& make_two_dimensional(GraphBuilder& build, Value& x);
void make_two_dimensional(Window& window);

// Pads x with `value` by the model's padding, which leaves the window.
Value& pad_explicitly(GraphBuilder& build, Value& x, Window& window, double value);
// Cuts the result to `outputs` and takes the axis away that make_two_dimensional added.
Value& finish_windows(GraphBuilder& build, Value& result, const Window& window, int64_t rank);

} // namespace cuvil::onnx
