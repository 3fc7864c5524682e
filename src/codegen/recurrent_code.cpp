// Recurrent layers.
#include "codegen/step_writer.hpp"
#include "ops/recurrent.hpp"
#include "ops/views.hpp"

namespace cuvil {
namespace {

class RecurrentWriter : public StepWriter {
public:
    using StepWriter::StepWriter;
    void emit();

private:
    void declare_activations();
    void declare_layer();
    void emit_round(std::string_view call);
    std::string pointer(size_t operand) const;
    std::string result(size_t i) const;
};

std::string RecurrentWriter::pointer(size_t operand) const {
    const Value* value = operand < node_->operands().size() ? node_->operand(operand) : nullptr;
    return value ? fmt::format("f.at<{}>({})", cxx_name(value->type().dtype()), c_.buffer(*value)) : "nullptr";
}

std::string RecurrentWriter::result(size_t i) const {
    if (i >= node_->results().size()) return "nullptr";
    const Value& value = node_->result(i);
    return fmt::format("f.at<{}>({})", cxx_name(value.type().dtype()), c_.buffer(value));
}

void RecurrentWriter::declare_activations() {
    const auto& names = node_->get<std::vector<std::string>>("activations");
    for (size_t i = 0; i < names.size(); i++) {
        std::string_view expression = recurrent_activation(names[i]);
        out_.open("const auto activation{} = [](vec<T> v) {{", i);
        for (std::string_view name : {"alpha", "beta"})
            out_.line("[[maybe_unused]] const vec<T> {} = splat(T({}));", name,
                      number_text(node_->get<std::vector<double>>(std::string(name) + "s")[i]));
        out_.line("return vec<T>({});", expression);
        out_.close("};");
    }
}

void RecurrentWriter::declare_layer() {
    const Type& y = result_type();
    bool is_lstm = node_->op() == "lstm";
    size_t lengths = is_lstm ? 4 : 3;
    out_.line("const Recurrent<T> p = {{.steps = {}, .batch = {}, .hidden = {}, .reverse = {}, .clip = {},",
              size(y.dim(0)), size(y.dim(1)), size(y.dim(2)), node_->get<bool>("reverse"),
              number_text(node_->get<double>("clip")));
    out_.line("    .x = {}, .weights = {{{}, {}}}, .initial_h = {}, .initial_c = {}, .lengths = {},", pointer(0),
              pointer(1), type(1).rank() == 4, pointer(2), is_lstm ? pointer(3) : "nullptr", pointer(lengths));
    out_.line("    .peepholes = {}, .reset_bias = {}, .y = {}, .h = {}, .c = {}}};", is_lstm ? pointer(5) : "nullptr",
              node_->op() == "gru" ? pointer(4) : "nullptr", result(0), result(1), result(2));
}

void RecurrentWriter::emit_round(std::string_view call) {
    Dim gates = node_->op() == "lstm" ? 4 : node_->op() == "gru" ? 3 : 1;
    const Type& y = result_type();
    out_.line("f.parallel(recurrent_tasks(p), {}, [=](i64 panel) {{ {}; }});",
              size(gates * y.dim(1) * y.dim(2) * y.dim(2)), call);
}

void RecurrentWriter::emit() {
    allocate();
    out_.line("using T = {};", cxx_name(result_type().dtype()));
    declare_activations();
    declare_layer();
    out_.open("for (i64 step = 0; step < p.steps; step++) {{");
    if (node_->op() == "lstm") {
        emit_round(fmt::format("lstm_task(p, step, panel, {}, activation0, activation1, activation2)",
                               LstmOp(*node_).couples()));
    } else if (node_->op() == "rnn") {
        emit_round("rnn_task(p, step, panel, activation0)");
    } else if (GruOp(*node_).resets_product()) {
        emit_round("gru_reset_behind_task(p, step, panel, activation0, activation1)");
    } else {
        emit_round("gru_gates_task(p, step, panel, activation0)");
        emit_round("gru_hidden_task(p, step, panel, activation1)");
    }
    out_.close();
    out_.line("finish_recurrent(p);");
}

const KernelCode rows[] = {
    {"recurrent", StepWriter::write<RecurrentWriter, &RecurrentWriter::emit>},
};

} // namespace

std::span<const KernelCode> recurrent_code() { return rows; }

} // namespace cuvil
