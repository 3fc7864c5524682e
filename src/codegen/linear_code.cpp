// Matrix products.
#include "codegen/step_writer.hpp"

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
    const View left = view(0), result = result_view();
    Dim m = a.dim(-2), k = a.dim(-1), n = y.dim(-1), batch = 1;
    Dim leading = element_count(a.shape(), 0, a.shape().size() - 2);
    Dim lda = left.strides[left.strides.size() - 2], ldc = result.strides[result.strides.size() - 2];
    // A stack of matrices against one matrix is one product with more rows.
    auto rows = row_stride(left), result_rows = row_stride(result);
    bool is_shared = b.rank() == 3;
    if (is_shared && rows && result_rows) {
        m = m * leading;
        lda = *rows;
        ldc = *result_rows;
    } else {
        batch = leading;
    }
    bool is_contiguous = left.strides.back().is(1);
    out_.line("const Gemm g = {{.m = {}, .n = {}, .k = {}, .lda = {}, .ldc = {}, .a_step = {}}};", size(m), size(n),
              size(k), size(lda), size(ldc), is_contiguous ? "1" : size(left.strides.back()));
    input("a", 0);
    input("b", 1);
    output();
    loop_.declare_operands(out_);
    std::string element = b.dtype() == DType::F32 ? "" : fmt::format("<{}>", cxx_name(b.dtype()));
    out_.line("constexpr GemmTiles tiles = gemm_tiles{}({}, {}, {});", element, known_size(m), known_size(n),
              known_size(k));
    Dim work = m * n * k * batch;
    std::string_view run = is_contiguous ? "0" : "1";
    auto epilogue = [&](std::string_view offset) {
        out_.open("auto epilogue = [=](vec<f32> v, [[maybe_unused]] At at) {{");
        if (!offset.empty()) out_.line("at.offset += {};", offset);
        loop_.emit_epilogue(out_, "v", "load_lanes({0} + at.offset, at.lanes)",
                            "load_lanes({0} + at.channel, at.lanes)");
        out_.close("};");
    };
    if (batch.is(1)) {
        epilogue("");
        out_.line("f.parallel(gemm_tasks(g, tiles), {}, [=](i64 task) {{ gemm_task<tiles, {}>(g, task, a + {}, b, y, "
                  "epilogue); }});",
                  size(work), run, size(left.offset));
        return;
    }
    out_.line("const i64 tasks = larger(1, gemm_tasks(g, tiles));");
    out_.open("f.parallel(g.m * g.n == 0 ? 0 : {} * tasks, {}, [=](i64 i) {{", factor(batch), size(work));
    out_.line("const i64 matrix = i / tasks, result = {};", offset_of_matrix(result, "matrix"));
    epilogue("result");
    out_.line("gemm_task<tiles, {}>(g, i % tasks, a + {}, b + {}, y + result, epilogue);", run,
              offset_of_matrix(left, "matrix"), is_shared ? "0" : "matrix * packed_size(g.k, g.n)");
    out_.close("});");
}

void LinearWriter::emit_pack() {
    const View b = view(0);
    const Type& matrices = type(0);
    const Dim &k = matrices.dim(-2), &n = matrices.dim(-1);
    Dim batch = element_count(matrices.shape(), 0, matrices.shape().size() - 2);
    input("b", 0);
    output();
    out_.line("const i64 k = {}, n = {};", size(k), size(n));
    out_.line("f.parallel({}, {}, [=](i64 i) {{ pack_b(k, n, b + {}, {}, {}, y + i * packed_size(k, n)); }});",
              size(batch), size(batch * k * n), offset_of_matrix(b, "i"), size(b.strides[b.strides.size() - 2]),
              size(b.strides.back()));
}

void LinearWriter::emit_matmul_any() {
    const Type &a = type(0), &b = type(1), &y = result_type();
    Dim m = a.dim(-2), k = a.dim(-1), n = y.dim(-1), batch = element_count(a.shape(), 0, a.shape().size() - 2);
    input("a", 0);
    input("b", 1);
    output();
    out_.line("const i64 m = {}, k = {}, n = {};", size(m), size(k), size(n));
    out_.open("f.parallel({} * m, {}, [=](i64 i) {{", factor(batch), size(batch * m * n * k));
    out_.line("const i64 matrix = {};", b.rank() > 2 ? "i / m" : "0");
    out_.line("matmul_any(1, n, k, a + i * k, k, 1, b + matrix * k * n, n, 1, y + i * n, n);");
    out_.close("});");
}

void LinearWriter::emit_eliminate() {
    const Shape& shape = type(0).shape();
    const Dim& n = shape.back();
    Dim batch = element_count(shape, 0, shape.size() - 2);
    input("x", 0);
    output();
    out_.line("const i64 n = {};", size(n));
    out_.line("f.parallel({}, {}, [=](i64 i) {{ eliminate(n, x + i * n * n, y + i * n * n); }});", size(batch),
              size(batch * n * n * n));
}

template <void (LinearWriter::*emit)()> constexpr auto write = StepWriter::write<LinearWriter, emit>;

const KernelCode rows[] = {
    {"gemm", write<&LinearWriter::emit_gemm>},           {"gemm_bf16", write<&LinearWriter::emit_gemm>},
    {"gemm_f16", write<&LinearWriter::emit_gemm>},       {"gemm_i8", write<&LinearWriter::emit_gemm>},
    {"pack_b", write<&LinearWriter::emit_pack>},         {"matmul_any", write<&LinearWriter::emit_matmul_any>},
    {"eliminate", write<&LinearWriter::emit_eliminate>},
};

} // namespace

std::span<const KernelCode> linear_code() { return rows; }

} // namespace cuvil
