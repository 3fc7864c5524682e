#include "codegen/step_code.hpp"

#include "codegen/loop_code.hpp"
#include "ops/views.hpp"
#include "support/diagnostics.hpp"

#include <algorithm>

namespace cuvil {
namespace {

class StepWriter {
public:
    explicit StepWriter(const StepContext& context) : c_(context), node_(context.step.anchor), loop_(context) {}

    std::string write();

private:
    using Emit = void (StepWriter::*)();
    struct Family {
        std::string_view kernel;
        Emit emit;
    };
    static const Family families[];

    // ---- Access to the node

    const Type& type(size_t operand) const { return node_->operand(operand)->type(); }
    const Type& result_type() const { return node_->result().type(); }
    // The node's axis, counted from the front.
    size_t axis_of(const Type& t) const {
        int64_t axis = node_->get<int64_t>("axis");
        return static_cast<size_t>(axis < 0 ? axis + t.rank() : axis);
    }
    std::string size(const Dim& d) const { return size_text(c_.plan, d); }
    const std::string& kernel() const { return c_.plan.kernels.at(node_); }

    // Declares `const T* name = ...` for an operand and `T* y = ...` for the step's result.
    void input(std::string_view name, const Value& value) {
        std::string_view t = cxx_name(value.type().dtype());
        out_.line("const {}* {} = f.at<{}>({});", t, name, t, c_.plan.buffer(value));
    }
    void input(std::string_view name, size_t operand) { input(name, *node_->operand(operand)); }
    void output() {
        const Value& value = *c_.step.outputs.at(0);
        std::string_view t = cxx_name(value.type().dtype());
        out_.line("{}* y = f.at<{}>({});", t, t, c_.plan.buffer(value));
    }
    // Memory for results whose size is known only now.
    void allocate() {
        for (const Value* value : c_.step.outputs) {
            const Buffer& buffer = c_.plan.buffers[static_cast<size_t>(c_.plan.buffer(*value))];
            if (buffer.place != Buffer::Dynamic) continue;
            out_.line("f.b[{}] = f.alloc({}, {});", c_.plan.buffer(*value), block_bytes_text(c_.plan, buffer.bytes),
                      c_.region_depth);
            out_.open("if (f.status != CUVIL_OK) {{");
            out_.line("return;");
            out_.close();
        }
    }

    std::string blocked(const Type& t) const { return image("Blocked", t); }
    std::string padded(const Type& t) const { return image("Padded", t); }
    std::string image(std::string_view kind, const Type& t) const {
        const Layout& l = t.layout();
        return fmt::format("{}{{.channels = {}, .h = {}, .w = {}, .top = {}, .left = {}, .bottom = {}, .right = {}}}",
                           kind, size(t.dim(1)), size(t.dim(2)), size(t.dim(3)), size(l.top), size(l.left),
                           size(l.bottom), size(l.right));
    }

    static Dim product(const Shape& shape, size_t begin, size_t end) {
        return element_count(
            Shape(shape.begin() + static_cast<int64_t>(begin), shape.begin() + static_cast<int64_t>(end)));
    }

    // ---- Families

    void emit_conv2d();
    void emit_conv_any();
    void emit_gemm();
    void emit_matmul_any();
    void emit_pack();
    void emit_pool_blocked();
    void emit_pool_any();
    void emit_global_avg_pool();
    void emit_reduce();
    void emit_softmax();
    void emit_norm();
    void emit_transpose();
    void emit_broadcast();
    void emit_slice();
    void emit_concat();
    void emit_pad();
    void emit_relayout();
    void emit_gather();
    void emit_nonzero();
    void emit_dims();
    void emit_require();

    // One strided copy; dims that both sides walk without a gap are merged.
    struct Copy {
        Shape shape;
        std::vector<Dim> x_strides, y_strides;
        Dim x_offset, y_offset;
    };
    void copy(const Copy& copy);
    static std::vector<Dim> strides_of(const Shape& shape);
    std::string copied_type() const;

