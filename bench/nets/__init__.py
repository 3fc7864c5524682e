"""The networks of the benchmark in PyTorch: the standard architectures with random weights from a fixed seed."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nets.layers import Residual
from nets.mobile import mobilenet_v2, mobilenet_v3_small
from nets.pillars import COLUMNS, ROWS, PointPillars
from nets.residual import resnet
from nets.transformers import Encoder, Gpt2Step, VisionTransformer
from nets.voice import VoiceActivity
from nets.yolo import Yolo


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))


def image(size: int) -> dict[str, Tensor]:
    return {"image": torch.randn(1, 3, size, size)}


def sentence() -> dict[str, Tensor]:
    mask = torch.ones(1, 128)
    mask[:, 100:] = 0
    return {"tokens": torch.randint(0, 30522, (1, 128)), "mask": mask}


def next_token() -> dict[str, Tensor]:
    token, past = torch.randint(0, 50257, (1, 1)), torch.randn(12, 2, 1, 12, 128, 64)
    return {"token": token, "position": torch.tensor([[128]]), "past": past}


def lidar() -> dict[str, Tensor]:
    return {"points": torch.randn(6000, 32, 9), "places": torch.randperm(ROWS * COLUMNS)[:6000]}


def sound() -> dict[str, Tensor]:
    return {"sound": torch.randn(1, 576), "hidden": torch.randn(1, 1, 128), "cell": torch.randn(1, 1, 128)}


# By name: the network, and its inputs.
NETS: dict[str, tuple[Callable[[], nn.Module], Callable[[], dict[str, Tensor]]]] = {
    "mlp": (mlp, lambda: {"x": torch.randn(1, 32)}),
    "silero_vad": (VoiceActivity, sound),
    "mobilenet_v3_small": (mobilenet_v3_small, lambda: image(224)),
    "mobilenet_v2": (mobilenet_v2, lambda: image(224)),
    "yolov8n": (Yolo, lambda: image(320)),
    "resnet18": (lambda: resnet((2, 2, 2, 2), False), lambda: image(224)),
    "resnet50": (lambda: resnet((3, 4, 6, 3), True), lambda: image(224)),
    "pointpillars": (PointPillars, lidar),
    "deit_tiny": (VisionTransformer, lambda: image(224)),
    "minilm": (Encoder, sentence),
    "gpt2_step": (Gpt2Step, next_token),
}


def make(name: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """A network whose batch norms have the statistics of a random image, so that its activations stay near one.

    What a residual body adds is small, as in a trained network: else rounding grows from block to block.
    """
    torch.manual_seed(1)
    build, inputs = NETS[name]
    net, samples = build(), inputs()
    norms = (nn.BatchNorm1d, nn.BatchNorm2d)
    for module in net.modules():
        if isinstance(module, norms):
            module.momentum = None
        of_body = [m for m in module.body.modules() if isinstance(m, norms)] if isinstance(module, Residual) else []
        if of_body:
            nn.init.constant_(of_body[-1].weight, 0.25)
    with torch.no_grad():
        net.train()(*samples.values())
    return net.eval(), samples
