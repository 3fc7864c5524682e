#include "import/onnx/window.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil::onnx {
namespace {

constexpr int64_t most = int64_t{1} << 30; // keeps products of two within 64 bits

// With ceil_mode a last window that hangs over the padding counts, unless it would start behind the input.
void round_up(Window& window, size_t i, const Dim& size, int64_t extent) {
    int64_t stride = window.strides[i];
    Dim padded = size + window.low[i] + window.high[i];
    Dim all = Dim::ceildiv(padded - extent, stride) + 1, starting_inside = Dim::ceildiv(size + window.low[i], stride);
    auto high = window.high[i].constant();
    bool all_start_inside = high && extent >= *high + stride;
    Dim count = Dim::max(all_start_inside ? all : Dim::min(all, starting_inside), 0);
    auto overhang = ((count - 1) * Dim(stride) + extent - padded).constant();
    window.extra[i] = overhang ? std::max<int64_t>(*overhang, 0) : stride - 1;
    Dim floored = Dim::max(Dim::floordiv(padded + window.extra[i] - extent, stride) + 1, 0);
    if (floored != count) window.outputs[i] = count;
}

} // namespace

std::vector<int64_t> read_integers(const Node& node, std::string_view name, size_t count, int64_t least,
                                   int64_t fallback) {
    std::vector<int64_t> values = node.integers(name).value_or(std::vector<int64_t>(count, fallback));
    bool is_good = values.size() == count;
    for (int64_t v : values) is_good = is_good && v >= least && v <= most;
    if (!is_good) bad_attribute(fmt::format("attribute \"{}\" needs {} integers of at least {}", name, count, least));
    return values;
}

int64_t read_groups(const Node& node, std::string_view name) {
    int64_t groups = node.integer(name, 1);
    if (groups < 1 || groups > most) bad_attribute(fmt::format("attribute \"{}\" is {}", name, groups));
    return groups;
}

std::vector<int64_t> weight_sizes(const Node& node) {
    const Type& weights = node.type(1);
    std::vector<int64_t> sizes;
    for (const Dim& d : weights.shape()) {
        auto size = d.constant();
        if (!size || *size < 0 || *size > most)
            node.unsupported(fmt::format("weights whose sizes are not fixed, {}", weights.text()));
        sizes.push_back(*size);
    }
    return sizes;
}

bool pads_to_same(const Node& node) {
    std::string_view mode = node.text("auto_pad", "NOTSET");
    bool is_same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (!is_same && mode != "NOTSET" && mode != "VALID" && !mode.empty())
        bad_attribute("attribute \"auto_pad\" is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID");
    return is_same;
}

bool Window::has_fixed_padding() const {
    auto is_fixed = [](const Dim& d) { return d.constant().has_value(); };
    return std::all_of(low.begin(), low.end(), is_fixed) && std::all_of(high.begin(), high.end(), is_fixed);
}

std::vector<int64_t> Window::pads() const {
    std::vector<int64_t> pads;
    for (const Dim& d : low) pads.push_back(d.constant().value());
    for (size_t i = 0; i < high.size(); i++) pads.push_back(high[i].constant().value() + extra[i]);
    return pads;
}

Window read_window(const Node& node, const std::vector<int64_t>* kernel) {
    const Type& x = node.type(0);
    if (x.rank() < 3) throw ImportError("shape-mismatch", fmt::format("{} has no axes for a window", x.text()));
    if (x.rank() > 5) node.unsupported(fmt::format("windows over {} axes", x.rank() - 2));
    auto axes = static_cast<size_t>(x.rank() - 2);

    Window window;
    if (!kernel && !node.has_attribute("kernel_shape")) bad_attribute("attribute \"kernel_shape\" is missing");
    window.kernel = node.has_attribute("kernel_shape") ? read_integers(node, "kernel_shape", axes, 1, 1) : *kernel;
    if (kernel && *kernel != window.kernel) bad_attribute("attribute \"kernel_shape\" contradicts the weights");
    window.strides = read_integers(node, "strides", axes, 1, 1);
    window.dilations = read_integers(node, "dilations", axes, 1, 1);
    window.low.assign(axes, 0);
    window.high.assign(axes, 0);
    window.extra.assign(axes, 0);
    window.outputs.assign(axes, std::nullopt);

    std::string_view mode = node.text("auto_pad", "NOTSET");
    bool is_same = pads_to_same(node);
    std::vector<int64_t> pads = read_integers(node, "pads", 2 * axes, 0, 0);
    for (size_t i = 0; i < axes; i++) {
        const Dim& size = x.shape()[2 + i];
        int64_t extent = window.dilations[i] * (window.kernel[i] - 1) + 1;
        if (is_same) {
            Dim total =
                Dim::max((Dim::ceildiv(size, window.strides[i]) - 1) * Dim(window.strides[i]) + extent - size, 0);
            Dim half = Dim::floordiv(total, 2);
            window.low[i] = mode == "SAME_UPPER" ? half : total - half;
            window.high[i] = total - window.low[i];
        } else {
            if (mode != "VALID") {
                window.low[i] = pads[i];
                window.high[i] = pads[axes + i];
            }
            bool rounds_up = node.has_attribute("ceil_mode") && node.integer("ceil_mode") != 0;
            if (rounds_up) round_up(window, i, size, extent);
            int64_t beyond = rounds_up ? window.strides[i] - 1 : 0; // of the padding, for the only window
            node.build.require_at_least(size + window.low[i] + window.high[i] - (extent - beyond), 0,
                                        fmt::format("axis {} with its padding, less the window of {},", 2 + i, extent));
        }
    }
    return window;
}

Value& make_two_dimensional(GraphBuilder& build, Value& x) {
    return x.type().rank() == 3 ? build.unsqueeze(x, {2}) : x;
}

void make_two_dimensional(Window& window) {
    if (window.kernel.size() >= 2) return;
    window.kernel.insert(window.kernel.begin(), 1);
    window.strides.insert(window.strides.begin(), 1);
    window.dilations.insert(window.dilations.begin(), 1);
    window.low.insert(window.low.begin(), 0);
    window.high.insert(window.high.begin(), 0);
    window.extra.insert(window.extra.begin(), 0);
    window.outputs.insert(window.outputs.begin(), std::nullopt);
}

Value& pad_explicitly(GraphBuilder& build, Value& x, Window& window, double value) {
    Shape low{0, 0}, high{0, 0};
    low.insert(low.end(), window.low.begin(), window.low.end());
    high.insert(high.end(), window.high.begin(), window.high.end());
    window.low.assign(window.low.size(), 0);
    window.high.assign(window.high.size(), 0);
    return build.pad(x, low, high, value);
}

Value& finish_windows(GraphBuilder& build, Value& result, const Window& window, int64_t rank) {
    Value* cut = &result;
    for (size_t i = 0; i < window.outputs.size(); i++)
        if (window.outputs[i]) cut = &build.slice(*cut, static_cast<int64_t>(2 + i), 0, *window.outputs[i]);
    return rank == 3 ? build.squeeze(*cut, {2}) : *cut;
}

} // namespace cuvil::onnx
