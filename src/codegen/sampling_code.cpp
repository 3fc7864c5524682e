// Resampling, and values at places that data gives.
#include "codegen/step_writer.hpp"
#include "ops/views.hpp"

#include <algorithm>

namespace cuvil {
namespace {

class ResizeWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_any();
    void emit_blocked();
    void emit_fractions();

private:
    std::string axis(const Dim& size) const { // one that is not resampled
        return fmt::format("{{.in = {0}, .out = {0}, .is_resized = false}}", this->size(size));
    }
    std::string axis(size_t i) const; // entry i of the attributes
    void declare_mode();
    void declare_regions() {
        if (node_->operand(1)) input("regions", 1);
    }
    // About the multiplications of the step.
    Dim work() const {
        ResizeOp resize(*node_);
        int64_t taps = resize.mode() == "nearest" ? 1 : resize.mode() == "linear" ? 4 : 16;
        return element_count(result_type().shape()) * Dim(resize.antialias() ? 4 * taps : taps);
    }
};

std::string ResizeWriter::axis(size_t i) const {
    ResizeOp resize(*node_);
    auto at = static_cast<size_t>(resize.axes()[i]);
    auto edge = [&](size_t at, std::string_view whole) {
        return resize.regions() ? fmt::format("regions[{}]", at) : std::string(whole);
    };
    std::string in = size(type(0).shape()[at]), out = size(resize.sizes()[i]);
    double scale = resize.scales().empty() ? 0 : resize.scales()[i];
    return fmt::format(
        "{{.in = {}, .out = {}, .numerator = f64({}), .offset = f64({}), .denominator = f64({}), "
        ".start = {}, .end = {}, .scale = {}, .is_resized = true}}",
        in, out, size(resize.numerators()[i]), size(resize.offsets()[i]), size(resize.denominators()[i]), edge(i, "0"),
        edge(resize.axes().size() + i, "1"),
        scale != 0 ? number_text(scale)
                   : fmt::format("f64({}) / f64({})", size(resize.denominators()[i]), size(resize.numerators()[i])));
}

void ResizeWriter::declare_mode() {
    ResizeOp resize(*node_);
    auto word = [](std::string_view name, std::initializer_list<std::pair<std::string_view, std::string_view>> words) {
        return std::ranges::find(words, name, [](const auto& w) { return w.first; })->second;
    };
    out_.line("const ResizeMode mode = {{.resample = Resample::{}, .nearest = Nearest::{}, .cubic = {}, "
              ".exclude_outside = {}, .extrapolate = {}, .outside = {}}};",
              word(resize.mode(), {{"nearest", "Nearest"}, {"linear", "Linear"}, {"cubic", "Cubic"}}),
              word(resize.nearest(),
                   {{"floor", "Floor"}, {"ceil", "Ceil"}, {"half_down", "HalfDown"}, {"half_up", "HalfUp"}}),
              number_text(resize.cubic()), resize.exclude_outside(), resize.extrapolate(),
              number_text(resize.outside()));
}

// Neighbouring axes that keep their sizes are one.
void ResizeWriter::emit_any() {
    ResizeOp resize(*node_);
    std::vector<std::string> axes;
    Dim kept = 1;
    auto add_kept = [&] {
        if (!kept.is(1)) axes.push_back(axis(kept));
        kept = 1;
    };
    for (size_t i = 0; i < type(0).shape().size(); i++) {
        auto found = std::ranges::find(resize.axes(), static_cast<int64_t>(i));
        if (found == resize.axes().end()) {
            kept = kept * type(0).shape()[i];
            continue;
        }
        add_kept();
        axes.push_back(axis(static_cast<size_t>(found - resize.axes().begin())));
    }
    add_kept();
    declare_regions();
    out_.line("const ResizeAxis axes[{}] = {{{}}};", axes.size(), fmt::join(axes, ", "));
    declare_mode();
    bool copies = resize.mode() == "nearest" && !resize.extrapolate();
    std::string t = copies ? copied_type() : std::string(cxx_name(result_type().dtype()));
    input("x", 0);
    output();
    out_.open("f.parallel_ranges(resize_rows(axes), {}, [=](Range rows) {{", size(work()));
    out_.line("resize_any<{0}, {1}>(axes, mode, rows, reinterpret_cast<const {1}*>(x), reinterpret_cast<{1}*>(y));",
              resize.antialias(), t);
    out_.close("});");
}

void ResizeWriter::emit_blocked() {
    ResizeOp resize(*node_);
    const Type &x = type(0), &y = result_type();
    int64_t taps = resize.mode() == "nearest" ? 1 : resize.mode() == "linear" ? 2 : 4;
    std::string axes[2] = {axis(x.dim(2)), axis(x.dim(3))};
    int64_t counts[2] = {1, 1};
    for (size_t i = 0; i < resize.axes().size(); i++) {
        auto at = static_cast<size_t>(resize.axes()[i] - 2);
        axes[at] = axis(i);
        counts[at] = resize.antialias() ? 0 : taps;
    }
    declare_regions();
    out_.line("const ResizeAxis vertical = {}, horizontal = {};", axes[0], axes[1]);
    declare_mode();
    out_.line("const auto xl = {};", blocked(x));
    out_.line("const auto yl = {};", blocked(y));
    input("x", 0);
    output();
    out_.line("constexpr i64 taps = {};", resize.antialias() ? 4 * taps * taps : taps * taps);
    out_.open("f.parallel(resize_tasks({}, yl, taps), {}, [=](i64 task) {{", size(x.dim(0)), size(work()));
    out_.line("resize_blocked_task<{}, {}>(vertical, horizontal, mode, taps, task, x, xl, y, yl);", counts[0],
              counts[1]);
    out_.close("});");
}

void ResizeWriter::emit_fractions() {
    input("x", 0);
    output();
    out_.line("const i64 n = {};", size(type(0).dim(0)));
    out_.line("for (i64 i = 0; i < n; i++) simplest_fraction(x[i], y[i], y[n + i]);");
}

class SamplingWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_grid_sample();
    void emit_regions();
    void emit_deformed_windows();
};

