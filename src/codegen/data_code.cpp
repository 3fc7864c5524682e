// Ops that look at data, and what is known of sizes only while running.
#include "codegen/step_writer.hpp"
#include "ops/views.hpp"

#include <algorithm>

namespace cuvil {
namespace {

class DataWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_nonzero();
    void emit_dims();
    void emit_range();
    void emit_read_size();
    void emit_require();
};

void DataWriter::emit_nonzero() {
    const Type& x = type(0);
    int count = c_.plan.dim_index.at(Dim::symbol(NonzeroOp(*node_).count()));
    std::string_view t = x.dtype() == DType::Bool ? "u8" : cxx_name(x.dtype());
    out_.line("const auto* x = f.at<{}>({});", t, c_.buffer(*node_->operand(0)));
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
        out_.line("y[{}] = static_cast<{}>({});", i, cxx_name(result_type().dtype()),
                  wrapping_size_text(c_.plan, values[i]));
}

void DataWriter::emit_range() {
    input("start", 0);
    input("delta", 1);
    output();
    out_.line("const i64 n = {};", size(result_type().dim(0)));
    out_.line("f.parallel_ranges(n, n, [=](Range range) {{ fill_range(range, *start, *delta, y); }});");
}

void DataWriter::emit_read_size() {
    ReadSizeOp read(*node_);
    input("x", 0);
    out_.line("const i64 value = static_cast<i64>(x[{}]);", read.at());
    // The lowest integer has no opposite.
    out_.line("f.d[{}] = {};", c_.plan.dim_index.at(Dim::symbol(read.count())),
              read.negated() ? "value < 0 ? -larger(value, -INT64_MAX) : 0" : "larger(value, 0)");
}

void DataWriter::emit_require() {
    RequireOp require(*node_);
    const Shape &left = require.left(), &right = require.right();
    int check = c_.plan.check(require.message(), c_.step.name);
    for (size_t i = 0; i < left.size(); i++) {
        out_.open("{{");
        out_.line("CheckedSizes sizes;");
        out_.line("const i64 left = {}, right = {};", checked_size_text(c_.plan, left[i]),
                  checked_size_text(c_.plan, right[i]));
        out_.open("if (left != right || sizes.overflow) {{");
        out_.line("return f.fail({}, left, right);", check);
        out_.close();
        out_.close();
    }
}

template <void (DataWriter::*emit)()> constexpr auto write = StepWriter::write<DataWriter, emit>;

const KernelCode rows[] = {
    {"nonzero", write<&DataWriter::emit_nonzero>}, {"dims", write<&DataWriter::emit_dims>},
    {"range", write<&DataWriter::emit_range>},     {"read_size", write<&DataWriter::emit_read_size>},
    {"require", write<&DataWriter::emit_require>},
};

} // namespace

std::span<const KernelCode> data_code() { return rows; }

} // namespace cuvil
