// Ops that rank elements along an axis, or go through it step by step.
#include "codegen/step_writer.hpp"
#include "ops/views.hpp"

namespace cuvil {
namespace {

class OrderWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_arg_max() { emit_arg_extreme(true); }
    void emit_arg_min() { emit_arg_extreme(false); }
    void emit_top_k();
    void emit_sort_rows();
    void emit_cum_sum() { emit_cumulative("Sum"); }
    void emit_cum_prod() { emit_cumulative("Prod"); }
    void emit_non_max_suppression();

private:
    void emit_arg_extreme(bool is_largest);
    void emit_cumulative(std::string_view op);
    // The operand, the result, and the sizes before, along and behind the axis.
    void begin_axis();
};

void OrderWriter::begin_axis() {
    const Shape& shape = type(0).shape();
    size_t at = axis_of(type(0));
    input("x", 0);
    output();
    out_.line("const i64 outer = {}, n = {}, inner = {};", size(element_count(shape, 0, at)), size(shape[at]),
              size(element_count(shape, at + 1, shape.size())));
}

void OrderWriter::emit_arg_extreme(bool is_largest) {
    begin_axis();
    out_.line("f.parallel_ranges(outer * inner, outer * n * inner, [=](Range outputs) {{ arg_extreme<{}, {}>(n, inner, "
              "outputs, x, y); }});",
              is_largest, node_->get<bool>("last"));
}

void OrderWriter::emit_top_k() {
    TopKOp top(*node_);
    begin_axis();
    out_.line("f.parallel_ranges(outer * inner, 8 * outer * n * inner, [=](Range columns) {{ top_k<{}>(n, {}, inner, "
              "columns, x, y); }});",
              top.largest(), size(top.k().at(0)));
}

void OrderWriter::emit_sort_rows() {
    std::string_view t = type(0).dtype() == DType::Bool ? "u8" : cxx_name(type(0).dtype());
    out_.line("const auto* x = f.at<{}>({});", t, c_.buffer(*node_->operand(0)));
    output();
    out_.line("sort_rows({}, {}, x, y);", size(type(0).dim(0)), size(type(0).dim(1)));
}

void OrderWriter::emit_cumulative(std::string_view op) {
    begin_axis();
    out_.line(
        "f.parallel_ranges(outer * inner, outer * n * inner, [=](Range columns) {{ cumulate<{}, {}, {}>(n, inner, "
        "columns, x, y); }});",
        op, node_->get<bool>("exclusive"), node_->get<bool>("reverse"));
}

void OrderWriter::emit_non_max_suppression() {
    NonMaxSuppressionOp op(*node_);
    const Shape& scores = type(1).shape();
    for (size_t i = 0; i < node_->operands().size(); i++)
        if (node_->operand(i)) input(node_->def().operands[i].name, i);
    output();
    out_.line("const i64 classes = {}, n = {};", size(scores[1]), size(scores[2]));
    out_.open("f.parallel({} * classes, {}, [=](i64 i) {{", factor(scores[0]), size(element_count(scores) * Dim(64)));
    bool has_threshold = op.score_threshold() != nullptr;
    out_.line("suppress_overlaps(n, boxes + i / classes * n * 4, {}, scores + i * n, order + i * n, *most, "
              "*iou_threshold, {}, {}, y + i * n);",
              op.centered(), has_threshold, has_threshold ? "*score_threshold" : "0.0f");
    out_.close("});");
}

template <void (OrderWriter::*emit)()> constexpr auto write = StepWriter::write<OrderWriter, emit>;

const KernelCode rows[] = {
    {"arg_max", write<&OrderWriter::emit_arg_max>},
    {"arg_min", write<&OrderWriter::emit_arg_min>},
    {"top_k", write<&OrderWriter::emit_top_k>},
    {"sort_rows", write<&OrderWriter::emit_sort_rows>},
    {"cum_sum", write<&OrderWriter::emit_cum_sum>},
    {"cum_prod", write<&OrderWriter::emit_cum_prod>},
    {"non_max_suppression", write<&OrderWriter::emit_non_max_suppression>},
};

} // namespace

std::span<const KernelCode> order_code() { return rows; }

} // namespace cuvil
