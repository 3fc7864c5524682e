// Reductions, softmax and norms.
#include "codegen/step_writer.hpp"

#include <algorithm>

namespace cuvil {
namespace {

class ReductionWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_reduce();
    void emit_softmax();
    void emit_norm();
};

// The axes are neighbours, axes of size 1 aside: DecomposePass sees to it.
void ReductionWriter::emit_reduce() {
    const Type& x = type(0);
    size_t begin = x.shape().size(), end = 0;
    for (int64_t axis : node_->get<std::vector<int64_t>>("axes")) {
        auto i = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
        if (x.shape()[i].is(1)) continue;
        begin = std::min(begin, i);
        end = std::max(end, i + 1);
    }
    if (begin > end) begin = end;
    out_.line("const i64 outer = {}, n = {}, inner = {};", size(element_count(x.shape(), 0, begin)),
              size(element_count(x.shape(), begin, end)), size(element_count(x.shape(), end, x.shape().size())));
    input("x", 0);
    output();
    out_.line(
        "f.parallel_ranges(outer * inner, {}, [=](Range outputs) {{ reduce<{}>(outer, n, inner, outputs, x, y); }});",
        size(element_count(x.shape())), kernel());
}

void ReductionWriter::emit_softmax() {
    const Type& x = type(0);
    size_t at = axis_of(x);
    out_.line("const i64 outer = {}, n = {}, inner = {};", size(element_count(x.shape(), 0, at)), size(x.shape()[at]),
              size(element_count(x.shape(), at + 1, x.shape().size())));
    input("x", 0);
    output();
    out_.line("f.parallel_ranges(outer * inner, {}, [=](Range columns) {{ {}(outer, n, inner, columns, x, y); }});",
              size(element_count(x.shape()) * Dim(8)), kernel());
}

// The axes from the node's on are a row; scale and bias, where there are any, have a row's shape.
void ReductionWriter::emit_norm() {
    const Type& x = type(0);
    size_t at = axis_of(x);
    std::string_view t = cxx_name(x.dtype());
    out_.line("const i64 rows = {}, n = {};", size(element_count(x.shape(), 0, at)),
              size(element_count(x.shape(), at, x.shape().size())));
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

template <void (ReductionWriter::*emit)()> constexpr auto write = StepWriter::write<ReductionWriter, emit>;

const KernelCode rows[] = {
    {"hardmax", write<&ReductionWriter::emit_softmax>},     {"layer_norm", write<&ReductionWriter::emit_norm>},
    {"log_softmax", write<&ReductionWriter::emit_softmax>}, {"reduce", write<&ReductionWriter::emit_reduce>},
    {"rms_norm", write<&ReductionWriter::emit_norm>},       {"softmax", write<&ReductionWriter::emit_softmax>},
};

} // namespace

std::span<const KernelCode> reduction_code() { return rows; }

} // namespace cuvil
