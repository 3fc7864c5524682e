"""Small networks of the kinds that people deploy, as ONNX models with random weights from a fixed seed.

Each has the layers and the wiring of its namesake, at a fraction of the size: `NETWORKS` gives for each name a function
that builds the model, `inputs_of` random inputs for it.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/resnet18"))

import make_model

OPSET = 17


class Network(make_model.Builder):
    """A model under construction. Methods add layers and return the name of the result."""

    def __init__(self, **inputs: list[int]) -> None:
        super().__init__(seed=1)
        self.inputs = inputs

    def op(self, op: str, *inputs: str, **attributes: object) -> str:
        return self.node(op, f"{op.lower()}{len(self.nodes)}", list(inputs), **attributes)

    def ops(self, op: str, outputs: int, *inputs: str, **attributes: object) -> list[str]:
        names = [f"{op.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0], **attributes))
        return names

    def floats(self, *shape: int, spread: float = 0.1) -> str:
        return self.weight(f"weight{len(self.weights)}", self.random.normal(0, spread, shape))

    def number(self, value: float) -> str:
        return self.weight(f"number{len(self.weights)}", np.array(value))

    def ints(self, *values: int) -> str:
        name = f"ints{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def convolution(self, x: str, inside: int, outside: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> str:
        w = self.floats(outside, inside // groups, kernel, kernel, spread=(2 * groups / (inside * kernel**2)) ** 0.5)
        pads = [kernel // 2] * 4
        return self.op("Conv", x, w, self.floats(outside), strides=[stride] * 2, pads=pads, group=groups)

    def dense(self, x: str, inside: int, outside: int) -> str:
        product = self.op("MatMul", x, self.floats(inside, outside, spread=inside**-0.5))
        return self.op("Add", product, self.floats(outside))

    def layer_norm(self, x: str, width: int) -> str:
        return self.op("LayerNormalization", x, self.floats(width, spread=1), self.floats(width))

    def gelu(self, x: str) -> str:
        erf = self.op("Erf", self.op("Div", x, self.number(2**0.5)))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.number(1))), self.number(0.5))

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))

    def feed_forward(self, x: str, width: int) -> str:
        return self.dense(self.gelu(self.dense(x, width, 4 * width)), 4 * width, width)

    def heads_of(self, x: str, width: int, heads: int) -> list[str]:
        """Query, keys and values, each [1, heads, tokens, width / heads]."""
        split = self.op("Reshape", self.dense(x, width, 3 * width), self.ints(1, -1, 3, heads, width // heads))
        parts = self.ops("Split", 3, self.op("Transpose", split, perm=[2, 0, 3, 1, 4]), axis=0)
        return [self.op("Squeeze", part, self.ints(0)) for part in parts]

    def attend(self, query: str, keys: str, values: str, width: int, heads: int, mask: str | None = None) -> str:
        scores = self.op("MatMul", query, self.op("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.number((width // heads) ** -0.5))
        scores = self.op("Add", scores, mask) if mask else scores
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), values)
        joined = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), self.ints(1, -1, width))
        return self.dense(joined, width, width)

    def model(self, *outputs: str) -> onnx.ModelProto:
        types = {"ids": TensorProto.INT64, "cell": TensorProto.INT64}
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info(k, types.get(k, TensorProto.FLOAT), v) for k, v in self.inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self.weights,
        )
        opset = helper.make_opsetid("", OPSET)
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[opset], ir_version=8))


def mlp() -> onnx.ModelProto:
    net = Network(input=[1, 32])
    x = net.op("Relu", net.dense("input", 32, 64))
    x = net.op("Relu", net.dense(x, 64, 64))
    return net.model(net.op("Sigmoid", net.dense(x, 64, 1)))


def resnet50() -> onnx.ModelProto:
    net = Network(input=[1, 3, 64, 64])
    x = net.op("Relu", net.convolution("input", 3, 64, 7, 2))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inside = 64
    for width, stride in ((64, 1), (128, 2), (256, 2)):
        y = net.op("Relu", net.convolution(x, inside, width))
        y = net.op("Relu", net.convolution(y, width, width, 3, stride))
        y = net.convolution(y, width, 4 * width)
        x = net.op("Relu", net.op("Add", y, net.convolution(x, inside, 4 * width, 1, stride)))
        inside = 4 * width
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    return net.model(net.dense(x, inside, 100))


def mobilenet_v2() -> onnx.ModelProto:
    net = Network(input=[1, 3, 64, 64])
    low, high = net.number(0), net.number(6)
    x = net.op("Clip", net.convolution("input", 3, 32, 3, 2), low, high)
    inside = 32
    for outside, stride in ((16, 1), (24, 2), (24, 1), (40, 2)):
        y = net.op("Clip", net.convolution(x, inside, 6 * inside), low, high)
        y = net.op("Clip", net.convolution(y, 6 * inside, 6 * inside, 3, stride, groups=6 * inside), low, high)
        y = net.convolution(y, 6 * inside, outside)
        x = net.op("Add", x, y) if stride == 1 and inside == outside else y
        inside = outside
    return net.model(net.op("ReduceMean", x, axes=[2, 3], keepdims=0))


def mobilenet_v3() -> onnx.ModelProto:
    net = Network(input=[1, 3, 64, 64])
    x = net.op("HardSwish", net.convolution("input", 3, 16, 3, 2))
    inside = 16
    for wide, outside, kernel, stride in ((16, 16, 3, 2), (72, 24, 3, 2), (96, 40, 5, 1), (240, 40, 5, 1)):
        y = net.op("HardSwish", net.convolution(x, inside, wide))
        y = net.op("HardSwish", net.convolution(y, wide, wide, kernel, stride, groups=wide))
        gate = net.op("Relu", net.convolution(net.op("GlobalAveragePool", y), wide, wide // 4))
        gate = net.op("HardSigmoid", net.convolution(gate, wide // 4, wide), alpha=1 / 6)
        y = net.convolution(net.op("Mul", y, gate), wide, outside)
        x = net.op("Add", x, y) if inside == outside and stride == 1 else y
        inside = outside
    return net.model(net.op("GlobalAveragePool", x))


def vision_transformer(width: int = 96, heads: int = 3, patches: int = 49) -> onnx.ModelProto:
    net = Network(input=[1, 3, 112, 112])
    x = net.op("Conv", "input", net.floats(width, 3, 16, 16, spread=0.04), net.floats(width), strides=[16, 16])
    x = net.op("Transpose", net.op("Reshape", x, net.ints(1, width, -1)), perm=[0, 2, 1])
    x = net.op("Add", net.op("Concat", net.floats(1, 1, width), x, axis=1), net.floats(1, patches + 1, width))
    for _ in range(2):
        x = net.op("Add", x, net.attend(*net.heads_of(net.layer_norm(x, width), width, heads), width, heads))
        x = net.op("Add", x, net.feed_forward(net.layer_norm(x, width), width))
    first = net.op("Gather", net.layer_norm(x, width), net.ints(0), axis=1)
    return net.model(net.dense(first, width, 100))


def sentence_encoder(width: int = 96, heads: int = 6, tokens: int = 40) -> onnx.ModelProto:
    net = Network(ids=[1, tokens], mask=[1, tokens])
    x = net.op("Gather", net.floats(200, width, spread=1), "ids")
    x = net.layer_norm(net.op("Add", x, net.floats(1, tokens, width)), width)
    hidden = net.op("Mul", net.op("Sub", net.number(1), "mask"), net.number(-10000))
    bias = net.op("Unsqueeze", hidden, net.ints(1, 2))
    for _ in range(2):
        x = net.layer_norm(net.op("Add", x, net.attend(*net.heads_of(x, width, heads), width, heads, mask=bias)), width)
        x = net.layer_norm(net.op("Add", x, net.feed_forward(x, width)), width)
    weights = net.op("Unsqueeze", "mask", net.ints(2))
    total = net.op("ReduceSum", net.op("Mul", x, weights), net.ints(1), keepdims=0)
    pooled = net.op("Div", total, net.op("ReduceSum", "mask", net.ints(1), keepdims=1))
    return net.model(net.op("Div", pooled, net.op("ReduceL2", pooled, axes=[1], keepdims=1)))


def text_decoder(width: int = 96, heads: int = 3, past: int = 30) -> onnx.ModelProto:
    """One token with a cache of keys and values."""
    net = Network(ids=[1, 1], past=[2, 2, 1, heads, past, width // heads])
    words = net.floats(200, width)
    x = net.op("Gather", words, "ids")
    present = []
    for layer in range(2):
        query, *new = net.heads_of(net.layer_norm(x, width), width, heads)
        cache = net.op("Gather", "past", net.ints(layer), axis=0)
        old = [net.op("Squeeze", part, net.ints(0, 1)) for part in net.ops("Split", 2, cache, axis=1)]
        keys, values = (net.op("Concat", a, b, axis=2) for a, b in zip(old, new, strict=True))
        x = net.op("Add", x, net.attend(query, keys, values, width, heads))
        x = net.op("Add", x, net.feed_forward(net.layer_norm(x, width), width))
        present += new
    logits = net.op("MatMul", net.layer_norm(x, width), net.op("Transpose", words, perm=[1, 0]))
    return net.model(logits, net.op("Concat", *present, axis=0))


def detector(classes: int = 5, image: int = 64) -> onnx.ModelProto:
    """A backbone of split and joined branches, a pyramid up and down, boxes as means of distributions."""
    net = Network(images=[1, 3, image, image])

    def layer(x: str, inside: int, outside: int, kernel: int = 1, stride: int = 1) -> str:
        return net.silu(net.convolution(x, inside, outside, kernel, stride))

    def split_and_join(x: str, inside: int, outside: int, residual: bool) -> str:
        half = outside // 2
        parts = net.ops("Split", 2, layer(x, inside, outside), axis=1)
        y = layer(layer(parts[-1], half, half, 3), half, half, 3)
        parts.append(net.op("Add", parts[-1], y) if residual else y)
        return layer(net.op("Concat", *parts, axis=1), 3 * half, outside)

    x = layer(layer("images", 3, 16, 3, 2), 16, 32, 3, 2)
    fine = split_and_join(x, 32, 32, residual=True)
    x = layer(split_and_join(layer(fine, 32, 64, 3, 2), 64, 64, residual=True), 64, 32)
    pools = [x]
    for _ in range(3):
        pools.append(net.op("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    coarse = layer(net.op("Concat", *pools, axis=1), 128, 64)
    scales = net.weight("scales", np.array([1, 1, 2, 2]))
    resize = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    up = net.op("Resize", coarse, "", scales, **resize)
    fine = split_and_join(net.op("Concat", up, fine, axis=1), 96, 32, residual=False)
    down = layer(fine, 32, 32, 3, 2)
    coarse = split_and_join(net.op("Concat", down, coarse, axis=1), 96, 64, residual=False)
    found = []
    for x, width in ((fine, 32), (coarse, 64)):
        box = net.convolution(layer(x, width, 32, 3), 32, 64)
        score = net.convolution(layer(x, width, 32, 3), 32, classes)
        found.append(net.op("Reshape", net.op("Concat", box, score, axis=1), net.ints(1, 64 + classes, -1)))
    box, score = net.ops("Split", 2, net.op("Concat", *found, axis=2), net.ints(64, classes), axis=1)
    sides = net.op("Transpose", net.op("Reshape", box, net.ints(1, 4, 16, -1)), perm=[0, 2, 1, 3])
    bins = net.weight("bins", np.arange(16).reshape(1, 16, 1, 1))
    sides = net.op("Conv", net.op("Softmax", sides, axis=1), bins)
    return net.model(net.op("Reshape", sides, net.ints(1, 4, -1)), net.op("Sigmoid", score))


def speech_detector(hidden: int = 64) -> onnx.ModelProto:
    net = Network(input=[1, 576], state=[2, 1, hidden])
    x = net.op("Pad", net.op("Unsqueeze", "input", net.ints(1)), net.ints(0, 0, 0, 0, 0, 64), mode="reflect")
    x = net.op("Conv", x, net.floats(130, 1, 256), strides=[128])
    real, imaginary = (net.op("Mul", part, part) for part in net.ops("Split", 2, x, axis=1))
    x = net.op("Sqrt", net.op("Add", real, imaginary))
    for inside, outside, stride in ((65, 64, 1), (64, 32, 2), (32, 64, 2)):
        w = net.floats(outside, inside, 3)
        x = net.op("Relu", net.op("Conv", x, w, net.floats(outside), strides=[stride], pads=[1, 1]))
    x = net.op("Transpose", x, perm=[2, 0, 1])
    w, r, b = net.floats(1, 4 * hidden, 64), net.floats(1, 4 * hidden, hidden), net.floats(1, 8 * hidden)
    h, c = net.ops("Split", 2, "state", axis=0)
    _, h, c = net.ops("LSTM", 3, x, w, r, b, "", h, c, hidden_size=hidden)
    score = net.op("Sigmoid", net.dense(net.op("Squeeze", h, net.ints(0)), hidden, 1))
    return net.model(score, net.op("Concat", h, c, axis=0))


def pillars(grid: int = 32, channels: int = 32) -> onnx.ModelProto:
    net = Network(points=[300, 20, 9], cell=[300, 1])
    x = net.op("Relu", net.dense("points", 9, channels))
    x = net.op("ReduceMax", x, axes=[1], keepdims=0)
    zeros = net.weight("canvas", np.zeros((grid * grid, channels)))
    x = net.op("Transpose", net.op("ScatterND", zeros, "cell", x), perm=[1, 0])
    x = net.op("Reshape", x, net.ints(1, channels, grid, grid))
    features = []
    for i in range(3):
        x = net.op("Relu", net.convolution(x, channels, channels, 3, 2))
        x = net.op("Relu", net.convolution(x, channels, channels, 3))
        up = net.floats(channels, channels, 1 << i, 1 << i)
        features.append(net.op("Relu", net.op("ConvTranspose", x, up, net.floats(channels), strides=[1 << i] * 2)))
    x = net.op("Concat", *features, axis=1)
    return net.model(net.convolution(x, 3 * channels, 14), net.convolution(x, 3 * channels, 4))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mlp": mlp,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3": mobilenet_v3,
    "vision_transformer": vision_transformer,
    "sentence_encoder": sentence_encoder,
    "text_decoder": text_decoder,
    "detector": detector,
    "speech_detector": speech_detector,
    "pillars": pillars,
}


def inputs_of(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    """Random inputs: floats around 0, a mask of ones with zeros at its end, indices without repeats."""
    random = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            feeds[value.name] = random.permutation(max(200, *shape))[: np.prod(shape)].reshape(shape)
        elif value.name == "mask":
            feeds[value.name] = (np.arange(shape[1]) < shape[1] * 3 // 4).astype(np.float32).reshape(shape)
        else:
            feeds[value.name] = random.standard_normal(shape).astype(np.float32)
    return feeds
