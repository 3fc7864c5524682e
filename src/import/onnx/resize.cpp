// Resize and Upsample.
#include "import/onnx/resample.hpp"
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace cuvil::onnx {
namespace {

class Resize {
public:
    explicit Resize(Node& node) : node_(node), x_(&node.input(0)) {
        for (int64_t i = 0; i < x_->type().rank(); i++) axes_.push_back({.axis = i, .in = x_->type().dim(i)});
    }

    // Restricts the axes that scales, sizes and regions speak of.
    void choose_axes() {
        auto given = node_.integers("axes");
        if (!given) return;
        std::vector<ResampledAxis> chosen;
        for (int64_t axis : *given) {
            chosen.push_back(axes_[static_cast<size_t>(normal_axis(axis, x_->type().rank()))]);
            chosen.back().place = static_cast<int64_t>(chosen.size()) - 1;
        }
        (void)normal_axes(*given, x_->type().rank()); // throws where one stands twice
        axes_ = std::move(chosen);
    }

    void set_scales(Value& scales) {
        auto known = node_.build.constant_reals(scales);
        if (known)
            set_known_scales(*known);
        else
            set_scales_from_data(scales);
        auto is_known = [](const ResampledAxis& a) { return a.is_whole() || (a.start && a.end && a.in.constant()); };
        if (roi_ && !(known && std::ranges::all_of(axes_, is_known))) cut_lengths_from_data(scales);
    }

    void set_known_scales(const std::vector<double>& scales) {
        expect(scales.size(), "scales");
        for (size_t i = 0; i < axes_.size(); i++) {
            ResampledAxis& a = axes_[i];
            if (!(scales[i] > 0) || scales[i] > static_cast<double>(most_of_scale) ||
                scales[i] < 1.0 / static_cast<double>(most_of_scale))
                throw ImportError("bad-attribute", fmt::format("scale {} of axis {}", scales[i], a.axis));
            Fraction f = simplest_fraction(scales[i]);
            a.scale = scales[i], a.above = f.above, a.below = f.below;
            a.out = Dim::floordiv(a.in * f.above, f.below);
            auto in = a.in.constant();
            if (a.is_whole() || !in || !a.start || !a.end) continue;
            double length = static_cast<double>(*in) * (*a.end - *a.start) * a.scale;
            if (!(length >= 0 && length <= static_cast<double>(INT32_MAX)))
                throw ImportError("bad-attribute", fmt::format("axis {} would get the length {}", a.axis, length));
            a.out = static_cast<int64_t>(std::floor(length));
        }
    }

    void set_sizes(std::vector<Dim> sizes, std::string_view policy) {
        expect(sizes.size(), "sizes");
        for (size_t i = 0; i < axes_.size(); i++) {
            ResampledAxis& a = axes_[i];
            auto in = a.in.constant(), out = sizes[i].constant();
            if (in && out && *in == 0 && *out > 0)
                throw ImportError("shape-mismatch",
                                  fmt::format("axis {} of {} has no elements", a.axis, x_->type().text()));
            a.out = a.above = sizes[i], a.below = a.in;
        }
        if (policy != "stretch") keep_aspect_ratio(policy == "not_larger");
    }

    void set_regions(Value& roi) {
        auto count = static_cast<int64_t>(axes_.size());
        if (auto given = checked_count(roi.type().shape()).constant()) expect(static_cast<size_t>(*given / 2), "roi");
        roi_ = &node_.build.reshape(node_.build.cast(roi, DType::F64), {2, count});
        auto known = node_.build.constant_reals(roi);
        for (size_t i = 0; i < axes_.size(); i++) {
            axes_[i].start = known ? std::optional((*known)[i]) : std::nullopt;
            axes_[i].end = known ? std::optional((*known)[axes_.size() + i]) : std::nullopt;
        }
    }

    Value& make(std::string_view coordinates, Attributes attributes) {
        Shape sizes, numerators, offsets, denominators;
        std::vector<double> scales;
        std::vector<int64_t> axes;
        std::vector<Dim> places;
        std::ranges::sort(axes_, {}, &ResampledAxis::axis);
        for (ResampledAxis& a : axes_) {
            bool is_kept = a.in == a.out && a.above == a.below && a.is_whole();
            if (is_kept) continue;
            set_coordinates(a, coordinates);
            axes.push_back(a.axis), sizes.push_back(a.out), places.emplace_back(a.place);
            numerators.push_back(a.numerator), offsets.push_back(a.offset), denominators.push_back(a.denominator);
            scales.push_back(a.scale);
        }
        if (axes.empty()) return *x_;
        if (coordinates == "tf_crop_and_resize") attributes["extrapolate"] = true;
        if (roi_) {
            auto count = static_cast<int64_t>(places.size());
            roi_ = &node_.build.gather(*roi_, node_.build.dims(places, {count}), 1);
        }
        if (std::ranges::any_of(scales, [](double s) { return s != 0; })) attributes["scales"] = scales;
        attributes["axes"] = axes, attributes["sizes"] = sizes, attributes["numerators"] = numerators;
        attributes["offsets"] = offsets, attributes["denominators"] = denominators;
        return interpolate(attributes);
    }

private:
    void expect(size_t count, std::string_view what) const {
        if (count != axes_.size())
            throw ImportError("bad-attribute", fmt::format("{} for {} axes instead of {}", what, count, axes_.size()));
    }

    // Scales that only data shows become the fractions that constants become.
    void set_scales_from_data(Value& given) {
        GraphBuilder& build = node_.build;
        auto count = static_cast<int64_t>(axes_.size());
        if (given.type().rank() != 1) expect(0, "scales");
        Value& scales = build.fit(given, {count});
        Value& fractions = build.make("simplest_fractions", {&build.cast(scales, DType::F32)});
        auto part = [&](int64_t i) -> Value& { return build.squeeze(build.slice(fractions, 0, i, 1), {0}); };
        Value &above = part(0), &below = part(1);
        std::vector<Dim> aboves = build.counts_of(above, "a scale"), belows = build.counts_of(below, "a scale");
        for (const Dim& a : aboves) build.require(Dim::min(a, 1), 1, "a scale is not between 2^-24 and 2^24");
        Value& scaled = build.elementwise("mul", {&lengths_of_axes(), &above});
        std::vector<Dim> outs = build.counts_of(build.elementwise("div", {&scaled, &below}), "a size");
        for (size_t i = 0; i < axes_.size(); i++)
            axes_[i].out = outs[i], axes_[i].above = aboves[i], axes_[i].below = belows[i];
    }

    // What comes out of regions.
    void cut_lengths_from_data(Value& scales) {
        GraphBuilder& build = node_.build;
        auto edge = [&](int64_t i) -> Value& { return build.squeeze(build.slice(*roi_, 0, i, 1), {0}); };
        Value& parts = build.elementwise("sub", {&edge(1), &edge(0)});
        Value& taken = build.elementwise("mul", {&build.cast(lengths_of_axes(), DType::F64), &parts});
        Value& factors = build.cast(build.fit(scales, {static_cast<int64_t>(axes_.size())}), DType::F64);
        Value& scaled = build.elementwise("mul", {&taken, &factors});
        Value& whole = build.cast(build.make("floor", {&scaled}), DType::I64);
        std::vector<Dim> outs = build.counts_of(whole, "a size");
        for (size_t i = 0; i < axes_.size(); i++) axes_[i].out = outs[i];
    }

    Value& lengths_of_axes() const {
        std::vector<Dim> lengths;
        for (const ResampledAxis& a : axes_) lengths.push_back(a.in);
        return node_.build.dims(lengths, {static_cast<int64_t>(lengths.size())});
    }

    // One scale for all axes: the smallest that a size asks for, or the largest. As fractions with one denominator.
    void keep_aspect_ratio(bool not_larger) {
        Dim above, below = 1;
        for (size_t i = 0; i < axes_.size(); i++) {
            Dim own = axes_[i].out;
            for (size_t k = 0; k < axes_.size(); k++)
                if (k != i) own = own * axes_[k].in;
            above = i == 0 ? own : not_larger ? Dim::min(above, own) : Dim::max(above, own);
            below = below * axes_[i].in;
        }
        below = Dim::max(below, 1);
        if (auto a = above.constant(), b = below.constant(); a && b && *a > 0) {
            int64_t common = std::gcd(*a, *b);
            above = *a / common, below = *b / common;
        }
        for (ResampledAxis& a : axes_) {
            a.out = Dim::floordiv(2 * a.in * above + below, 2 * below);
            a.above = above, a.below = below;
        }
    }

    // Integers are interpolated as floats.
    Value& interpolate(const Attributes& attributes) {
        DType dtype = x_->type().dtype(), wide = size_of(dtype) <= 2 ? DType::F32 : DType::F64;
        bool copies = std::get<std::string>(attributes.at("mode")) == "nearest" || is_floating(dtype);
        std::vector<Value*> operands{copies ? x_ : &node_.build.cast(*x_, wide)};
        if (roi_) operands.push_back(roi_);
        return node_.build.cast(node_.build.make("resize", operands, attributes), dtype);
    }

    Node& node_;
    Value* x_;
    Value* roi_ = nullptr; // starts and ends, [2, axes]; nullptr: all there is
    std::vector<ResampledAxis> axes_;
};

bool has_elements(const Node& node, size_t i) {
    return node.has_input(i) && !checked_count(node.type(i).shape()).is(0);
}

Values resize(Node& node) {
    Resize resize(node);
    std::string_view mode = node.text("mode", "nearest"), rounding = node.text("nearest_mode", "round_prefer_floor");
    std::string_view coordinates = node.text("coordinate_transformation_mode", "half_pixel");
    auto expect = [](std::string_view what, std::string_view word, std::initializer_list<std::string_view> words) {
        if (std::ranges::find(words, word) == words.end())
            bad_attribute(fmt::format("attribute \"{}\" is \"{}\"", what, word));
    };
    expect("mode", mode, {"nearest", "linear", "cubic"});
    expect("nearest_mode", rounding, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
    expect("coordinate_transformation_mode", coordinates,
           {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
            "tf_half_pixel_for_nn", "tf_crop_and_resize"});
    std::string_view policy = node.text("keep_aspect_ratio_policy", "stretch");
    expect("keep_aspect_ratio_policy", policy, {"stretch", "not_larger", "not_smaller"});

    resize.choose_axes();
    bool crops = coordinates == "tf_crop_and_resize";
    if (crops && has_elements(node, 1)) resize.set_regions(node.input(1));
    bool by_scale = has_elements(node, 2), by_size = has_elements(node, 3);
    if (by_scale == by_size) bad_attribute("either scales or sizes must be given");
    if (!by_scale)
        resize.set_sizes(node.counts(3, "a size"), policy);
    else
        resize.set_scales(node.input(2));

    bool is_nearest = mode == "nearest";
    std::string_view nearest = rounding == "round_prefer_floor"  ? "half_down"
                               : rounding == "round_prefer_ceil" ? "half_up"
                                                                 : rounding;
    return {&resize.make(coordinates, {{"mode", std::string(mode)},
                                       {"nearest", std::string(nearest)},
                                       {"cubic", node.real("cubic_coeff_a", -0.75)},
                                       {"exclude_outside", !is_nearest && node.integer("exclude_outside", 0) != 0},
                                       {"antialias", !is_nearest && node.integer("antialias", 0) != 0},
                                       {"outside", node.real("extrapolation_value", 0)}})};
}

// The first definitions say nothing of coordinates: they are x / scale, and the nearest element is the one before it,
// or behind it where the axis becomes shorter, as the tests of the definition have it.
Values resize_by_scales(Node& node) {
    std::string_view mode = node.text("mode", "nearest");
    if (mode != "nearest" && mode != "linear" && mode != "bilinear")
        bad_attribute(fmt::format("attribute \"mode\" is \"{}\"", mode));
    bool is_nearest = mode == "nearest";
    Resize resize(node);
    if (node.opset >= 9) {
        resize.set_scales(node.input(1));
    } else if (node.opset < 7) { // images only
        resize.set_known_scales({1, 1, node.real("height_scale"), node.real("width_scale")});
    } else {
        auto given = node.reals("scales");
        if (!given) bad_attribute("attribute \"scales\" is missing");
        resize.set_known_scales({given->begin(), given->end()});
    }
    return {
        &resize.make(is_nearest ? "one_neighbor" : "asymmetric",
                     {{"mode", std::string(is_nearest ? "nearest" : "linear")}, {"nearest", std::string("floor")}})};
}

const Row rows[] = {
    {"Resize", 10, 10, resize_by_scales, 2, 2, "mode", "resize"},
    {"Resize", 11, 17, resize, 1, 4,
     "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode nearest_mode", "resize"},
    {"Resize", 18, newest, resize, 1, 4,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
     "keep_aspect_ratio_policy mode nearest_mode",
     "resize"},
    {"Upsample", 1, 6, resize_by_scales, 1, 1, "height_scale mode width_scale", "resize"},
    {"Upsample", 7, 8, resize_by_scales, 1, 1, "mode scales", "resize"},
    {"Upsample", 9, 9, resize_by_scales, 2, 2, "mode", "resize"},
};

} // namespace

std::span<const Row> resize_rows() { return rows; }

} // namespace cuvil::onnx
