#pragma once
// Recurrent layers: LSTM, GRU and the plain RNN. What the inputs contribute to the gates is a matrix product over all
// time steps, made beforehand; here is what depends on the step before. A step is cut into tasks of 16 hidden units,
// which need no more of one another than the hidden state of the step before, so that all tasks of a step must be done
// before the next one begins. The hidden states are the rows of y; sequences of a batch may have lengths of their own,
// and what lies beyond one is 0. `reverse` walks from the last element of a sequence to its first.
//
// A gate is the product of the state with its weights, one chain of fma, to which the inputs' part is added.
#include "kernels/math.hpp"
#include "kernels/parallel.hpp"

namespace cuvil {
inline namespace CUVIL_ISA {

// Weights [gates][hidden][hidden], that of unit k for unit j of a gate at [gate][k][j], or each gate packed by pack_b
// of gemm.hpp: [gates][ceil(hidden / 16)][hidden][16].
template <class T> struct RecurrentWeights {
    const T* data;
    bool packed;
};

template <class T> struct Recurrent {
    i64 steps, batch, hidden;
    bool reverse;
    f64 clip;   // of what the activations are given; 0: none
    const T* x; // [steps][batch][gates][hidden], with all biases
    RecurrentWeights<T> weights;
    const T* initial_h;  // [batch][hidden]
    const T* initial_c;  // [batch][hidden]; LSTM only
    const i32* lengths;  // [batch], or nullptr
    const T* peepholes;  // [3][hidden], or nullptr; LSTM only
    const T* reset_bias; // [hidden], or nullptr; GRU only
    T* y;                // [steps][batch][hidden]
    T* h;                // [batch][hidden], the last state; until the end it is the kernel's own
    T* c;                // [batch][hidden]; LSTM only

    i64 time(i64 step) const { return reverse ? steps - 1 - step : step; }
    i64 length(i64 b) const {
        return lengths == nullptr ? steps : larger(0, smaller(static_cast<i64>(lengths[b]), steps));
    }
    bool is_first(i64 t, i64 b) const { return t == (reverse ? length(b) - 1 : 0); }
    const T* state_before(i64 t, i64 b) const {
        return is_first(t, b) ? initial_h + b * hidden : y + ((reverse ? t + 1 : t - 1) * batch + b) * hidden;
    }
};

template <class T> constexpr i64 recurrent_tasks(const Recurrent<T>& p) { return ceil_div(p.hidden, lane_count); }

// Sequences of a batch that share the weights they read.
#if defined(__AVX512F__)
inline constexpr int rows_at_once = 4;
#else
inline constexpr int rows_at_once = 1;
#endif

// gate_sums for a panel of which all 16 columns may be read, or only those that are there.
template <int First, int Gates, int Rows, bool IsWhole, class T>
[[gnu::noinline]] void panel_sums(const RecurrentWeights<T>& w, i64 hidden, i64 panel, const T* const* state, T* sums) {
    const i64 lanes = IsWhole ? lane_count : hidden - panel * lane_count;
    const i64 row_step = w.packed ? lane_count : hidden;
    const i64 gate_step = (w.packed ? ceil_div(hidden, lane_count) * lane_count : hidden) * hidden;
    const T* weights = w.data + First * gate_step + panel * lane_count * (w.packed ? hidden : 1);
    vec<T> sum[Rows][Gates];
    UNROLL for (int r = 0; r < Rows; r++) {
        UNROLL for (int g = 0; g < Gates; g++) { sum[r][g] = splat(T(0)); }
    }
    for (i64 k = 0; k < hidden; k++, weights += row_step) {
        UNROLL for (int g = 0; g < Gates; g++) {
            const vec<T> weight = load_lanes(weights + g * gate_step, lanes);
            UNROLL for (int r = 0; r < Rows; r++) { sum[r][g] = fma(splat(state[r][k]), weight, sum[r][g]); }
        }
    }
    UNROLL for (int r = 0; r < Rows; r++) {
        UNROLL for (int g = 0; g < Gates; g++) { store(sums + (r * Gates + g) * lane_count, sum[r][g]); }
    }
}

// sums[row][gate] = the states at state[row] times the weights of gates `First`, `First` + 1, ... for 16 units.
template <int First, int Gates, int Rows, class T>
INLINE void gate_sums(const RecurrentWeights<T>& w, i64 hidden, i64 panel, const T* const* state, T* sums) {
    if (w.packed || (panel + 1) * lane_count <= hidden) {
        panel_sums<First, Gates, Rows, true>(w, hidden, panel, state, sums);
    } else {
        panel_sums<First, Gates, Rows, false>(w, hidden, panel, state, sums);
    }
}

// For each sequence that has an element at time t, f(b, sums[Gates * 16]), where the states are those that state(b)
// points to.
template <int First, int Gates, class T, class S, class F>
INLINE void for_sequences(const Recurrent<T>& p, i64 t, i64 panel, S state, F f) {
    alignas(64) T sums[rows_at_once * Gates * lane_count];
    const T* states[rows_at_once];
    for (i64 b = 0; b < p.batch;) {
        i64 rows = 0;
        while (rows < rows_at_once && b + rows < p.batch && t < p.length(b + rows)) {
            states[rows] = state(b + rows);
            rows++;
        }
        if (rows == rows_at_once) {
            gate_sums<First, Gates, rows_at_once>(p.weights, p.hidden, panel, states, sums);
        } else {
            for (i64 r = 0; r < rows; r++) {
                gate_sums<First, Gates, 1>(p.weights, p.hidden, panel, states + r, sums + r * Gates * lane_count);
            }
        }
        for (i64 r = 0; r < rows; r++) {
            f(b + r, sums + r * Gates * lane_count);
        }
        b += rows;
        if (rows < rows_at_once && b < p.batch) {
            T* out = p.y + (t * p.batch + b) * p.hidden + panel * lane_count;
            store_lanes(out, splat(T(0)), smaller(lane_count, p.hidden - panel * lane_count));
            b++;
        }
    }
}

// The lanes of one task in rows of `hidden`.
struct Units {
    i64 at, lanes;
    template <class T> INLINE vec<T> load(const T* row) const { return load_lanes(row + at, lanes); }
    template <class T> INLINE void store(T* row, vec<T> v) const { store_lanes(row + at, v, lanes); }
};

template <class T> INLINE Units units_of(const Recurrent<T>& p, i64 panel) {
    return {panel * lane_count, smaller(lane_count, p.hidden - panel * lane_count)};
}

template <class T> INLINE vec<T> clipped(const Recurrent<T>& p, vec<T> v) {
    if (p.clip > 0) {
        const vec<T> limit = splat(static_cast<T>(p.clip));
        v = maximum(minimum(v, limit), -limit);
    }
    return v;
}

// Gates in the order input, output, forget, cell. `couples`: the forget gate is 1 - the input gate.
template <class T, class F, class G, class H>
INLINE void lstm_task(const Recurrent<T>& p, i64 step, i64 panel, bool couples, F f, G g, H h) {
    const i64 t = p.time(step);
    const Units units = units_of(p, panel);
    const auto state = [&](i64 b) { return p.state_before(t, b); };
    for_sequences<0, 4>(p, t, panel, state, [&](i64 b, const T* sums) {
        const T* x = p.x + (t * p.batch + b) * 4 * p.hidden;
        const vec<T> before = units.load((p.is_first(t, b) ? p.initial_c : p.c) + b * p.hidden);
        const auto gate = [&](i64 i, const vec<T>* cell, i64 peephole) {
            vec<T> v = units.load(x + i * p.hidden) + load(sums + i * lane_count);
            if (cell != nullptr && p.peepholes != nullptr) {
                v = fma(units.load(p.peepholes + peephole * p.hidden), *cell, v);
            }
            return clipped(p, v);
        };
        const vec<T> in = f(gate(0, &before, 0));
        const vec<T> forget = couples ? splat(T(1)) - in : f(gate(2, &before, 2));
        const vec<T> cell = fma(forget, before, in * g(gate(3, nullptr, 0)));
        const vec<T> out = f(gate(1, &cell, 1));
        units.store(p.c + b * p.hidden, cell);
        units.store(p.y + (t * p.batch + b) * p.hidden, out * h(clipped(p, cell)));
    });
}

// Gate i of a GRU's unit panel, of what the input and the state add to it.
template <class T, class F>
INLINE vec<T> gru_gate(const Recurrent<T>& p, const Units& units, i64 i, const T* x, const T* sums, F f) {
    return f(clipped(p, units.load(x + i * p.hidden) + load(sums + i * lane_count)));
}

// Gates in the order update, reset, hidden. The reset gate scales the product with the state.
template <class T, class F, class G>
INLINE void gru_reset_behind_task(const Recurrent<T>& p, i64 step, i64 panel, F f, G g) {
    const i64 t = p.time(step);
    const Units units = units_of(p, panel);
    const auto state = [&](i64 b) { return p.state_before(t, b); };
    for_sequences<0, 3>(p, t, panel, state, [&](i64 b, const T* sums) {
        const T* x = p.x + (t * p.batch + b) * 3 * p.hidden;
        const vec<T> update = gru_gate(p, units, 0, x, sums, f);
        const vec<T> reset = gru_gate(p, units, 1, x, sums, f);
        vec<T> product = load(sums + 2 * lane_count);
        if (p.reset_bias != nullptr) {
            product = product + units.load(p.reset_bias);
        }
        const vec<T> hidden = g(clipped(p, fma(reset, product, units.load(x + 2 * p.hidden))));
        const vec<T> before = units.load(p.state_before(t, b));
        units.store(p.y + (t * p.batch + b) * p.hidden, fma(update, before, (splat(T(1)) - update) * hidden));
    });
}

// The reset gate scales the state itself, so a step is done in two rounds of tasks. The first leaves the update gate in
// y and the scaled state in h.
template <class T, class F> INLINE void gru_gates_task(const Recurrent<T>& p, i64 step, i64 panel, F f) {
    const i64 t = p.time(step);
    const Units units = units_of(p, panel);
    const auto state = [&](i64 b) { return p.state_before(t, b); };
    for_sequences<0, 2>(p, t, panel, state, [&](i64 b, const T* sums) {
        const T* x = p.x + (t * p.batch + b) * 3 * p.hidden;
        const vec<T> update = gru_gate(p, units, 0, x, sums, f);
        const vec<T> reset = gru_gate(p, units, 1, x, sums, f);
        units.store(p.y + (t * p.batch + b) * p.hidden, update);
        units.store(p.h + b * p.hidden, reset * units.load(p.state_before(t, b)));
    });
}

template <class T, class G> INLINE void gru_hidden_task(const Recurrent<T>& p, i64 step, i64 panel, G g) {
    const i64 t = p.time(step);
    const Units units = units_of(p, panel);
    const auto state = [&](i64 b) { return p.h + b * p.hidden; };
    for_sequences<2, 1>(p, t, panel, state, [&](i64 b, const T* sums) {
        const T* x = p.x + ((t * p.batch + b) * 3 + 2) * p.hidden;
        T* out = p.y + (t * p.batch + b) * p.hidden;
        const vec<T> update = units.load(out);
        const vec<T> hidden = g(clipped(p, units.load(x) + load(sums)));
        const vec<T> before = units.load(p.state_before(t, b));
        units.store(out, fma(update, before, (splat(T(1)) - update) * hidden));
    });
}

template <class T, class F> INLINE void rnn_task(const Recurrent<T>& p, i64 step, i64 panel, F f) {
    const i64 t = p.time(step);
    const Units units = units_of(p, panel);
    const auto state = [&](i64 b) { return p.state_before(t, b); };
    for_sequences<0, 1>(p, t, panel, state, [&](i64 b, const T* sums) {
        const T* x = p.x + (t * p.batch + b) * p.hidden;
        units.store(p.y + (t * p.batch + b) * p.hidden, f(clipped(p, units.load(x) + load(sums))));
    });
}

// After all steps: h, and c where there is one, become the last states.
template <class T> INLINE void finish_recurrent(const Recurrent<T>& p) {
    for (i64 b = 0; b < p.batch; b++) {
        const i64 length = p.length(b);
        const T* last =
            length == 0 ? p.initial_h + b * p.hidden : p.y + ((p.reverse ? 0 : length - 1) * p.batch + b) * p.hidden;
        for (i64 j = 0; j < p.hidden; j++) {
            p.h[b * p.hidden + j] = last[j];
            if (p.c != nullptr && length == 0) {
                p.c[b * p.hidden + j] = p.initial_c[b * p.hidden + j];
            }
        }
    }
}

} // namespace CUVIL_ISA
} // namespace cuvil
