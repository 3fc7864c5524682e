// Recurrent layers.
#include "kernels/recurrent.hpp"

#include "eval/element_types.hpp"
#include "recurrent_activations.hpp"

namespace cuvil::evaluation {
namespace {

template <class T> const T* optional(const Array* x) { return x ? elements<T>(*x) : nullptr; }

template <class T> void run(const Recurrence& layer, std::span<const Result> results) {
    const Result& y = results[0];
    bool is_lstm = layer.op == "lstm";
    const Recurrent<T> p{y.shape[0],
                         y.shape[1],
                         y.shape[2],
                         layer.reverse,
                         layer.clip,
                         elements<T>(*layer.x),
                         {elements<T>(*layer.weights), false},
                         elements<T>(*layer.initial_h),
                         optional<T>(layer.initial_c),
                         optional<i32>(layer.lengths),
                         optional<T>(layer.peepholes),
                         optional<T>(layer.reset_bias),
                         elements<T>(y),
                         elements<T>(results[1]),
                         is_lstm ? elements<T>(results[2]) : nullptr};
    auto activation = [&](size_t i) {
        return [&layer, i](vec<T> v) {
            return activate<T>(layer.activations[i], splat(static_cast<T>(layer.alphas[i])),
                               splat(static_cast<T>(layer.betas[i])), v);
        };
    };
    auto round = [&](auto task) {
        for (i64 panel = 0; panel < recurrent_tasks(p); panel++) task(panel);
    };
    for (i64 step = 0; step < p.steps; step++) {
        if (is_lstm) {
            round([&](i64 panel) {
                lstm_task(p, step, panel, layer.is_special, activation(0), activation(1), activation(2));
            });
        } else if (layer.op == "rnn") {
            round([&](i64 panel) { rnn_task(p, step, panel, activation(0)); });
        } else if (layer.is_special) {
            round([&](i64 panel) { gru_reset_behind_task(p, step, panel, activation(0), activation(1)); });
        } else {
            round([&](i64 panel) { gru_gates_task(p, step, panel, activation(0)); });
            round([&](i64 panel) { gru_hidden_task(p, step, panel, activation(1)); });
        }
    }
    finish_recurrent(p);
}

} // namespace

bool recur(const Recurrence& layer, std::span<const Result> y) {
    return with_type(y[0].type, FloatingTypes(), [&]<class T>() { run<T>(layer, y); });
}

} // namespace cuvil::evaluation
