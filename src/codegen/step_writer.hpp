// What the code of all steps has in common. Each family of kernels derives a writer of its own and lists its kernels in
// a table.
#pragma once

#include "codegen/loop_code.hpp"
#include "codegen/step_code.hpp"
#include "plan/views.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

// A kernel, and what writes the body of a step that calls it.
struct KernelCode {
    std::string_view kernel;
    std::string (*write)(const StepContext&);
};

// The tables.
std::span<const KernelCode> attention_code();
std::span<const KernelCode> data_code();
std::span<const KernelCode> indexing_code();
std::span<const KernelCode> linear_code();
std::span<const KernelCode> movement_code();
std::span<const KernelCode> order_code();
std::span<const KernelCode> recurrent_code();
std::span<const KernelCode> reduction_code();
std::span<const KernelCode> sampling_code();
std::span<const KernelCode> window_code();

class StepWriter {
public:
    explicit StepWriter(const StepContext& context) : c_(context), node_(context.step.anchor), loop_(context) {}

    // The statements that `emit` writes.
    template <class Writer, void (Writer::*emit)()> static std::string write(const StepContext& context) {
        Writer writer(context);
        (writer.*emit)();
        return writer.out_.text();
    }

protected:
    // ---- Access to the node

    const Type& type(size_t operand) const { return node_->operand(operand)->type(); }
    const Type& result_type() const { return node_->result().type(); }
    // The node's axis, counted from the front.
    size_t axis_of(const Type& t) const {
        int64_t axis = node_->get<int64_t>("axis");
        return static_cast<size_t>(axis < 0 ? axis + t.rank() : axis);
    }
    std::string size(const Dim& d) const { return size_text(c_.plan, d); }
    std::string factor(const Dim& d) const { return factor_text(c_.plan, d); }
    // For a constant expression: a size that only a run knows is `unknown`.
    std::string known_size(const Dim& d) const { return d.constant() ? size(d) : "unknown"; }
    const std::string& kernel() const { return c_.plan.kernels.at(node_); }

    // Declares `const T* name = ...` for an operand and `T* y = ...` for the step's result.
    void input(std::string_view name, const Value& value) {
        std::string_view t = cxx_name(value.type().dtype());
        out_.line("const {}* {} = f.at<{}>({});", t, name, t, c_.buffer(value));
    }
    void input(std::string_view name, size_t operand) { input(name, *node_->operand(operand)); }
    // What the size of the result depends on must be known before.
    void output() {
        allocate();
        const Value& value = *c_.step.outputs.at(0);
        std::string_view t = cxx_name(value.type().dtype());
        out_.line("{}* y = f.at<{}>({});", t, t, c_.buffer(value));
    }
    // Memory for results whose size is known only now.
    void allocate();

    std::string blocked(const Type& t) const { return image("Blocked", t); }
    std::string padded(const Type& t) const { return image("Padded", t); }
    std::string phased(const Type& t) const {
        const Layout& l = t.layout();
        return fmt::format("phased({}, {}, {}, {}, {}, {}, {})", size(t.dim(1)), size(t.dim(2)), size(t.dim(3)),
                           size(l.top), size(l.left), size(l.bottom), size(l.right));
    }
    std::string image(std::string_view kind, const Type& t) const {
        const Layout& l = t.layout();
        return fmt::format("{}{{.channels = {}, .h = {}, .w = {}, .top = {}, .left = {}, .bottom = {}, .right = {}}}",
                           kind, size(t.dim(1)), size(t.dim(2)), size(t.dim(3)), size(l.top), size(l.left),
                           size(l.bottom), size(l.right));
    }

    // How an operand is read, and how the result is written, in the order of axes that the op gives it.
    View view(size_t operand) const { return view_of(*node_->operand(operand)); }
    View result_view() const;
    // Where matrix i of a stack begins, as an expression.
    std::string offset_of_matrix(const View& view, std::string_view i) const;

    // Copies need no arithmetic, so the element type only has to have the right size.
    std::string copied_type() const;
    // Of a row-major tensor.
    static std::vector<Dim> strides_of(const Shape& shape) { return row_major_strides(shape); }

    const StepContext& c_;
    OpNode* node_; // nullptr: a loop of elementwise ops
    CxxText out_;
    LoopCode loop_;

private:
    void check_sizes(const Value& value);
};

} // namespace cuvil
