// Reads and writes whose places are data.
#include "codegen/step_writer.hpp"
#include "ops/views.hpp"

namespace cuvil {
namespace {

class IndexingWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit_gather();
    void emit_gather_packed();
    void emit_gather_elements();
    void emit_gather_nd();
    void emit_scatter_elements();
    void emit_scatter_nd();

private:
    // Runs `call`, which gives the position of the first wrong index in its range or -1, over parts of `count`. The
    // sentence speaks of the axis and the size that belong to the position, which are expressions over `wrong`.
    void run_checked(const std::string& count, const std::string& work, const std::string& call,
                     const std::string& axis, const std::string& size);
    std::string columns(const Type& data, const Type& indices, size_t axis);
    void copy_data();
    void declare_tuples(const Type& data, size_t first_axis, int64_t length);
    // The template argument of scatter_elements and scatter_tuples.
    std::string_view reduction() const;
    // Only combining looks at elements; what is moved just has the right size.
    std::string element_type() const;
};

void IndexingWriter::run_checked(const std::string& count, const std::string& work, const std::string& call,
                                 const std::string& axis, const std::string& size) {
    int check = c_.plan.check("index {0} is out of range for axis {1} of size {2}", c_.step.name);
    out_.open("f.parallel_ranges({}, {}, [=, &f](Range range) {{", count, work);
    out_.open("if (const i64 wrong = {}; wrong >= 0) {{", call);
    out_.line("f.report({}, wrong);", check);
    out_.close();
    out_.close("});");
    out_.open("if (const i64 wrong = f.reported(); wrong >= 0) {{");
    out_.line("f.fail({}, static_cast<i64>(indices[wrong]), {}, {});", check, axis, size);
    out_.close();
}

void IndexingWriter::emit_gather() {
    const Type &x = type(0), &indices = type(1);
    size_t at = axis_of(x);
    input("x", 0);
    input("indices", 1);
    output();
    out_.line("const i64 outer = {}, axis = {}, inner = {}, count = {};", size(element_count(x.shape(), 0, at)),
              size(x.shape()[at]), size(element_count(x.shape(), at + 1, x.shape().size())),
              size(element_count(indices.shape())));
    std::string t = copied_type();
    run_checked("outer * count", "outer * count * inner",
                fmt::format("gather(outer, axis, inner, count, range, reinterpret_cast<const {0}*>(x), indices, "
                            "reinterpret_cast<{0}*>(y))",
                            t),
                std::to_string(at), "axis");
}

void IndexingWriter::emit_gather_packed() {
    input("x", 0);
    input("indices", 1);
    output();
    out_.line("const i64 axis = {}, inner = {}, count = {};", size(c_.plan.packed_rows.at(node_)),
              size(result_type().dim(-1)), size(element_count(type(1).shape())));
    run_checked("count", "count * inner", "gather_packed(axis, inner, range, x, indices, y)", "0", "axis");
}

std::string IndexingWriter::columns(const Type& data, const Type& indices, size_t axis) {
    Shape shape = indices.shape();
    std::vector<Dim> index_strides = strides_of(shape), data_strides = strides_of(data.shape());
    Dim count = shape[axis], index_step = index_strides[axis], data_step = data_strides[axis];
    shape[axis] = 1;
    return fmt::format("Columns<{}>{{.shape = {}, .index_strides = {}, .data_strides = {}, .count = {}, .index_step = "
                       "{}, .size = {}, .data_step = {}}}",
                       shape.size(), sizes_text(c_.plan, shape), sizes_text(c_.plan, index_strides),
                       sizes_text(c_.plan, data_strides), size(count), size(index_step), size(data.shape()[axis]),
                       size(data_step));
}

void IndexingWriter::emit_gather_elements() {
    size_t at = axis_of(type(0));
    input("x", 0);
    input("indices", 1);
    output();
    out_.line("const auto c = {};", columns(type(0), type(1), at));
    std::string t = copied_type();
    run_checked("c.columns()", size(element_count(type(1).shape())),
                fmt::format("gather_elements(c, range, reinterpret_cast<const {0}*>(x), indices, "
                            "reinterpret_cast<{0}*>(y))",
                            t),
                std::to_string(at), "c.size");
}

std::string_view IndexingWriter::reduction() const {
    const auto& name = node_->get<std::string>("reduction");
    return name == "add"   ? "AddTo"
           : name == "mul" ? "MultiplyBy"
           : name == "max" ? "MaximumWith"
           : name == "min" ? "MinimumWith"
                           : "Replace";
}

std::string IndexingWriter::element_type() const {
    return reduction() == "Replace" ? copied_type() : std::string(cxx_name(result_type().dtype()));
}

void IndexingWriter::copy_data() {
    input("x", 0);
    input("indices", 1);
    input("updates", 2);
    output();
    out_.line("Frame::copy(reinterpret_cast<u8*>(y), reinterpret_cast<const u8*>(x), {});",
              size(result_type().bytes()));
}

void IndexingWriter::emit_scatter_elements() {
    size_t at = axis_of(type(0));
    copy_data();
    out_.line("const auto c = {};", columns(type(0), type(1), at));
    std::string t = element_type();
    run_checked("c.columns()", size(element_count(type(1).shape())),
                fmt::format("scatter_elements<{1}>(c, range, indices, reinterpret_cast<const {0}*>(updates), "
                            "reinterpret_cast<{0}*>(y))",
                            t, reduction()),
                std::to_string(at), "c.size");
}

void IndexingWriter::declare_tuples(const Type& data, size_t first_axis, int64_t length) {
    size_t end = first_axis + static_cast<size_t>(length);
    Shape named(data.shape().begin() + static_cast<int64_t>(first_axis),
                data.shape().begin() + static_cast<int64_t>(end));
    out_.line("const i64 sizes[{}] = {};", length, sizes_text(c_.plan, named));
    out_.line("const i64 inner = {};", size(element_count(data.shape(), end, data.shape().size())));
}

void IndexingWriter::emit_gather_nd() {
    const Type &x = type(0), &indices = type(1);
    auto batch_axes = static_cast<size_t>(GatherNdOp(*node_).batch_axes());
    int64_t length = *indices.dim(-1).constant();
    input("x", 0);
    input("indices", 1);
    output();
    declare_tuples(x, batch_axes, length);
    size_t end = indices.shape().size() - 1;
    out_.line("const i64 rows = {}, per_batch = {}, batch_size = {};", size(element_count(indices.shape(), 0, end)),
              size(element_count(indices.shape(), batch_axes, end)),
              size(element_count(x.shape(), batch_axes, x.shape().size())));
    std::string t = copied_type();
    run_checked(
        "rows", "rows * inner",
        fmt::format("gather_tuples(sizes, inner, per_batch, batch_size, range, reinterpret_cast<const {0}*>(x), "
                    "indices, reinterpret_cast<{0}*>(y))",
                    t),
        fmt::format("{} + wrong % {}", batch_axes, length), fmt::format("sizes[wrong % {}]", length));
}

void IndexingWriter::emit_scatter_nd() {
    const Type& indices = type(1);
    int64_t length = *indices.dim(-1).constant();
    copy_data();
    declare_tuples(type(0), 0, length);
    out_.line("const i64 rows = {};", size(element_count(indices.shape(), 0, indices.shape().size() - 1)));
    std::string t = element_type();
    run_checked("inner", "rows * inner",
                fmt::format("scatter_tuples<{1}>(sizes, inner, rows, range, indices, reinterpret_cast<const "
                            "{0}*>(updates), reinterpret_cast<{0}*>(y))",
                            t, reduction()),
                fmt::format("wrong % {}", length), fmt::format("sizes[wrong % {}]", length));
}

template <void (IndexingWriter::*emit)()> constexpr auto write = StepWriter::write<IndexingWriter, emit>;

const KernelCode rows[] = {
    {"gather", write<&IndexingWriter::emit_gather>},
    {"gather_packed", write<&IndexingWriter::emit_gather_packed>},
    {"gather_elements", write<&IndexingWriter::emit_gather_elements>},
    {"gather_nd", write<&IndexingWriter::emit_gather_nd>},
    {"scatter_elements", write<&IndexingWriter::emit_scatter_elements>},
    {"scatter_nd", write<&IndexingWriter::emit_scatter_nd>},
};

} // namespace

std::span<const KernelCode> indexing_code() { return rows; }

} // namespace cuvil
