// LSTM, GRU and RNN: each direction becomes a matrix product over all time steps and a layer over its result.
#include "import/onnx/rows.hpp"
#include "support/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cuvil::onnx {
namespace {

struct Function {
    std::string_view name, becomes;
    bool has_alpha, has_beta;
    double alpha, beta; // when not given
};

constexpr Function functions[] = {
    {"Affine", "affine", true, true, 1, 0},
    {"Elu", "elu", true, false, 1, 0},
    {"HardSigmoid", "hard_sigmoid", true, true, 0.2, 0.5},
    {"LeakyRelu", "leaky_relu", true, false, 0.01, 0},
    {"Relu", "relu", false, false, 0, 0},
    {"ScaledTanh", "scaled_tanh", true, true, 1, 1},
    {"Sigmoid", "sigmoid", false, false, 0, 0},
    {"Softplus", "softplus", false, false, 0, 0},
    {"Softsign", "softsign", false, false, 0, 0},
    {"Tanh", "tanh", false, false, 0, 0},
    {"ThresholdedRelu", "thresholded_relu", true, false, 1, 0},
};

const Function& find_function(std::string_view name) {
    auto equal = [&](const Function& f) { return equal_but_for_case(f.name, name); };
    const auto* found = std::ranges::find_if(functions, equal);
    if (found == std::end(functions)) bad_attribute(fmt::format("there is no activation \"{}\"", name));
    return *found;
}

class Layer {
public:
    // `functions_per_direction` are the defaults; states counts initial_h and initial_c.
    Layer(Node& node, std::string_view op, int64_t gates, std::vector<std::string_view> defaults)
        : node_(node), build_(node.build), op_(op), gates_(gates), defaults_(std::move(defaults)) {}

    Values make() {
        read();
        std::vector<Value*> y, h, c;
        for (int64_t d = 0; d < directions_; d++) {
            OpNode& layer = make_direction(d);
            y.push_back(&build_.unsqueeze(layer.result(0), {1}));
            h.push_back(&build_.unsqueeze(layer.result(1), {0}));
            if (op_ == "lstm") c.push_back(&build_.unsqueeze(layer.result(2), {0}));
        }
        Value& all = join(y, 1);
        Values results = {batch_first_ ? &build_.transpose(all, {2, 0, 1, 3}) : &all, &last(h)};
        if (!c.empty()) results.push_back(&last(c));
        return results;
    }

private:
    void read() {
        std::string_view direction = node_.text("direction", "forward");
        if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
            bad_attribute(fmt::format("attribute \"direction\" is \"{}\"", direction));
        directions_ = direction == "bidirectional" ? 2 : 1;
        reverse_ = direction == "reverse";
        batch_first_ = node_.integer("layout", 0) != 0;
        // x, w, r, bias, lengths, initial_h, initial_c, peepholes
        constexpr std::array<int64_t, 8> ranks{3, 3, 3, 2, 1, 3, 3, 2};
        for (size_t i = 0; i < node_.input_count(); i++)
            if (node_.has_input(i)) expect_rank(node_, i, ranks.at(i));
        x_ = batch_first_ ? &build_.transpose(node_.input(0), {1, 0, 2}) : &node_.input(0);
        hidden_ = node_.type(2).dim(2);
        if (node_.has_attribute("hidden_size")) build_.require_equal(hidden_, node_.integer("hidden_size"));
        read_activations();
    }

    void read_activations() {
        size_t per_direction = defaults_.size(), count = per_direction * static_cast<size_t>(directions_);
        std::vector<std::string_view> names;
        for (int64_t d = 0; d < directions_; d++) names.insert(names.end(), defaults_.begin(), defaults_.end());
        if (auto given = node_.texts("activations")) names = *given;
        if (names.size() != count) bad_attribute(fmt::format("attribute \"activations\" needs {} names", count));
        std::vector<float> alphas = node_.reals("activation_alpha").value_or(std::vector<float>{});
        std::vector<float> betas = node_.reals("activation_beta").value_or(std::vector<float>{});
        size_t next_alpha = 0, next_beta = 0;
        auto take = [](bool has, const std::vector<float>& given, size_t& next, double fallback) {
            return has && next < given.size() ? static_cast<double>(given[next++]) : fallback;
        };
        for (std::string_view name : names) {
            const Function& f = find_function(name);
            activations_.emplace_back(f.becomes);
            alphas_.push_back(take(f.has_alpha, alphas, next_alpha, f.alpha));
            betas_.push_back(take(f.has_beta, betas, next_beta, f.beta));
        }
    }

    template <class T> std::vector<T> of_direction(const std::vector<T>& all, int64_t d) const {
        auto size = static_cast<int64_t>(defaults_.size());
        return std::vector<T>(all.begin() + d * size, all.begin() + (d + 1) * size);
    }

    // What an input [directions, ...] has for one of them.
    Value& for_direction(Value& all, int64_t d) {
        build_.require_equal(all.type().dim(0), directions_);
        return build_.squeeze(build_.slice(all, 0, d, 1), {0});
    }

    // An initial state [batch, hidden].
    Value& state(size_t input, int64_t d) {
        Shape shape = {x_->type().dim(1), hidden_};
        if (!node_.has_input(input)) return build_.broadcast_to(build_.scalar(*x_, 0), shape);
        Value& all = batch_first_ ? build_.transpose(node_.input(input), {1, 0, 2}) : node_.input(input);
        return build_.fit(for_direction(all, d), shape);
    }

