#include "codegen/step_code.hpp"

#include "codegen/step_writer.hpp"
#include "support/diagnostics.hpp"

#include <algorithm>

namespace cuvil {
namespace {

class LoopStepWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit() {
        allocate();
        loop_.emit(out_);
    }
};

const KernelCode* find_code(std::string_view kernel) {
    for (std::span<const KernelCode> table :
         {window_code(), sampling_code(), recurrent_code(), linear_code(), reduction_code(), movement_code(),
          indexing_code(), order_code(), data_code(), attention_code()})
        if (auto found = std::ranges::find(table, kernel, &KernelCode::kernel); found != table.end()) return &*found;
    return nullptr;
}

} // namespace

// bind() has checked the sizes that it knows, but for those in regions, which may never run.
void StepWriter::check_sizes(const Value& value) {
    for (const Dim& d : value.type().shape()) {
        if (d.lower_bound().value_or(-1) >= 0 || (c_.region_depth == 0 && c_.plan.known_at_entry(d))) continue;
        int check = c_.plan.check("a tensor would have the size {0}", c_.step.name);
        out_.open("if (const i64 size = {}; size < 0) {{", size(d));
        out_.line("return f.fail({}, size);", check);
        out_.close();
    }
}

void StepWriter::allocate() {
    for (const Value* value : c_.step.outputs) {
        check_sizes(*value);
        const Buffer& buffer = c_.plan.buffers[static_cast<size_t>(c_.plan.buffer(*value))];
        if (buffer.place != Buffer::Dynamic) continue;
        out_.line("f.b[{}] = f.alloc({}, {});", c_.buffer(*value), block_bytes_text(c_.plan, buffer.bytes),
                  c_.region_depth);
        out_.open("if (f.status != CUVIL_OK) {{");
        out_.line("return;");
        out_.close();
    }
}

std::string StepWriter::copied_type() const {
    switch (size_of(result_type().dtype())) {
    case 1: return "u8";
    case 2: return "u16";
    case 4: return "u32";
    default: return "u64";
    }
}

std::string StepWriter::offset_of_matrix(const View& view, std::string_view i) const {
    std::string at = size(view.offset);
    size_t leading = view.shape.size() - 2;
    Dim inner = 1;
    for (size_t axis = leading; axis-- > 0;) {
        if (!view.strides[axis].is(0))
            at += fmt::format(" + {} / larger(1, {}) % larger(1, {}) * {}", i, size(inner), size(view.shape[axis]),
                              factor(view.strides[axis]));
        inner = inner * view.shape[axis];
    }
    return at;
}

View StepWriter::result_view() const {
    const Shape& shape = result_type().shape();
    View view{shape, strides_of(shape), 0};
    auto transpose = c_.plan.stored_transposed.find(node_);
    if (transpose == c_.plan.stored_transposed.end()) return view;
    for (size_t i = 0; i < shape.size(); i++) {
        auto axis = static_cast<size_t>(transpose->second[i]);
        view.shape[axis] = shape[i];
        view.strides[axis] = strides_of(shape)[i];
    }
    return view;
}

StepCode step_code(const Program& program, Plan& plan, const Step& step, int region_depth) {
    StepCode code;
    const StepContext context{program, plan, step, region_depth, code.buffers};
    const OpNode* node = step.anchor;
    if (!node) {
        code.body = StepWriter::write<LoopStepWriter, &LoopStepWriter::emit>(context);
        return code;
    }
    std::string_view kernel = plan.kernels.at(node);
    if (node->op().starts_with("reduce_") && kernel != "global_avg_pool") kernel = "reduce";
    const KernelCode* found = find_code(kernel);
    CUVIL_ASSERT(found, "no code for kernel " + std::string(kernel));
    code.body = found->write(context);
    return code;
}

} // namespace cuvil
