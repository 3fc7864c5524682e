// Copies between shapes and layouts.
#include "codegen/step_writer.hpp"
#include "ops/views.hpp"
#include "support/diagnostics.hpp"

namespace cuvil {
namespace {

class MovementWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_transpose();
    void emit_broadcast();
    void emit_slice();
    void emit_slice_blocked();
    void emit_concat();
    void emit_concat_blocked();
    void emit_pad();
    void emit_relayout();

private:
    // One strided copy; dims that both sides walk without a gap are merged.
    struct Copy {
        Shape shape;
        std::vector<Dim> x_strides, y_strides;
        Dim x_offset, y_offset;
    };
    void copy(const Copy& copy);
};

void MovementWriter::copy(const Copy& copy) {
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

void MovementWriter::emit_transpose() {
    input("x", 0);
    output();
    std::vector<Dim> from = strides_of(type(0).shape()), strides;
    for (int64_t axis : TransposeOp(*node_).perm()) strides.push_back(from[static_cast<size_t>(axis)]);
    copy({result_type().shape(), strides, strides_of(result_type().shape()), 0, 0});
}

void MovementWriter::emit_broadcast() {
    input("x", 0);
    output();
    copy({result_type().shape(), broadcast_strides(type(0).shape(), result_type().shape()),
          strides_of(result_type().shape()), 0, 0});
}

void MovementWriter::emit_slice() {
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

void MovementWriter::emit_slice_blocked() {
    input("x", 0);
    output();
    out_.line("const auto xl = {};", blocked(type(0)));
    out_.line("const auto yl = {};", blocked(result_type()));
    const Type& y = result_type();
    out_.line(
        "f.parallel_ranges({} * yl.blocks(), {}, [=](Range planes) {{ slice_blocks(xl, {}, yl, planes, x, y); }});",
        factor(y.dim(0)), size(element_count(y.shape())), size(Dim::floordiv(SliceOp(*node_).starts()[1], 16)));
}

void MovementWriter::emit_concat() {
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

void MovementWriter::emit_concat_blocked() {
    output();
    out_.line("const auto yl = {};", blocked(result_type()));
    Dim first = 0;
    out_.open("const BlockedPart parts[] = {{");
    for (Value* operand : node_->operands()) {
        out_.line("{{f.at<f32>({}), {}, {}}},", c_.buffer(*operand), blocked(operand->type()), size(first));
        first = first + Dim::ceildiv(operand->type().dim(1), 16);
    }
    out_.close("};");
    const Type& y = result_type();
    out_.line("const BlockedPart* all = parts;");
    out_.line(
        "f.parallel_ranges({} * yl.blocks(), {}, [=](Range planes) {{ concat_blocks(all, {}, yl, planes, y); }});",
        factor(y.dim(0)), size(element_count(y.shape())), node_->operands().size());
}

void MovementWriter::emit_pad() {
    input("x", 0);
    output();
    std::string_view t = cxx_name(result_type().dtype());
    out_.open("{{");
    out_.line("const i64 shape[1] = {{{}}};", size(element_count(result_type().shape())));
    out_.line("const i64 strides[1] = {{1}};");
    out_.line("f.parallel_ranges(map_rows(shape), shape[0], [=](Range rows) {{ fill_strided<1, {}>(shape, rows, y, "
              "strides, cast<{}>({})); }});",
              t, t, number_text(PadOp(*node_).value()));
    out_.close();
    std::vector<Dim> strides = strides_of(result_type().shape());
    Dim offset = 0;
    for (size_t i = 0; i < strides.size(); i++) offset = offset + PadOp(*node_).low()[i] * strides[i];
    copy({type(0).shape(), strides_of(type(0).shape()), strides, 0, offset});
}

void MovementWriter::emit_relayout() {
    const Type &x = type(0), &y = result_type();
    input("x", 0);
    output();
    bool to_plain = y.layout().is_plain();
    const Type& framed = to_plain ? x : y;
    Layout::Kind kind = framed.layout().kind;
    bool is_padded = kind == Layout::Padded, is_phased = kind == Layout::Phased;
    CUVIL_ASSERT(to_plain ? kind == Layout::Blocked : x.layout().is_plain(),
                 "relayout of " + x.text() + " to " + y.text());
    out_.line("const auto l = {};", is_padded ? padded(framed) : is_phased ? phased(framed) : blocked(framed));
    out_.line("const i64 n = {};", size(x.dim(0)));
    if (is_phased) {
        out_.line("const i64 h = {}, w = {};", size(x.dim(2)), size(x.dim(3)));
        out_.line("f.parallel_ranges(n, {}, [=](Range images) {{ relayout_to_phased(n, h, w, l, images, x, y); }});",
                  size(element_count(x.shape()) * Dim(4)));
        return;
    }
    std::string_view to = to_plain ? "plain" : name(kind);
    out_.line("f.parallel_ranges(n * {}, {}, [=](Range planes) {{ relayout_to_{}(n, l, planes, x, y); }});",
              is_padded ? "l.channels" : "l.blocks()", size(element_count(x.shape()) * Dim(4)), to);
}

template <void (MovementWriter::*emit)()> constexpr auto write = StepWriter::write<MovementWriter, emit>;

const KernelCode rows[] = {
    {"transpose", write<&MovementWriter::emit_transpose>},
    {"broadcast", write<&MovementWriter::emit_broadcast>},
    {"slice", write<&MovementWriter::emit_slice>},
    {"slice_blocked", write<&MovementWriter::emit_slice_blocked>},
    {"concat", write<&MovementWriter::emit_concat>},
    {"concat_blocked", write<&MovementWriter::emit_concat_blocked>},
    {"pad", write<&MovementWriter::emit_pad>},
    {"relayout", write<&MovementWriter::emit_relayout>},
};

} // namespace

std::span<const KernelCode> movement_code() { return rows; }

} // namespace cuvil