    OpNode& make_direction(int64_t d) {
        Dim steps = x_->type().dim(0), batch = x_->type().dim(1);
        Value& w = build_.swap_last_axes(for_direction(node_.input(1), d));
        Value* product = &build_.matmul(*x_, w);
        Value* reset_bias = nullptr;
        bool resets_product = op_ == "gru" && node_.integer("linear_before_reset", 0) != 0;
        if (node_.has_input(3)) {
            Value& both = for_direction(node_.input(3), d);
            Dim all = hidden_ * Dim(gates_), early = resets_product ? hidden_ * Dim(2) : all;
            build_.require_equal(both.type().dim(0), all * Dim(2));
            Value& of_x = build_.slice(both, 0, 0, all);
            Value* of_state = &build_.slice(both, 0, all, early);
            if (resets_product) {
                reset_bias = &build_.slice(both, 0, all + early, hidden_);
                of_state = &build_.concat({of_state, &build_.broadcast_to(build_.scalar(*x_, 0), {hidden_})}, 0);
            }
            product = &build_.elementwise("add", {product, &build_.elementwise("add", {&of_x, of_state})});
        }
        Value& r = build_.fit(for_direction(node_.input(2), d), {hidden_ * Dim(gates_), hidden_});
        Value& weights = build_.swap_last_axes(build_.reshape(r, {gates_, hidden_, hidden_}));
        std::vector<Value*> operands = {&build_.fit(*product, {steps, batch, hidden_ * Dim(gates_)}), &weights,
                                        &state(5, d)};
        if (op_ == "lstm") operands.push_back(&state(6, d));
        Value* lengths = node_.optional_input(4);
        operands.push_back(lengths ? &build_.fit(*lengths, {batch}) : nullptr);
        Attributes attributes = {{"activations", of_direction(activations_, d)},
                                 {"alphas", of_direction(alphas_, d)},
                                 {"betas", of_direction(betas_, d)},
                                 {"clip", node_.real("clip", 0)},
                                 {"reverse", d == 1 || reverse_}};
        if (op_ == "lstm") {
            operands.push_back(peepholes(d));
            attributes["couples"] = node_.integer("input_forget", 0) != 0;
        }
        if (op_ == "gru") {
            operands.push_back(reset_bias);
            attributes["resets_product"] = resets_product;
        }
        return build_.rewriter().create(op_, operands, std::move(attributes));
    }

    Value* peepholes(int64_t d) {
        if (!node_.has_input(7)) return nullptr;
        return &build_.reshape(build_.fit(for_direction(node_.input(7), d), {hidden_ * Dim(3)}), {3, hidden_});
    }

    Value& join(const std::vector<Value*>& parts, int64_t axis) {
        return parts.size() == 1 ? *parts[0] : build_.concat(parts, axis);
    }

    Value& last(const std::vector<Value*>& states) {
        Value& all = join(states, 0);
        return batch_first_ ? build_.transpose(all, {1, 0, 2}) : all;
    }

    Node& node_;
    GraphBuilder& build_;
    std::string_view op_;
    int64_t gates_;
    std::vector<std::string_view> defaults_;
    int64_t directions_ = 1;
    bool reverse_ = false, batch_first_ = false;
    Value* x_ = nullptr; // [steps, batch, inputs]
    Dim hidden_;
    std::vector<std::string> activations_;
    std::vector<double> alphas_, betas_;
};

Values lstm(Node& node) { return Layer(node, "lstm", 4, {"Sigmoid", "Tanh", "Tanh"}).make(); }
Values gru(Node& node) { return Layer(node, "gru", 3, {"Sigmoid", "Tanh"}).make(); }
Values rnn(Node& node) { return Layer(node, "rnn", 1, {"Tanh"}).make(); }

const Row rows[] = {
    {"GRU", 3, 6, gru, 3, 6,
     "activation_alpha activation_beta activations clip direction hidden_size linear_before_reset output_sequence",
     "matmul, gru"},
    {"GRU", 7, 13, gru, 3, 6,
     "activation_alpha activation_beta activations clip direction hidden_size linear_before_reset", "matmul, gru"},
    {"GRU", 14, newest, gru, 3, 6,
     "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset",
     "matmul, gru"},
    {"LSTM", 1, 6, lstm, 3, 8,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget output_sequence",
     "matmul, lstm"},
    {"LSTM", 7, 13, lstm, 3, 8, "activation_alpha activation_beta activations clip direction hidden_size input_forget",
     "matmul, lstm"},
    {"LSTM", 14, newest, lstm, 3, 8,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget layout", "matmul, lstm"},
    {"RNN", 1, 6, rnn, 3, 6, "activation_alpha activation_beta activations clip direction hidden_size output_sequence",
     "matmul, rnn"},
    {"RNN", 7, 13, rnn, 3, 6, "activation_alpha activation_beta activations clip direction hidden_size", "matmul, rnn"},
    {"RNN", 14, newest, rnn, 3, 6, "activation_alpha activation_beta activations clip direction hidden_size layout",
     "matmul, rnn"},
};

} // namespace

std::span<const Row> recurrent_rows() { return rows; }

} // namespace cuvil::onnx