    const StepContext& c_;
    OpNode* node_;
    CxxText out_;
    LoopCode loop_;
};

const StepWriter::Family StepWriter::families[] = {
    {"conv2d_blocked", &StepWriter::emit_conv2d},
    {"conv2d_padded", &StepWriter::emit_conv2d},
    {"conv_any", &StepWriter::emit_conv_any},
    {"gemm", &StepWriter::emit_gemm},
    {"matmul_any", &StepWriter::emit_matmul_any},
    {"pack_b", &StepWriter::emit_pack},
    {"pool_blocked", &StepWriter::emit_pool_blocked},
    {"pool_any", &StepWriter::emit_pool_any},
    {"global_avg_pool", &StepWriter::emit_global_avg_pool},
    {"softmax", &StepWriter::emit_softmax},
    {"log_softmax", &StepWriter::emit_softmax},
    {"layer_norm", &StepWriter::emit_norm},
    {"rms_norm", &StepWriter::emit_norm},
    {"transpose", &StepWriter::emit_transpose},
    {"broadcast", &StepWriter::emit_broadcast},
    {"slice", &StepWriter::emit_slice},
    {"concat", &StepWriter::emit_concat},
    {"pad", &StepWriter::emit_pad},
    {"relayout", &StepWriter::emit_relayout},
    {"gather", &StepWriter::emit_gather},
    {"nonzero", &StepWriter::emit_nonzero},
    {"dims", &StepWriter::emit_dims},
    {"require", &StepWriter::emit_require},
    {"reduce", &StepWriter::emit_reduce},
};

std::string StepWriter::write() {
    out_.line("// {}", harmless(c_.step.name));
    out_.open("{} {{", step_declaration(c_.step));
    out_.line("[[maybe_unused]] const i64* d = f.d;");
    if (!node_) {
        allocate();
        loop_.emit(out_);
    } else {
        std::string_view family = kernel();
        if (node_->op().starts_with("reduce_") && family != "global_avg_pool") family = "reduce";
        auto found = std::ranges::find(families, family, &Family::kernel);
        CUVIL_ASSERT(found != std::ranges::end(families), "no code for kernel " + kernel());
        if (family != "nonzero") allocate();
        (this->*found->emit)();
    }
    out_.close();
    return out_.text();
}

// ---- Convolution

void StepWriter::emit_conv2d() {
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

void StepWriter::emit_conv_any() {
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

// ---- Matrix products

void StepWriter::emit_gemm() {
    const Type &a = type(0), &b = type(1), &y = result_type();
    Dim m = a.dim(-2), k = a.dim(-1), n = y.dim(-1), batch = 1;
    // A stack of matrices against one matrix is one product with more rows.
    Dim leading = product(a.shape(), 0, a.shape().size() - 2);
    if (b.rank() == 3)
        m = m * leading;
    else
        batch = leading;
    out_.line("const Gemm g = {{.m = {}, .n = {}, .k = {}, .lda = {}, .ldc = {}}};", size(m), size(n), size(k), size(k),
              size(n));
    input("a", 0);
    input("b", 1);
    output();
    loop_.declare_operands(out_);
    std::string sizes =
        m.constant() && n.constant() ? fmt::format("rows_of_tiles({}, {})", size(m), size(n)) : "any_rows";
    Dim work = m * n * k * batch;
    auto epilogue = [&] {
        out_.open("auto epilogue = [=](vec<f32> v, [[maybe_unused]] At at) {{");
        if (!batch.is(1)) out_.line("at.offset += matrix * g.m * g.n;");
        loop_.emit_epilogue(out_, "v", "load_lanes({0} + at.offset, at.lanes)",
                            "load_lanes({0} + at.channel, at.lanes)");
        out_.close("};");
    };
    if (batch.is(1)) {
        epilogue();
        out_.line("f.parallel(gemm_tasks(g), {}, [=](i64 task) {{ gemm_task<{}>(g, task, a, b, y, epilogue); }});",
                  size(work), sizes);
        return;
    }
    out_.line("const i64 tasks = larger(1, gemm_tasks(g));");
    out_.open("f.parallel(g.m * g.n == 0 ? 0 : ({}) * tasks, {}, [=](i64 i) {{", size(batch), size(work));
    out_.line("const i64 matrix = i / tasks;");
    epilogue();
    out_.line("gemm_task<{}>(g, i % tasks, a + matrix * g.m * g.k, b + matrix * packed_size(g.k, g.n), y + matrix * "
              "g.m * g.n, epilogue);",
              sizes);
    out_.close("});");
}

void StepWriter::emit_pack() {
    const Type& b = type(0);
    Dim batch = product(b.shape(), 0, b.shape().size() - 2), k = b.dim(-2), n = b.dim(-1);
    input("b", 0);
    output();
    out_.line("const i64 k = {}, n = {};", size(k), size(n));
    out_.line("f.parallel({}, {}, [=](i64 i) {{ pack_b(k, n, b + i * k * n, n, 1, y + i * packed_size(k, n)); }});",
              size(batch), size(batch * k * n));
}

void StepWriter::emit_matmul_any() {
    const Type &a = type(0), &b = type(1), &y = result_type();
    Dim m = a.dim(-2), k = a.dim(-1), n = y.dim(-1), batch = product(a.shape(), 0, a.shape().size() - 2);
    input("a", 0);
    input("b", 1);
    output();
    out_.line("const i64 m = {}, k = {}, n = {};", size(m), size(k), size(n));
    out_.open("f.parallel(({}) * m, {}, [=](i64 i) {{", size(batch), size(batch * m * n * k));
    out_.line("const i64 matrix = {};", b.rank() > 2 ? "i / m" : "0");
    out_.line("matmul_any(1, n, k, a + i * k, k, 1, b + matrix * k * n, n, 1, y + i * n, n);");
    out_.close("});");
}

// ---- Pools, reductions, softmax

void StepWriter::emit_pool_blocked() {
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

void StepWriter::emit_pool_any() {
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

void StepWriter::emit_global_avg_pool() {
    const Type& x = type(0);
    out_.line("const auto xl = {};", blocked(x));
    input("x", 0);
    output();
    out_.line(
        "f.parallel(global_avg_pool_tasks({}, xl), {}, [=](i64 task) {{ global_avg_pool_task(xl, task, x, y); }});",
        size(x.dim(0)), size(element_count(x.shape())));
}

// The axes are neighbours, axes of size 1 aside: DecomposePass sees to it.
void StepWriter::emit_reduce() {
    const Type& x = type(0);
    size_t begin = x.shape().size(), end = 0;
    for (int64_t axis : node_->get<std::vector<int64_t>>("axes")) {
        auto i = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
        if (x.shape()[i].is(1)) continue;
        begin = std::min(begin, i);
        end = std::max(end, i + 1);
    }
    if (begin > end) begin = end;
    out_.line("const i64 outer = {}, n = {}, inner = {};", size(product(x.shape(), 0, begin)),
              size(product(x.shape(), begin, end)), size(product(x.shape(), end, x.shape().size())));
    input("x", 0);
    output();
    out_.line(
        "f.parallel_ranges(outer * inner, {}, [=](Range outputs) {{ reduce<{}>(outer, n, inner, outputs, x, y); }});",
        size(element_count(x.shape())), kernel());
}

void StepWriter::emit_softmax() {
    const Type& x = type(0);
    size_t at = axis_of(x);
    out_.line("const i64 outer = {}, n = {}, inner = {};", size(product(x.shape(), 0, at)), size(x.shape()[at]),
              size(product(x.shape(), at + 1, x.shape().size())));
    input("x", 0);
    output();
    out_.line("f.parallel_ranges(outer * inner, {}, [=](Range columns) {{ {}(outer, n, inner, columns, x, y); }});",
              size(element_count(x.shape()) * Dim(8)), kernel());
}

// The axes from the node's on are a row; scale and bias, where there are any, have a row's shape.
void StepWriter::emit_norm() {
    const Type& x = type(0);
    size_t at = axis_of(x);
    std::string_view t = cxx_name(x.dtype());
    out_.line("const i64 rows = {}, n = {};", size(product(x.shape(), 0, at)),
              size(product(x.shape(), at, x.shape().size())));
    input("x", 0);
    std::string parameters;
    for (size_t i = 1; i < node_->def().operands.size(); i++) {
        std::string_view name = node_->operand(i) ? node_->def().operands[i].name : "nullptr";
        if (node_->operand(i)) input(name, i);
        parameters += fmt::format("{}, ", name);
    }
    output();
    out_.line("f.parallel_ranges(rows, {}, [=](Range range) {{ {}<{}>(n, {}, range, x, {}y); }});",
              size(element_count(x.shape()) * Dim(4)), kernel(), t, number_text(node_->get<double>("epsilon")),
              parameters);
}

// ---- Movement

// Copies need no arithmetic, so the element type only has to have the right size.
std::string StepWriter::copied_type() const {
    switch (size_of(result_type().dtype())) {
    case 1: return "u8";
    case 2: return "u16";
    case 4: return "u32";
    default: return "u64";
    }
}

std::vector<Dim> StepWriter::strides_of(const Shape& shape) {
    std::vector<Dim> strides(shape.size());
    Dim stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        strides[i] = stride;
        stride = stride * shape[i];
    }
    return strides;
}

void StepWriter::copy(const Copy& copy) {
    MergedShape merged = merge(copy.shape, {copy.x_strides, copy.y_strides});
    size_t rank = merged.shape.size();
    std::string t = copied_type();
    out_.open("{{");
    out_.line("const i64 shape[{}] = {};", rank, sizes_text(c_.plan, merged.shape));
    out_.line("const i64 x_strides[{}] = {};", rank, sizes_text(c_.plan, merged.strides[0]));
    out_.line("const i64 y_strides[{}] = {};", rank, sizes_text(c_.plan, merged.strides[1]));
    out_.line("const auto* from = reinterpret_cast<const {}*>(x) + {};", t, size(copy.x_offset));
    out_.line("auto* to = reinterpret_cast<{}*>(y) + {};", t, size(copy.y_offset));
    out_.line("f.parallel_ranges(map_rows(shape), {}, [=](Range rows) {{ copy_strided<{}, {}>(shape, rows, to, "
              "y_strides, from, x_strides); }});",
              size(element_count(merged.shape)), rank, t);
    out_.close();
}

void StepWriter::emit_transpose() {
    input("x", 0);
    output();
    std::vector<Dim> from = strides_of(type(0).shape()), strides;
    for (int64_t axis : TransposeOp(*node_).perm()) strides.push_back(from[static_cast<size_t>(axis)]);
    copy({result_type().shape(), strides, strides_of(result_type().shape()), 0, 0});
}

void StepWriter::emit_broadcast() {
    input("x", 0);
    output();
    copy({result_type().shape(), broadcast_strides(type(0).shape(), result_type().shape()),
          strides_of(result_type().shape()), 0, 0});
}

void StepWriter::emit_slice() {
    SliceOp slice(*node_);
    input("x", 0);
    output();
    std::vector<Dim> strides = strides_of(type(0).shape());
    Dim offset = 0;
    for (size_t i = 0; i < strides.size(); i++) {
        offset = offset + slice.starts()[i] * strides[i];
        // A step beyond 64 bits leads to a second element of no tensor that exists.
        try {
            strides[i] = strides[i] * Dim(slice.steps()[i]);
        } catch (const DimOverflow&) {
            strides[i] = 0;
        }
    }
    copy({result_type().shape(), strides, strides_of(result_type().shape()), offset, 0});
}

void StepWriter::emit_concat() {
    output();
    size_t at = axis_of(result_type());
    std::vector<Dim> strides = strides_of(result_type().shape());
    Dim offset = 0;
    for (Value* operand : node_->operands()) {
        out_.open("{{");
        input("x", *operand);
        copy({operand->type().shape(), strides_of(operand->type().shape()), strides, 0, offset});
        out_.close();
        offset = offset + operand->type().shape()[at] * strides[at];
    }
}

void StepWriter::emit_pad() {
    input("x", 0);
    output();
    std::string_view t = cxx_name(result_type().dtype());
    out_.open("{{");
    out_.line("const i64 shape[1] = {{{}}};", size(element_count(result_type().shape())));
    out_.line("const i64 strides[1] = {{1}};");
    out_.line("f.parallel_ranges(map_rows(shape), shape[0], [=](Range rows) {{ fill_strided<1, {}>(shape, rows, y, "
              "strides, {}({})); }});",
              t, t, number_text(PadOp(*node_).value()));
    out_.close();
    std::vector<Dim> strides = strides_of(result_type().shape());
    Dim offset = 0;
    for (size_t i = 0; i < strides.size(); i++) offset = offset + PadOp(*node_).low()[i] * strides[i];
    copy({type(0).shape(), strides_of(type(0).shape()), strides, 0, offset});
}

void StepWriter::emit_relayout() {
    const Type &x = type(0), &y = result_type();
    input("x", 0);
    output();
    bool to_plain = y.layout().is_plain();
    const Type& framed = to_plain ? x : y;
    bool is_padded = framed.layout().kind == Layout::Padded;
    CUVIL_ASSERT(!(to_plain && is_padded) && (to_plain || x.layout().is_plain()),
                 "relayout of " + x.text() + " to " + y.text());
    out_.line("const auto l = {};", is_padded ? padded(framed) : blocked(framed));
    std::string_view to = to_plain ? "plain" : is_padded ? "padded" : "blocked";
    out_.line("const i64 n = {};", size(x.dim(0)));
    out_.line("f.parallel_ranges(n * {}, {}, [=](Range planes) {{ relayout_to_{}(n, l, planes, x, y); }});",
              is_padded ? "l.channels" : "l.blocks()", size(element_count(x.shape())), to);
}

// ---- Data-dependent ops

void StepWriter::emit_gather() {
    const Type &x = type(0), &indices = type(1);
    size_t at = axis_of(x);
    int check = c_.plan.check(fmt::format("index {{0}} is out of range for axis {} of size {{1}}", at), c_.step.name);
    input("x", 0);
    input("indices", 1);
    output();
    out_.line("const i64 outer = {}, axis = {}, inner = {}, count = {};", size(product(x.shape(), 0, at)),
              size(x.shape()[at]), size(product(x.shape(), at + 1, x.shape().size())),
              size(element_count(indices.shape())));
    out_.open("f.parallel_ranges(outer * count, outer * count * inner, [=, &f](Range rows) {{");
    std::string t = copied_type();
    out_.line("const i64 wrong = gather(outer, axis, inner, count, rows, reinterpret_cast<const {}*>(x), indices, "
              "reinterpret_cast<{}*>(y));",
              t, t);
    out_.open("if (wrong >= 0) {{");
    out_.line("f.report({}, wrong);", check);
    out_.close();
    out_.close("});");
    out_.open("if (const i64 wrong = f.reported(); wrong >= 0) {{");
    out_.line("f.fail({}, static_cast<i64>(indices[wrong]), axis);", check);
    out_.close();
}

void StepWriter::emit_nonzero() {
    const Type& x = type(0);
    int count = c_.plan.dim_index.at(Dim::symbol(NonzeroOp(*node_).count()));
    std::string_view t = x.dtype() == DType::Bool ? "u8" : cxx_name(x.dtype());
    out_.line("const auto* x = f.at<{}>({});", t, c_.plan.buffer(*node_->operand(0)));
    out_.line("const i64 shape[{}] = {};", std::max<int64_t>(1, x.rank()),
              x.rank() == 0 ? "{1}" : sizes_text(c_.plan, x.shape()));
    out_.line("f.d[{}] = nonzero_count({}, x);", count, size(element_count(x.shape())));
    allocate();
    output();
    out_.line("nonzero_fill({}, shape, x, y, 1, f.d[{}]);", x.rank(), count);
}

void StepWriter::emit_dims() {
    output();
    const Shape& values = DimsOp(*node_).values();
    for (size_t i = 0; i < values.size(); i++)
        out_.line("y[{}] = static_cast<{}>({});", i, cxx_name(result_type().dtype()), size(values[i]));
}

void StepWriter::emit_require() {
    RequireOp require(*node_);
    const Shape &left = require.left(), &right = require.right();
    int check = c_.plan.check(require.message(), c_.step.name);
    for (size_t i = 0; i < left.size(); i++) {
        out_.open("if ({} != {}) {{", size(left[i]), size(right[i]));
        out_.line("return f.fail({}, {}, {});", check, size(left[i]), size(right[i]));
        out_.close();
    }
}

} // namespace

std::string step_declaration(const Step& step) { return fmt::format("void step_{}(Frame& f)", step.number); }

std::string step_code(const StepContext& context) { return StepWriter(context).write(); }

} // namespace cuvil
