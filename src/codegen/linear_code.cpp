// Matrix products.
#include "codegen/step_writer.hpp"
#include "ops/views.hpp"

namespace cuvil {
namespace {

class LinearWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_gemm();
    void emit_matmul_any();
    void emit_pack();
    void emit_eliminate();
};

void LinearWriter::emit_gemm() {
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
    out_.line("constexpr GemmTiles tiles = gemm_tiles({}, {}, {});", known_size(m), known_size(n), known_size(k));
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
        out_.line(
            "f.parallel(gemm_tasks(g, tiles), {}, [=](i64 task) {{ gemm_task<tiles>(g, task, a, b, y, epilogue); }});",
            size(work));
        return;
    }
    out_.line("const i64 tasks = larger(1, gemm_tasks(g, tiles));");
    out_.open("f.parallel(g.m * g.n == 0 ? 0 : ({}) * tasks, {}, [=](i64 i) {{", size(batch), size(work));
    out_.line("const i64 matrix = i / tasks;");
    epilogue();
    out_.line("gemm_task<tiles>(g, i % tasks, a + matrix * g.m * g.k, b + matrix * packed_size(g.k, g.n), y + matrix * "
              "g.m * g.n, epilogue);");
    out_.close("});");
}

void LinearWriter::emit_pack() {
    // The axes of b in the order in which the product sees them.
    const Shape& x = type(0).shape();
    std::vector<Dim> x_strides = strides_of(x), strides;
    std::vector<int64_t> perm = PackOp(*node_).perm();
    for (size_t i = perm.size(); i < x.size(); i++) perm.push_back(static_cast<int64_t>(i));
    Shape b;
    for (int64_t axis : perm) {
        b.push_back(x.at(static_cast<size_t>(axis)));
        strides.push_back(x_strides[static_cast<size_t>(axis)]);
    }
    size_t rows = b.size() - 2, columns = b.size() - 1;
    Dim batch = product(b, 0, rows);
    input("b", 0);
    output();
    std::string at; // where matrix i begins
    for (size_t i = 0; i < rows; i++)
        at += fmt::format(" + i / larger(1, {}) % larger(1, {}) * {}", size(product(b, i + 1, rows)), size(b[i]),
                          size(strides[i]));
    out_.line("const i64 k = {}, n = {};", size(b[rows]), size(b[columns]));
    out_.line("f.parallel({}, {}, [=](i64 i) {{ pack_b(k, n, b{}, {}, {}, y + i * packed_size(k, n)); }});",
              size(batch), size(batch * b[rows] * b[columns]), at, size(strides[rows]), size(strides[columns]));
}

void LinearWriter::emit_matmul_any() {
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

void LinearWriter::emit_eliminate() {
    const Shape& shape = type(0).shape();
    const Dim& n = shape.back();
    Dim batch = product(shape, 0, shape.size() - 2);
    input("x", 0);
    output();
    out_.line("const i64 n = {};", size(n));
    out_.line("f.parallel({}, {}, [=](i64 i) {{ eliminate(n, x + i * n * n, y + i * n * n); }});", size(batch),
              size(batch * n * n * n));
}

template <void (LinearWriter::*emit)()> constexpr auto write = StepWriter::write<LinearWriter, emit>;

const KernelCode rows[] = {
    {"eliminate", write<&LinearWriter::emit_eliminate>},
    {"gemm", write<&LinearWriter::emit_gemm>},
    {"matmul_any", write<&LinearWriter::emit_matmul_any>},
    {"pack_b", write<&LinearWriter::emit_pack>},
};

} // namespace

std::span<const KernelCode> linear_code() { return rows; }

} // namespace cuvil
