// Attention.
#include "codegen/step_writer.hpp"
#include "ops/views.hpp"

namespace cuvil {
namespace {

class AttentionWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit();

private:
    // The stride of the last axis but `i` of a matrix.
    std::string stride(const View& view, size_t i) const { return size(view.strides[view.strides.size() - 1 - i]); }
};

void AttentionWriter::emit() {
    const AttentionOp op(*node_);
    const View q = view(0), k = view(1), v = view(2), y = result_view();
    const View mask = op.mask() ? view_of(*op.mask()) : View{{1, 1}, {0, 0}, 0};
    const Dim rows = type(0).dim(-2), depth = type(0).dim(-1), keys = type(1).dim(-1), width = type(2).dim(-1);
    const Dim heads = element_count(type(0).shape(), 0, type(0).shape().size() - 2);
    input("q", 0);
    input("k", 1);
    input("v", 2);
    if (op.mask())
        input("mask", 3);
    else
        out_.line("const NoMask* mask = nullptr;");
    output();
    out_.line(
        "const Attention g = {{.rows = {}, .keys = {}, .depth = {}, .width = {}, .q_row = {}, .k_depth = {}, .k_key "
        "= {}, .v_key = {}, .v_width = {}, .mask_row = {}, .mask_key = {}, .y_row = {}, .scale = f32({}), .fill = "
        "f32({}), .nan_to_zero = {}}};",
        size(rows), size(keys), size(depth), size(width), stride(q, 1), stride(k, 1), stride(k, 0), stride(v, 1),
        stride(v, 0), stride(mask, 1), stride(mask, 0), stride(y, 1), number_text(op.scale()), number_text(op.fill()),
        op.nan_to_zero());
    out_.line("constexpr GemmTiles tiles = attention_tiles({});", known_size(rows));
    out_.line("const i64 tasks = attention_tasks(g, tiles);");
    out_.open("f.parallel({} * tasks, {}, [=](i64 i) {{", factor(heads),
              size(heads * rows * keys * (depth + width + 16)));
    out_.line("const i64 head = i / tasks;");
    out_.line("attention_task<tiles>(g, i % tasks, q + {}, k + {}, v + {}, mask + {}, y + {});",
              offset_of_matrix(q, "head"), offset_of_matrix(k, "head"), offset_of_matrix(v, "head"),
              offset_of_matrix(mask, "head"), offset_of_matrix(y, "head"));
    out_.close("});");
}

const KernelCode rows[] = {{"attention", StepWriter::write<AttentionWriter, &AttentionWriter::emit>}};

} // namespace

std::span<const KernelCode> attention_code() { return rows; }

} // namespace cuvil
