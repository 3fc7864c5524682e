// Convolutions and pools.
#include "codegen/step_writer.hpp"
#include "ops/views.hpp"

namespace cuvil {
namespace {

class WindowWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_conv2d();
    void emit_conv_any();
    void emit_pool_blocked();
    void emit_pool_any();
    void emit_global_avg_pool();
};

void WindowWriter::emit_conv2d() {
    Conv2dOp conv(*node_);
    const auto &strides = conv.strides(), &dilations = conv.dilations(), &pads = conv.pads();
    const Type &x = type(0), &y = result_type();
    const Value& weight = conv.weight();
    bool one_channel = kernel() == "conv2d_padded";
    const Dim &r = weight.type().dim(2), &s = weight.type().dim(3); // packed: [panel][channel block][r][s][channel][16]
    out_.line("const Conv2d p = {{.n = {}, .c = {}, .h = {}, .w = {}, .k = {}, .oh = {}, .ow = {}, .r = {}, .s = {}, "
              ".stride_h = {}, .stride_w = {}, .dilation_h = {}, .dilation_w = {}, .pad_top = {}, .pad_left = {}}};",
              size(x.dim(0)), size(x.dim(1)), size(x.dim(2)), size(x.dim(3)), size(y.dim(1)), size(y.dim(2)),
              size(y.dim(3)), size(r), size(s), strides[0], strides[1], dilations[0], dilations[1], pads[0], pads[1]);
    out_.line("const auto xl = {};", one_channel ? padded(x) : blocked(x));
    out_.line("const auto yl = {};", blocked(y));
    input("x", conv.x());
    input("w", weight);
    output();
    if (conv.bias()) input("bias", *conv.bias());
    loop_.declare_operands(out_);
    out_.open("auto epilogue = [=](vec<f32> v, [[maybe_unused]] At at) {{");
    if (conv.bias()) out_.line("v = v + load(bias + at.channel);");
    loop_.emit_epilogue(out_, "v", "load({0} + at.offset)", "load({0} + at.channel)");
    out_.close("};");
    std::string sizes =
        y.dim(3).constant() ? fmt::format("rows_of_conv2d({}, {})", size(y.dim(3)), size(y.dim(1))) : "any_rows";
    Dim work = element_count(y.shape()) * x.dim(1) * r * s;
    out_.line("f.parallel(conv2d_tasks(p), {},", size(work));
    out_.line("    [=](i64 task) {{ conv2d_task<{}, {}>(p, task, x, xl, w, y, yl, epilogue); }});",
              one_channel ? 1 : 16, sizes);
}

void WindowWriter::emit_conv_any() {
    const Type &x = type(0), &w = type(1), &y = result_type();
    Conv2dOp conv(*node_);
    const auto &strides = conv.strides(), &dilations = conv.dilations(), &pads = conv.pads();
    std::string_view t = cxx_name(x.dtype());
    out_.line("const ConvAny<2> p = {{.n = {}, .c = {}, .k = {}, .groups = {}, .in = {{{}, {}}}, .out = {{{}, {}}}, "
              ".kernel = {{{}, {}}}, "
              ".stride = {{{}, {}}}, .dilation = {{{}, {}}}, .pad = {{{}, {}}}}};",
              size(x.dim(0)), size(x.dim(1)), size(y.dim(1)), conv.groups(), size(x.dim(2)), size(x.dim(3)),
              size(y.dim(2)), size(y.dim(3)), size(w.dim(2)), size(w.dim(3)), strides[0], strides[1], dilations[0],
              dilations[1], pads[0], pads[1]);
    input("x", 0);
    input("w", 1);
    if (conv.bias())
        input("bias", *conv.bias());
    else
        out_.line("const {}* bias = nullptr;", t);
    output();
    Dim work = element_count(y.shape()) * w.dim(1) * w.dim(2) * w.dim(3);
    out_.line("f.parallel(conv_any_tasks(p), {}, [=](i64 task) {{ conv_any(p, task, x, w, bias, y); }});", size(work));
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

void WindowWriter::emit_pool_any() {
    const Type &x = type(0), &y = result_type();
    MaxPool2dOp pool(*node_); // avg_pool2d has the same window
    const auto &kernel = pool.kernel(), &strides = pool.strides(), &dilations = pool.dilations(), &pads = pool.pads();
    bool is_max = node_->op() == "max_pool2d";
    out_.line("const PoolAny<2> p = {{.planes = {}, .in = {{{}, {}}}, .out = {{{}, {}}}, .kernel = {{{}, {}}}, .stride "
              "= {{{}, {}}}, "
              ".dilation = {{{}, {}}}, .pad = {{{}, {}}}, .pad_end = {{{}, {}}}, .count_include_pad = {}}};",
              size(x.dim(0) * x.dim(1)), size(x.dim(2)), size(x.dim(3)), size(y.dim(2)), size(y.dim(3)), kernel[0],
              kernel[1], strides[0], strides[1], dilations[0], dilations[1], pads[0], pads[1], pads[2], pads[3],
              !is_max && AvgPool2dOp(*node_).count_include_pad());
    input("x", 0);
    output();
    out_.line("f.parallel_ranges(p.planes, {}, [=](Range planes) {{ pool_any<{}, 2, {}>(p, planes, x, y); }});",
              size(element_count(y.shape()) * Dim(kernel[0] * kernel[1])), cxx_name(x.dtype()),
              is_max ? "Max" : "Mean");
}

void WindowWriter::emit_global_avg_pool() {
    const Type& x = type(0);
    out_.line("const auto xl = {};", blocked(x));
    input("x", 0);
    output();
    out_.line(
        "f.parallel(global_avg_pool_tasks({}, xl), {}, [=](i64 task) {{ global_avg_pool_task(xl, task, x, y); }});",
        size(x.dim(0)), size(element_count(x.shape())));
}

template <void (WindowWriter::*emit)()> constexpr auto write = StepWriter::write<WindowWriter, emit>;

const KernelCode rows[] = {
    {"conv2d_blocked", write<&WindowWriter::emit_conv2d>},
    {"conv2d_padded", write<&WindowWriter::emit_conv2d>},
    {"conv_any", write<&WindowWriter::emit_conv_any>},
    {"pool_blocked", write<&WindowWriter::emit_pool_blocked>},
    {"pool_any", write<&WindowWriter::emit_pool_any>},
    {"global_avg_pool", write<&WindowWriter::emit_global_avg_pool>},
};

} // namespace

std::span<const KernelCode> window_code() { return rows; }

} // namespace cuvil
