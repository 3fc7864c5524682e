// Ops that look at data, and what is known of sizes only while running.
#include "codegen/step_writer.hpp"
#include "ops/views.hpp"

#include <algorithm>

namespace cuvil {
namespace {

class DataWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_gather();
    void emit_nonzero();
    void emit_dims();
    void emit_require();
};

void DataWriter::emit_gather() {
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

void DataWriter::emit_nonzero() {
    const Type& x = type(0);
    int count = c_.plan.dim_index.at(Dim::symbol(NonzeroOp(*node_).count()));
    std::string_view t = x.dtype() == DType::Bool ? "u8" : cxx_name(x.dtype());
    out_.line("const auto* x = f.at<{}>({});", t, c_.plan.buffer(*node_->operand(0)));
    out_.line("const i64 shape[{}] = {};", std::max<int64_t>(1, x.rank()),
              x.rank() == 0 ? "{1}" : sizes_text(c_.plan, x.shape()));
    out_.line("f.d[{}] = nonzero_count({}, x);", count, size(element_count(x.shape())));
    output();
    out_.line("nonzero_fill({}, shape, x, y, 1, f.d[{}]);", x.rank(), count);
}

void DataWriter::emit_dims() {
    output();
    const Shape& values = DimsOp(*node_).values();
    for (size_t i = 0; i < values.size(); i++)
        out_.line("y[{}] = static_cast<{}>({});", i, cxx_name(result_type().dtype()), size(values[i]));
}

void DataWriter::emit_require() {
    RequireOp require(*node_);
    const Shape &left = require.left(), &right = require.right();
    int check = c_.plan.check(require.message(), c_.step.name);
    for (size_t i = 0; i < left.size(); i++) {
        out_.open("if ({} != {}) {{", size(left[i]), size(right[i]));
        out_.line("return f.fail({}, {}, {});", check, size(left[i]), size(right[i]));
        out_.close();
    }
}

template <void (DataWriter::*emit)()> constexpr auto write = StepWriter::write<DataWriter, emit>;

const KernelCode rows[] = {
    {"gather", write<&DataWriter::emit_gather>},
    {"nonzero", write<&DataWriter::emit_nonzero>},
    {"dims", write<&DataWriter::emit_dims>},
    {"require", write<&DataWriter::emit_require>},
};

} // namespace

std::span<const KernelCode> data_code() { return rows; }

} // namespace cuvil
