"""Writes a ResNet-18 as ONNX, with random weights from a fixed seed: resnet18.onnx, 47 MB.

    python make_model.py [PATH]

The architecture is the standard one for 224x224 images and 1000 classes, batch norms still in place as a training
framework leaves them: input "input" f32[1,3,224,224], output "output" f32[1,1000]. Weights and batch-norm statistics
keep the activations near one, so speed and rounding are those of a trained network; the answers mean nothing. Needs
numpy and onnx.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels, stride of the first block
BLOCKS_OF_A_STAGE = 2
CLASSES = 1000


class Builder:
    """Collects nodes and weights; each method adds one layer and returns the name of its result."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, values: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def node(self, op: str, name: str, inputs: list[str], **attributes: object) -> str:
        result = f"{name}_output"
        self.nodes.append(helper.make_node(op, inputs, [result], name=name, **attributes))
        return result

    def conv(self, name: str, x: str, inside: int, outside: int, kernel: int, stride: int = 1) -> str:
        spread = np.sqrt(2 / (inside * kernel * kernel))
        w = self.weight(f"{name}.weight", self.random.normal(0, spread, (outside, inside, kernel, kernel)))
        pad = kernel // 2
        return self.node("Conv", name, [x, w], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def norm(self, name: str, x: str, channels: int) -> str:
        scale = self.weight(f"{name}.weight", self.random.uniform(0.5, 1.0, channels))
        bias = self.weight(f"{name}.bias", self.random.normal(0, 0.1, channels))
        mean = self.weight(f"{name}.running_mean", self.random.normal(0, 0.1, channels))
        variance = self.weight(f"{name}.running_var", self.random.uniform(0.8, 1.2, channels))
        return self.node("BatchNormalization", name, [x, scale, bias, mean, variance], epsilon=1e-5)

    def relu(self, name: str, x: str) -> str:
        return self.node("Relu", name, [x])

    def block(self, name: str, x: str, inside: int, outside: int, stride: int) -> str:
        y = self.conv(f"{name}.conv1", x, inside, outside, 3, stride)
        y = self.relu(f"{name}.relu1", self.norm(f"{name}.bn1", y, outside))
        y = self.norm(f"{name}.bn2", self.conv(f"{name}.conv2", y, outside, outside, 3), outside)
        if inside != outside or stride != 1:
            x = self.conv(f"{name}.downsample.0", x, inside, outside, 1, stride)
            x = self.norm(f"{name}.downsample.1", x, outside)
        return self.relu(f"{name}.relu2", self.node("Add", f"{name}.add", [y, x]))


def resnet18(seed: int = 18) -> onnx.ModelProto:
    model = Builder(seed)
    x = model.relu("relu", model.norm("bn1", model.conv("conv1", "input", 3, 64, 7, 2), 64))
    x = model.node("MaxPool", "maxpool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inside = 64
    for stage, (outside, first_stride) in enumerate(STAGES, start=1):
        for block in range(BLOCKS_OF_A_STAGE):
            stride = first_stride if block == 0 else 1
            x = model.block(f"layer{stage}.{block}", x, inside, outside, stride)
            inside = outside
    x = model.node("Flatten", "flatten", [model.node("GlobalAveragePool", "avgpool", [x])], axis=1)
    w = model.weight("fc.weight", model.random.normal(0, np.sqrt(1 / inside), (CLASSES, inside)))
    b = model.weight("fc.bias", model.random.normal(0, 0.01, CLASSES))
    model.node("Gemm", "fc", [x, w, b], transB=1)
    model.nodes[-1].output[0] = "output"

    graph = helper.make_graph(
        model.nodes,
        "resnet18",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, CLASSES])],
        model.weights,
    )
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8, producer_name="cuvil-examples")


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "resnet18.onnx"
    model = resnet18()
    onnx.checker.check_model(model)
    onnx.save(model, path)
    print(f"{path}: {path.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
