// Convolutions and pools.
#include "codegen/known_epilogue.hpp"
#include "codegen/step_writer.hpp"
#include "ops/infer.hpp"
#include "ops/views.hpp"
#include "plan/winograd.hpp"

namespace cuvil {
namespace {

bool has_constant_sizes(const Type& t) {
    return std::ranges::all_of(t.shape(), [](const Dim& d) { return d.constant().has_value(); });
}

class WindowWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_conv2d();
    void emit_winograd();
    void emit_conv_depthwise();
    void emit_conv_transpose2d();
    void emit_conv_any();
    void emit_col2im();
    void emit_pool_blocked();
    void emit_pool_any();
    void emit_pool_indices();
    void emit_global_avg_pool();

private:
    void declare_conv2d(std::string_view name, const Type& x, const Type& y, const Dim& c, const Dim& k);
    void declare_phased(std::string_view name, const Type& x, const Type& y);
    bool takes_single_pixels() const;
    std::string window() const;
    void emit_epilogue(const Value* bias); // of blocked convolutions
    void declare_pool_any();
    std::string pool_work() const; // taps of all windows
};

void WindowWriter::emit_epilogue(const Value* bias) {
    if (bias) input("bias", *bias);
    loop_.declare_operands(out_);
    if (auto known = bias ? known_epilogue(c_) : std::nullopt) {
        std::string addend = known->addend ? loop_.name_of(*known->addend) : "nullptr";
        out_.line("const Known<Addend::{}, {}> epilogue = {{bias, {}, {}}};", known->where, known->function, addend,
                  known->arguments);
        return;
    }
    out_.open("auto epilogue = [=](vec<f32> v, [[maybe_unused]] At at) {{");
    if (bias) out_.line("v = v + load(bias + at.channel);");
    loop_.emit_epilogue(out_, "v", "load({0} + at.offset)", "load({0} + at.channel)");
    out_.close("};");
}

// The problem, from c to k channels, which may be those of one group.
void WindowWriter::declare_conv2d(std::string_view name, const Type& x, const Type& y, const Dim& c, const Dim& k) {
    Conv2dOp conv(*node_);
    const auto &strides = conv.strides(), &dilations = conv.dilations(), &pads = conv.pads();
    const bool is_winograd = point_scheme(*node_, kernel()).tile > 0;
    const Dim r = is_winograd ? 3 : conv.weight().type().dim(2), s = is_winograd ? 3 : conv.weight().type().dim(3);
    out_.line("{} Conv2d {} = {{.n = {}, .c = {}, .h = {}, .w = {}, .k = {}, .oh = {}, .ow = {}, .r = {}, .s = {}, "
              ".stride_h = {}, .stride_w = {}, .dilation_h = {}, .dilation_w = {}, .pad_top = {}, .pad_left = {}}};",
              has_constant_sizes(x) && has_constant_sizes(y) ? "constexpr" : "const", name, size(x.dim(0)), size(c),
              size(x.dim(2)), size(x.dim(3)), size(k), size(y.dim(2)), size(y.dim(3)), size(r), size(s), strides[0],
              strides[1], dilations[0], dilations[1], pads[0], pads[1]);
}

bool has_halo(const Type& image) {
    const Layout& l = image.layout();
    return !(l.top.is(0) && l.left.is(0) && l.bottom.is(0) && l.right.is(0));
}

// An image without a halo, as one row of all its pixels.
Type in_one_row(const Type& image) {
    const Shape& s = image.shape();
    return Type::tensor(image.dtype(), {s[0], s[1], 1, s[2] * s[3]}).with_layout(image.layout());
}

// Whether an output depends on the pixel at the same place alone, and these lie in the same order.
bool WindowWriter::takes_single_pixels() const {
    Conv2dOp conv(*node_);
    const Type& w = conv.weight().type();
    return kernel() == "conv2d_blocked" && w.dim(2).is(1) && w.dim(3).is(1) &&
           conv.strides() == std::vector<int64_t>{1, 1} && conv.pads() == std::vector<int64_t>(4, 0) &&
           !has_halo(type(0)) && !has_halo(result_type());
}

// Of a narrow convolution: for which the kernel has tiles of its own.
std::string WindowWriter::window() const {
    Conv2dOp conv(*node_);
    const Type& w = conv.weight().type(); // [block][1][r][s][width][16]
    int64_t columns = *w.dim(3).constant(), stride = conv.strides()[1];
    bool has_tiles =
        w.dim(4).is(1) && conv.dilations()[1] == 1 && stride <= 2 && (columns == 3 || columns == 5 || columns == 7);
    return has_tiles ? fmt::format("Window{{{}, {}}}", columns, stride) : "any_window";
}

// The kernels for f32 images in blocks.
void WindowWriter::emit_conv2d() {
    Conv2dOp conv(*node_);
    // Tiles of pixels need not end with the rows of the image.
    const bool is_flat = takes_single_pixels();
    const Type x = is_flat ? in_one_row(type(0)) : type(0), y = is_flat ? in_one_row(result_type()) : result_type();
    const Value& weight = conv.weight(); // packed: [panel][channel][r][s][16]
    const Dim &r = weight.type().dim(2), &s = weight.type().dim(3);
    int64_t groups = kernel() == "conv2d_grouped" ? conv.groups() : 1;
    Dim c = Dim::floordiv(x.dim(1), groups), k = Dim::floordiv(y.dim(1), groups);
    declare_conv2d("p", x, y, c, k);
    out_.line("const auto xl = {};", kernel() == "conv2d_padded" ? padded(x) : blocked(x));
    out_.line("const auto yl = {};", blocked(y));
    input("x", conv.x());
    input("w", weight);
    output();
    emit_epilogue(conv.bias());
    std::string tiles = fmt::format("constexpr Tiles tiles = conv2d_tiles({}, {}, {}, {});", known_size(y.dim(2)),
                                    known_size(y.dim(3)), known_size(k), known_size(c * r * s));
    Dim pixels = element_count(y.shape()) * r * s;
    if (kernel() == "conv2d_narrow") {
        const Dim& width = weight.type().dim(4);
        out_.line("f.parallel(narrow_conv_tasks(p, {}), {},", size(width), size(pixels * width));
        out_.line("    [=](i64 task) {{ narrow_conv_task<{}, {}>(p, task, x, xl, w, y, yl, epilogue); }});",
                  size(width), window());
    } else if (groups == 1) {
        out_.line("{}", tiles);
        out_.line("f.parallel(conv2d_tasks(p, tiles), {},", size(pixels * c));
        out_.line("    [=](i64 task) {{ conv2d_task<{}, tiles>(p, task, x, xl, w, y, yl, epilogue); }});",
                  kernel() == "conv2d_padded" ? 1 : 16);
    } else {
        out_.line("{}", tiles);
        out_.line("const i64 tasks = conv2d_tasks(p, tiles);");
        out_.open("f.parallel({} * tasks, {}, [=](i64 i) {{", groups, size(pixels * c));
        out_.line("const i64 group = i / tasks, channel = group * p.k, offset = channel / 16 * yl.plane();");
        out_.open("auto in_group = [=](vec<f32> v, At at) {{");
        out_.line("return epilogue(v, {{at.channel + channel, at.offset + offset, at.lanes}});");
        out_.close("};");
        out_.line("conv2d_task<16, tiles>(p, i % tasks, x + group * (p.c / 16) * xl.plane(), xl,");
        out_.line("    w + group * packed_conv_size(p.k, p.c, p.r, p.s, 16), y + offset, yl, in_group);");
        out_.close("});");
    }
}

// The problem over phases.
void WindowWriter::declare_phased(std::string_view name, const Type& x, const Type& y) {
    const int64_t taps = point_scheme(*node_, kernel()).taps;
    out_.line("{} Conv2d {} = {{.n = {}, .c = 4 * {}, .h = ceil_div({}, 2), .w = ceil_div({}, 2), .k = {}, .oh = {}, "
              ".ow = {}, .r = {}, .s = {}, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .pad_top = "
              "{}, .pad_left = {}}};",
              has_constant_sizes(x) && has_constant_sizes(y) ? "constexpr" : "const", name, size(x.dim(0)),
              size(x.dim(1)), size(x.dim(2)), size(x.dim(3)), size(y.dim(1)), size(y.dim(2)), size(y.dim(3)), taps,
              taps, size(x.layout().top), size(x.layout().left));
}

// By fewer multiplications, some blocks of tiles at once.
void WindowWriter::emit_winograd() {
    Conv2dOp conv(*node_);
    const Type &x = type(0), &y = result_type();
    const bool is_phased = kernel() == "conv2d_phased";
    if (is_phased)
        declare_phased("p", x, y);
    else
        declare_conv2d("p", x, y, x.dim(1), y.dim(1));
    out_.line("const auto xl = {};", is_phased ? phased(x) : blocked(x));
    out_.line("const auto yl = {};", blocked(y));
    input("x", conv.x());
    input("w", conv.weight());
    output();
    out_.line("f32* scratch = f.at<f32>({});", c_.buffer(c_.step.scratch));
    emit_epilogue(conv.bias());
    const PointScheme scheme = point_scheme(*node_, kernel());
    out_.line("constexpr WinogradScheme scheme = {{{}, {}, {}}};", scheme.tile, scheme.stride, scheme.taps);
    out_.line("constexpr Tiles tiles = winograd_tiles<scheme>({}, {}, {});", known_size(y.dim(2)), known_size(y.dim(3)),
              known_size(y.dim(1)));
    out_.line("const WinogradCut cut = cut_winograd<scheme>(p);");
    out_.open("for (i64 first = 0; first < cut.blocks; first += cut.at_once) {{");
    out_.line("const i64 blocks = smaller(cut.at_once, cut.blocks - first);");
    out_.open("if (cut.parts > 1) {{");
    out_.open("f.parallel(blocks * cut.channel_blocks, blocks * cut.block_size, [=](i64 i) {{");
    out_.line("const i64 slot = i / cut.channel_blocks, channel_block = i % cut.channel_blocks;");
    out_.line("winograd_inputs<scheme>(p, cut, first + slot, {{channel_block, channel_block + 1}}, x, xl, "
              "cut.v(scratch, slot));");
    out_.close("});");
    out_.close("}");
    out_.open("f.parallel(blocks * cut.parts, blocks * cut.block_size * p.k, [=](i64 task) {{");
    out_.line("winograd_task<scheme, tiles>(p, cut, first, task, x, xl, w, scratch, y, yl, epilogue);");
    out_.close("});");
    out_.close("}");
}

// Two convolutions, of which the second one is depthwise.
void WindowWriter::emit_conv_depthwise() {
    StepContext context{c_.program, c_.plan, c_.step.within.at(0), c_.region_depth, c_.buffers};
    WindowWriter before(context);
    Conv2dOp first(*before.node_), second(*node_);
    const Type &x = first.x().type(), &between = second.x().type(), &y = result_type();
    before.declare_conv2d("first", x, between, x.dim(1), between.dim(1));
    const bool is_padded = before.kernel() == "conv2d_padded";
    const bool is_static = has_constant_sizes(x) && has_constant_sizes(y);
    before.out_.line("{} auto xl = {};", is_static ? "constexpr" : "const", is_padded ? padded(x) : blocked(x));
    before.input("x", first.x());
    before.input("first_w", first.weight());
    out_.paste(before.out_.text());
    before.out_ = {};
    before.emit_epilogue(first.bias());
    out_.open("const auto first_epilogue = [&] {{");
    out_.paste(before.out_.text());
    out_.line("return epilogue;");
    out_.close("}();");
    declare_conv2d("second", between, y, between.dim(1), y.dim(1));
    out_.line("const auto yl = {};", blocked(y));
    input("w", second.weight());
    output();
    out_.line("f32* scratch = f.at<f32>({});", c_.buffer(c_.step.scratch));
    emit_epilogue(second.bias());
    const Shape& weight = first.weight().type().shape(); // [panel][channel][r][s][16]
    Dim depth = x.dim(1) * weight[2] * weight[3];
    if (is_static)
        out_.line("constexpr Tiles tiles = conv_depthwise_tiles(first, second, xl);");
    else
        out_.line("constexpr Tiles tiles = conv_depthwise_tiles(unknown, {}, {});", size(between.dim(1)), size(depth));
    Dim image = Dim::floordiv(element_count(between.shape()), Dim::max(x.dim(0), 1));
    out_.open("for (i64 n = 0; n < second.n; n++) {{");
    out_.line("f.parallel(cut_conv_depthwise(first, second, tiles.panels).tasks(), {}, [=](i64 task) {{",
              size(image * depth));
    out_.line(
        "    conv_depthwise_task<{}, tiles, {}>(first, second, n, task, x, xl, first_w, first_epilogue, w, scratch, "
        "y, yl, epilogue);",
        is_padded ? 1 : 16, window());
    out_.line("}});");
    out_.close();
}

// f32 images in blocks, too. The pads are what is cut from the result.
void WindowWriter::emit_conv_transpose2d() {
    ConvTranspose2dOp conv(*node_);
    const auto &strides = conv.strides(), &dilations = conv.dilations(), &pads = conv.pads();
    const Type &x = type(0), &y = result_type();
    const Dim &r = conv.weight().type().dim(2), &s = conv.weight().type().dim(3);
    out_.line("const Conv2d p = {{.n = {}, .c = {}, .h = {}, .w = {}, .k = {}, .oh = {}, .ow = {}, .r = {}, .s = {}, "
              ".stride_h = {}, .stride_w = {}, .dilation_h = {}, .dilation_w = {}, .pad_top = {}, .pad_left = {}}};",
              size(x.dim(0)), size(x.dim(1)), size(x.dim(2)), size(x.dim(3)), size(y.dim(1)), size(y.dim(2)),
              size(y.dim(3)), size(r), size(s), strides[0], strides[1], dilations[0], dilations[1], pads[0], pads[1]);
    out_.line("const auto xl = {};", blocked(x));
    out_.line("const auto yl = {};", blocked(y));
    input("x", conv.x());
    input("w", conv.weight());
    output();
    emit_epilogue(conv.bias());
    auto width = y.dim(3).constant();
    bool is_even = width && *width % strides[1] == 0;
    out_.line("constexpr Tiles tiles = choose_tiles({}, {}, {});",
              is_even ? std::to_string(*width / strides[1]) : "unknown", known_size(y.dim(1)), known_size(x.dim(1)));
    out_.line("f.parallel(conv_transpose_tasks(p, tiles), {},", size(element_count(x.shape()) * y.dim(1) * r * s));
    out_.line("    [=](i64 task) {{ conv_transpose_task<tiles>(p, task, x, xl, w, y, yl, epilogue); }});");
}

// Convolutions and their transposes of any rank.
void WindowWriter::emit_conv_any() {
    const Type &x = type(0), &w = type(1), &y = result_type();
    size_t axes = x.shape().size() - 2;
    bool is_transposed = kernel() == "conv_transpose_any";
    auto ints = [&](std::string_view name) {
        const auto& values = node_->get<std::vector<int64_t>>(name);
        return fmt::format("{{{}}}", fmt::join(values.begin(), values.begin() + static_cast<int64_t>(axes), ", "));
    };
    auto spatial = [&](const Type& t) { return sizes_text(c_.plan, Shape(t.shape().begin() + 2, t.shape().end())); };
    out_.line("const ConvAny<{}> p = {{.n = {}, .c = {}, .k = {}, .groups = {}, .in = {}, .out = {}, .kernel = {}, "
              ".stride = {}, .dilation = {}, .pad = {}}};",
              axes, size(x.dim(0)), size(x.dim(1)), size(y.dim(1)), node_->get<int64_t>("groups"), spatial(x),
              spatial(y), spatial(w), ints("strides"), ints("dilations"), ints("pads"));
    input("x", 0);
    input("w", 1);
    const Value* bias = node_->operands().size() > 2 ? node_->operand(2) : nullptr;
    if (bias)
        input("bias", *bias);
    else
        out_.line("const {}* bias = nullptr;", cxx_name(x.dtype()));
    output();
    Dim work = element_count(is_transposed ? x.shape() : y.shape()) * element_count(w.shape());
    out_.line("f.parallel(conv_any_tasks(p), {}, [=](i64 task) {{ {}(p, task, x, w, bias, y); }});",
              size(Dim::floordiv(work, Dim::max(w.dim(0), 1))), kernel());
}

void WindowWriter::emit_col2im() {
    const Type& y = result_type();
    size_t axes = y.shape().size() - 2;
    auto ints = [&](std::string_view name) { return node_->get<std::vector<int64_t>>(name); };
    const auto& kernel = node_->get<Shape>("kernel");
    std::vector<std::string> windows;
    for (size_t i = 0; i < axes; i++) {
        int64_t pads = ints("pads")[i] + ints("pads")[axes + i];
        windows.push_back(
            size(window_output(y.shape()[2 + i], kernel[i], ints("strides")[i], ints("dilations")[i], Dim(pads))));
    }
    auto list = [&](std::string_view name) {
        std::vector<int64_t> all = ints(name);
        return fmt::format("{{{}}}", fmt::join(all.begin(), all.begin() + static_cast<int64_t>(axes), ", "));
    };
    out_.line("const ConvAny<{}> p = {{.n = {}, .c = {}, .k = {}, .groups = 1, .in = {{{}}}, .out = {}, .kernel = {}, "
              ".stride = {}, .dilation = {}, .pad = {}}};",
              axes, size(y.dim(0)), size(y.dim(1)), size(y.dim(1)), fmt::join(windows, ", "),
              sizes_text(c_.plan, Shape(y.shape().begin() + 2, y.shape().end())), sizes_text(c_.plan, kernel),
              list("strides"), list("dilations"), list("pads"));
    input("x", 0);
    output();
    out_.line("f.parallel_ranges(p.n * p.c, {}, [=](Range planes) {{ col2im(p, planes, x, y); }});",
              size(element_count(type(0).shape())));
}

void WindowWriter::emit_pool_blocked() {
    const Type &x = type(0), &y = result_type();
    MaxPool2dOp pool(*node_); // avg_pool2d has the same window
    const auto &kernel = pool.kernel(), &strides = pool.strides(), &dilations = pool.dilations(), &pads = pool.pads();
    out_.line("const Pool2d p = {{.n = {}, .c = {}, .h = {}, .w = {}, .oh = {}, .ow = {}, .kh = {}, .kw = {}, "
              ".stride_h = {}, .stride_w = {}, "
              ".dilation_h = {}, .dilation_w = {}, .pad_top = {}, .pad_left = {}, .pad_bottom = {}, .pad_right = {}}};",
              size(x.dim(0)), size(x.dim(1)), size(x.dim(2)), size(x.dim(3)), size(y.dim(2)), size(y.dim(3)), kernel[0],
              kernel[1], strides[0], strides[1], dilations[0], dilations[1], pads[0], pads[1], pads[2], pads[3]);
    out_.line("const auto xl = {};", blocked(x));
    out_.line("const auto yl = {};", blocked(y));
    input("x", 0);
    output();
    Dim work = element_count(y.shape()) * Dim(kernel[0] * kernel[1]);
    if (node_->op() == "max_pool2d")
        out_.line("f.parallel(pool2d_tasks(p), {}, [=](i64 task) {{ max_pool2d_task(p, task, x, xl, y, yl); }});",
                  size(work));
    else
        out_.line("f.parallel(pool2d_tasks(p), {}, [=](i64 task) {{ avg_pool2d_task(p, task, x, xl, y, yl, {}); }});",
                  size(work), AvgPool2dOp(*node_).count_include_pad());
}

void WindowWriter::declare_pool_any() {
    const Type &x = type(0), &y = result_type();
    size_t axes = x.shape().size() - 2;
    auto ints = [&](std::string_view name, size_t from = 0) {
        auto begin = node_->get<std::vector<int64_t>>(name).begin() + static_cast<int64_t>(from);
        return fmt::format("{{{}}}", fmt::join(begin, begin + static_cast<int64_t>(axes), ", "));
    };
    auto spatial = [&](const Type& t) { return sizes_text(c_.plan, Shape(t.shape().begin() + 2, t.shape().end())); };
    bool counts = node_->op() == "avg_pool2d" && AvgPool2dOp(*node_).count_include_pad();
    out_.line("const PoolAny<{}> p = {{.planes = {}, .in = {}, .out = {}, .kernel = {}, .stride = {}, .dilation = {}, "
              ".pad = {}, .pad_end = {}, .count_include_pad = {}}};",
              axes, size(x.dim(0) * x.dim(1)), spatial(x), spatial(y), ints("kernel"), ints("strides"),
              ints("dilations"), ints("pads"), ints("pads", axes), counts);
    input("x", 0);
    output();
}

std::string WindowWriter::pool_work() const {
    Dim taps = 1;
    for (int64_t n : node_->get<std::vector<int64_t>>("kernel")) taps = taps * Dim(n);
    return size(element_count(result_type().shape()) * taps);
}

void WindowWriter::emit_pool_any() {
    declare_pool_any();
    std::string_view op = node_->op() == "max_pool2d" ? "Max" : node_->op() == "avg_pool2d" ? "Mean" : "Sum";
    out_.line("f.parallel_ranges(p.planes, {}, [=](Range planes) {{ pool_any<{}, 2, {}>(p, planes, x, y); }});",
              pool_work(), cxx_name(type(0).dtype()), op);
}

void WindowWriter::emit_pool_indices() {
    declare_pool_any();
    out_.line("f.parallel_ranges(p.planes, {}, [=](Range planes) {{ pool_indices(p, planes, {}, x, y); }});",
              pool_work(), node_->get<bool>("column_major"));
}

void WindowWriter::emit_global_avg_pool() {
    const Type& x = type(0);
    out_.line("const auto xl = {};", blocked(x));
    input("x", 0);
    output();
    bool to_blocks = !result_type().layout().is_plain();
    if (to_blocks) out_.line("const auto yl = {};", blocked(result_type()));
    out_.line(
        "f.parallel(global_avg_pool_tasks({}, xl), {}, [=](i64 task) {{ global_avg_pool_task(xl, task, x, y{}); }});",
        size(x.dim(0)), size(element_count(x.shape())), to_blocks ? ", yl" : "");
}

template <void (WindowWriter::*emit)()> constexpr auto write = StepWriter::write<WindowWriter, emit>;

const KernelCode rows[] = {
    {"conv2d_blocked", write<&WindowWriter::emit_conv2d>},
    {"conv2d_padded", write<&WindowWriter::emit_conv2d>},
    {"conv2d_grouped", write<&WindowWriter::emit_conv2d>},
    {"conv2d_narrow", write<&WindowWriter::emit_conv2d>},
    {"conv2d_depthwise", write<&WindowWriter::emit_conv_depthwise>},
    {"conv2d_winograd2", write<&WindowWriter::emit_winograd>},
    {"conv2d_winograd4", write<&WindowWriter::emit_winograd>},
    {"conv2d_phased", write<&WindowWriter::emit_winograd>},
    {"conv_transpose_any", write<&WindowWriter::emit_conv_any>},
    {"conv_transpose_blocked", write<&WindowWriter::emit_conv_transpose2d>},
    {"conv_any", write<&WindowWriter::emit_conv_any>},
    {"pool_blocked", write<&WindowWriter::emit_pool_blocked>},
    {"col2im", write<&WindowWriter::emit_col2im>},
    {"pool_indices", write<&WindowWriter::emit_pool_indices>},
    {"sum_pool2d", write<&WindowWriter::emit_pool_any>},
    {"pool_any", write<&WindowWriter::emit_pool_any>},
    {"global_avg_pool", write<&WindowWriter::emit_global_avg_pool>},
};

} // namespace

std::span<const KernelCode> window_code() { return rows; }

} // namespace cuvil