void SamplingWriter::emit_grid_sample() {
    const Type &x = type(0), &y = result_type();
    GridSampleOp sample(*node_);
    size_t axes = x.shape().size() - 2;
    Dim pixels = element_count(y.shape(), 2, y.shape().size());
    auto word = [](std::string text) {
        text[0] = static_cast<char>(text[0] - 'a' + 'A');
        return text;
    };
    out_.line(
        "const Grid<{}> p = {{.channels = {}, .in = {}, .pixels = {}, .mode = GridMode::{}, .outside = Outside::{}, "
        ".aligns_corners = {}}};",
        axes, size(x.dim(1)), sizes_text(c_.plan, Shape(x.shape().begin() + 2, x.shape().end())), size(pixels),
        word(sample.mode()), word(sample.outside()), sample.aligns_corners());
    input("x", 0);
    input("grid", 1);
    output();
    Dim taps = sample.mode() == "nearest" ? 1 : sample.mode() == "linear" ? 8 : 64;
    out_.line("f.parallel_ranges({}, {}, [=](Range pixels) {{ grid_sample(p, pixels, x, grid, y); }});",
              size(x.dim(0) * pixels), size(element_count(y.shape()) * taps));
}

void SamplingWriter::emit_regions() {
    const Type &x = type(0), &y = result_type();
    bool is_align = node_->op() == "roi_align";
    out_.line("const Regions p = {{.images = {}, .channels = {}, .h = {}, .w = {}, .oh = {}, .ow = {}, .scale = {}, "
              ".shift = {}, .samples = {}, .takes_max = {}, .is_enlarged = {}}};",
              size(x.dim(0)), size(x.dim(1)), size(x.dim(2)), size(x.dim(3)), size(y.dim(2)), size(y.dim(3)),
              number_text(node_->get<double>("scale")), number_text(is_align ? node_->get<double>("shift") : 0),
              is_align ? node_->get<int64_t>("samples") : 0, !is_align || node_->get<bool>("takes_max"),
              is_align && node_->get<bool>("is_enlarged"));
    input("x", 0);
    input("rois", 1);
    if (is_align) input("images", 2);
    output();
    int check = c_.plan.check("region {0} is of an image that does not exist; there are {1}", c_.step.name);
    out_.open("f.parallel_ranges({}, {}, [=, &f](Range planes) {{", size(y.dim(0) * y.dim(1)),
              size(element_count(y.shape()) * Dim(16)));
    out_.line("const i64 wrong = {}(p, planes, x, rois, {}y);", kernel(), is_align ? "images, " : "");
    out_.open("if (wrong >= 0) {{");
    out_.line("f.report({}, wrong);", check);
    out_.close();
    out_.close("});");
    out_.open("if (const i64 wrong = f.reported(); wrong >= 0) {{");
    out_.line("f.fail({}, wrong, p.images);", check);
    out_.close();
}

void SamplingWriter::emit_deformed_windows() {
    const Type &x = type(0), &offset = type(1);
    DeformedWindowsOp windows(*node_);
    const auto &kernel = windows.kernel(), &strides = windows.strides(), &dilations = windows.dilations();
    out_.line(
        "const Deformed p = {{.n = {}, .c = {}, .h = {}, .w = {}, .oh = {}, .ow = {}, .r = {}, .s = {}, .stride_h = "
        "{}, .stride_w = {}, .dilation_h = {}, .dilation_w = {}, .pad_top = {}, .pad_left = {}, .groups = {}}};",
        size(x.dim(0)), size(x.dim(1)), size(x.dim(2)), size(x.dim(3)), size(offset.dim(2)), size(offset.dim(3)),
        kernel[0], kernel[1], strides[0], strides[1], dilations[0], dilations[1], windows.pads()[0], windows.pads()[1],
        windows.groups());
    input("x", 0);
    input("offset", 1);
    if (windows.mask())
        input("mask", *windows.mask());
    else
        out_.line("const {}* mask = nullptr;", cxx_name(x.dtype()));
    output();
    out_.line(
        "f.parallel_ranges(p.n * p.c, {}, [=](Range planes) {{ deformed_windows(p, planes, x, offset, mask, y); }});",
        size(element_count(result_type().shape()) * Dim(8)));
}

template <void (ResizeWriter::*emit)()> constexpr auto write = StepWriter::write<ResizeWriter, emit>;

const KernelCode rows[] = {
    {"deformed_windows", StepWriter::write<SamplingWriter, &SamplingWriter::emit_deformed_windows>},
    {"grid_sample", StepWriter::write<SamplingWriter, &SamplingWriter::emit_grid_sample>},
    {"roi_align", StepWriter::write<SamplingWriter, &SamplingWriter::emit_regions>},
    {"roi_max_pool", StepWriter::write<SamplingWriter, &SamplingWriter::emit_regions>},
    {"resize_any", write<&ResizeWriter::emit_any>},
    {"resize_blocked", write<&ResizeWriter::emit_blocked>},
    {"simplest_fractions", write<&ResizeWriter::emit_fractions>},
};

} // namespace

std::span<const KernelCode> sampling_code() { return rows; }

} // namespace cuvil
