"""LSTM, GRU and RNN against their equations in float64."""

import numpy as np
import pytest
from onnx import numpy_helper
from onnx_models import model, node, value

import cuvil

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {
    "Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "Tanh": lambda x, a, b: np.tanh(x),
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Softplus": lambda x, a, b: np.log1p(np.exp(x)),
    "Elu": lambda x, a, b: np.where(x >= 0, x, a * (np.exp(x) - 1)),
}


def one_direction(op, x, w, r, b, h, c, lengths, p, reverse, options, functions):
    steps, batch, hidden = len(x), x.shape[1], r.shape[1]
    y = np.zeros((steps, batch, hidden))
    clip = options.get("clip", np.inf)
    f = [lambda v, g=g: g(np.clip(v, -clip, clip)) for g in functions]
    wb, rb = b[: len(b) // 2], b[len(b) // 2 :]
    h, c = h.copy(), c.copy()
    for i in range(batch):
        times = range(lengths[i])
        for t in reversed(times) if reverse else times:
            parts = np.split(x[t, i] @ w.T + wb, GATES[op])
            before = np.split(h[i] @ r.T + rb, GATES[op])
            if op == "RNN":
                h[i] = f[0](parts[0] + before[0])
            elif op == "GRU":
                z, reset = f[0](parts[0] + before[0]), f[0](parts[1] + before[1])
                if options.get("linear_before_reset"):
                    candidate = f[1](parts[2] + reset * before[2])
                else:
                    candidate = f[1](parts[2] + (reset * h[i]) @ np.split(r, 3)[2].T + np.split(rb, 3)[2])
                h[i] = (1 - z) * candidate + z * h[i]
            else:
                gates = [a + s for a, s in zip(parts, before, strict=True)]
                peep = np.split(p, 3)
                enter = f[0](gates[0] + peep[0] * c[i])
                forget = 1 - enter if options.get("input_forget") else f[0](gates[2] + peep[2] * c[i])
                c[i] = forget * c[i] + enter * f[1](gates[3])
                h[i] = f[0](gates[1] + peep[1] * c[i]) * f[2](c[i])
            y[t, i] = h[i]
    return y, h, c


def check(op, hidden, batch, steps, given, constant=True, opset=14, **options):
    random = np.random.default_rng(3)

    def values(*shape):
        return random.uniform(-1, 1, shape).astype(np.float32)

    inputs, gates = 5, GATES[op]
    direction = options.get("direction", "forward")
    directions = 2 if direction == "bidirectional" else 1
    tensors = {
        "x": values(steps, batch, inputs),
        "w": values(directions, gates * hidden, inputs),
        "r": values(directions, gates * hidden, hidden) * 0.5,
        "b": values(directions, 2 * gates * hidden),
        "lengths": np.array([max(0, steps - i) for i in range(batch)], np.int32),
        "h": values(directions, batch, hidden),
        "c": values(directions, batch, hidden),
        "p": values(directions, 3 * hidden),
    }
    order = ["x", "w", "r", "b", "lengths", "h"] + (["c", "p"] if op == "LSTM" else [])
    is_given = {name: name in ("x", "w", "r") or name in given for name in order}
    defaults = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[op]
    names = options.get("activations", defaults * directions)
    alphas, betas = {"LeakyRelu": 0.01, "HardSigmoid": 0.2, "Elu": 1.0}, {"HardSigmoid": 0.5}
    functions = [lambda v, n=n: FUNCTIONS[n](v, alphas.get(n, 0), betas.get(n, 0)) for n in names]

    want_y, want_h, want_c = [], [], []
    for d in range(directions):
        exact = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in tensors.items()}
        zero = np.zeros((batch, hidden))
        per = len(functions) // directions
        y, h, c = one_direction(
            op, exact["x"], exact["w"][d], exact["r"][d],
            exact["b"][d] if is_given["b"] else np.zeros(2 * gates * hidden),
            exact["h"][d] if is_given["h"] else zero,
            exact["c"][d] if is_given.get("c") else zero,
            exact["lengths"] if is_given["lengths"] else [steps] * batch,
            exact["p"][d] if is_given.get("p") else np.zeros(3 * hidden),
            d == 1 or direction == "reverse", options, functions[d * per : (d + 1) * per],
        )  # fmt: skip
        want_y.append(y), want_h.append(h), want_c.append(c)
    want = {"y": np.stack(want_y, 1), "last_h": np.stack(want_h), "last_c": np.stack(want_c)}

    feeds = dict(tensors)
    if options.get("layout"):
        for name in ("x", "h", "c"):
            feeds[name] = feeds[name].swapaxes(0, 1).copy()
        want = {"y": want["y"].transpose(2, 0, 1, 3), "last_h": want["last_h"].swapaxes(0, 1),
                "last_c": want["last_c"].swapaxes(0, 1)}  # fmt: skip
    weights = [name for name in order if is_given[name] and constant and name in ("w", "r", "b", "p")]
    ports = [name for name in order if is_given[name] and name not in weights]
    outputs = ["y", "last_h"] + (["last_c"] if op == "LSTM" else [])
    one = node(op, [name if is_given[name] else "" for name in order], outputs, hidden_size=hidden, **options)
    for is_open in (False, True) if direction == "forward" and not options.get("layout") else (False,):
        sizes = {"x": ["S", "B", inputs]} if is_open else {}
        declared = [value(name, sizes.get(name, feeds[name].shape), 6 if name == "lengths" else 1) for name in ports]
        module = cuvil.compile(
            model([one], declared, outputs, [numpy_helper.from_array(feeds[k], k) for k in weights], opset=opset),
            target="native",
        )
        got = module.run({name: feeds[name] for name in ports})
        for name in outputs:
            np.testing.assert_allclose(got[name], want[name], rtol=0, atol=3e-6, err_msg=name)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("given", [(), ("b", "h", "c", "lengths", "p")])
def test_directions(op, direction, given):
    check(op, 19, 5, 4, given, direction=direction)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_sizes(op):
    for hidden, batch, steps in ((1, 1, 1), (16, 1, 6), (33, 9, 2), (3, 2, 0)):
        check(op, hidden, batch, steps, ("b", "h"))


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_weights_that_are_inputs_and_batches_first(op):
    check(op, 17, 2, 3, ("b", "h", "c", "p"), constant=False)
    check(op, 16, 3, 3, ("b", "h", "c"), layout=1, direction="bidirectional")


def test_options():
    for op in GATES:
        check(op, 18, 3, 4, ("b",), opset=6, output_sequence=1)
    check("GRU", 18, 3, 4, ("b", "h"), linear_before_reset=1, direction="bidirectional")
    check("GRU", 18, 3, 4, ("h",), linear_before_reset=1)
    check("LSTM", 18, 3, 4, ("b", "h", "c", "p"), input_forget=1, clip=0.3)
    check("LSTM", 6, 2, 3, ("b",), activations=["HardSigmoid", "Softsign", "Relu"])
    check("GRU", 6, 2, 3, ("b",), activations=["Sigmoid", "Elu"])
    check("RNN", 6, 2, 3, ("b",), activations=["LeakyRelu", "Softplus"], direction="bidirectional")
