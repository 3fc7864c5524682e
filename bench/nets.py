"""The networks of the benchmark in PyTorch: the standard architectures with random weights from a fixed seed."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional


class Residual(nn.Module):
    """activation(body(x) + skip(x))."""

    def __init__(self, body: nn.Module, skip: nn.Module | None = None, activation: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.skip, self.activation = body, skip or nn.Identity(), activation or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.body(x) + self.skip(x))


def convolution(
    inside: int, outside: int, kernel: int, stride: int = 1, groups: int = 1, activation: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """With batch norm; keeps the size of the image but for the stride."""
    layer = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outside), activation())


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))


def resnet(blocks: tuple[int, ...], is_deep: bool) -> nn.Module:
    """He et al., "Deep Residual Learning for Image Recognition" (2015), Table 1. is_deep: with bottlenecks."""
    layers: list[nn.Module] = [convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        outside = 4 * width if is_deep else width
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            if is_deep:
                body = nn.Sequential(
                    convolution(inside, width, 1),
                    convolution(width, width, 3, stride),
                    convolution(width, outside, 1, activation=nn.Identity),
                )
            else:
                body = nn.Sequential(
                    convolution(inside, width, 3, stride), convolution(width, outside, 3, activation=nn.Identity)
                )
            is_same = stride == 1 and inside == outside
            skip = None if is_same else convolution(inside, outside, 1, stride, activation=nn.Identity)
            layers.append(Residual(body, skip, nn.ReLU()))
            inside = outside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


def mobilenet_v2() -> nn.Module:
    """Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks" (2018), Table 2."""
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    layers: list[nn.Module] = [convolution(3, 32, 3, 2, activation=nn.ReLU6)]
    inside = 32
    for expansion, outside, count, first_stride in table:
        for block in range(count):
            stride, width = first_stride if block == 0 else 1, inside * expansion
            wider = [convolution(inside, width, 1, activation=nn.ReLU6)] if expansion > 1 else []
            body = nn.Sequential(
                *wider,
                convolution(width, width, 3, stride, groups=width, activation=nn.ReLU6),
                convolution(width, outside, 1, activation=nn.Identity),
            )
            layers.append(Residual(body) if stride == 1 and inside == outside else body)
            inside = outside
    head = convolution(inside, 1280, 1, activation=nn.ReLU6)
    return nn.Sequential(*layers, head, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.input, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        batch, tokens, width = x.shape
        parts = self.input(x).reshape(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], attn_mask=mask)
        return self.output(y.transpose(1, 2).reshape(batch, tokens, width))


def feed_forward(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class VisionTransformer(nn.Module):
    """Touvron et al., "Training data-efficient image transformers" (2021), DeiT-Ti: 224 x 224 in patches of 16 x 16."""

    def __init__(self, width: int = 192, heads: int = 3, layers: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.first = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.layers = nn.Sequential(
            *(
                nn.Sequential(
                    Residual(nn.Sequential(nn.LayerNorm(width), Attention(width, heads))),
                    Residual(nn.Sequential(nn.LayerNorm(width), feed_forward(width))),
                )
                for _ in range(layers)
            )
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1000))

    def forward(self, image: Tensor) -> Tensor:
        patches = self.patches(image).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.first, patches], 1) + self.positions
        return self.head(self.layers(tokens)[:, 0])


class Encoder(nn.Module):
    """Devlin et al., "BERT" (2019), of the size of MiniLM-L6: norms behind the sums, padding masked."""

    def __init__(self, width: int = 384, heads: int = 12, layers: int = 6) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(30522, width), nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.attention = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.wide = nn.ModuleList(feed_forward(width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        allowed = (mask[:, None, None, :] - 1.0) * 1e9
        x = self.norm(self.words(tokens) + self.positions(torch.arange(tokens.shape[1])))
        for i, (attention, wide) in enumerate(zip(self.attention, self.wide, strict=True)):
            x = self.norms[2 * i](x + attention(x, allowed))
            x = self.norms[2 * i + 1](x + wide(x))
        return x


class Split(nn.Module):
    """YOLOv8's C2f: a convolution, of whose halves one goes through blocks; all parts are joined again."""

    def __init__(self, inside: int, outside: int, blocks: int, has_skips: bool) -> None:
        super().__init__()
        half = outside // 2

        def block() -> nn.Module:
            body = nn.Sequential(
                convolution(half, half, 3, activation=nn.SiLU), convolution(half, half, 3, activation=nn.SiLU)
            )
            return Residual(body) if has_skips else body

        self.first = convolution(inside, outside, 1, activation=nn.SiLU)
        self.blocks = nn.ModuleList(block() for _ in range(blocks))
        self.last = convolution((2 + blocks) * half, outside, 1, activation=nn.SiLU)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Pyramid(nn.Module):
    """YOLOv8's SPPF: three max pools of 5 x 5, one behind the other."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = convolution(channels, channels // 2, 1, activation=nn.SiLU)
        self.last = convolution(channels * 2, channels, 1, activation=nn.SiLU)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    """Jocher et al., Ultralytics YOLOv8 (2023), size n, 80 classes; boxes as distances in bins, none selected."""

    def __init__(self) -> None:
        super().__init__()

        def down(inside: int, outside: int) -> nn.Module:
            return convolution(inside, outside, 3, 2, activation=nn.SiLU)

        self.stages = nn.ModuleList(
            (
                nn.Sequential(down(3, 16), down(16, 32), Split(32, 32, 1, True), down(32, 64), Split(64, 64, 2, True)),
                nn.Sequential(down(64, 128), Split(128, 128, 2, True)),
                nn.Sequential(down(128, 256), Split(256, 256, 1, True), Pyramid(256)),
            )
        )
        self.up = nn.ModuleList((Split(384, 128, 1, False), Split(192, 64, 1, False)))
        self.down = nn.ModuleList((down(64, 64), down(128, 128)))
        self.joined = nn.ModuleList((Split(192, 128, 1, False), Split(384, 256, 1, False)))
        self.boxes = nn.ModuleList(self.branch(channels, 64) for channels in (64, 128, 256))
        self.classes = nn.ModuleList(self.branch(channels, 80) for channels in (64, 128, 256))

    @staticmethod
    def branch(inside: int, outside: int) -> nn.Module:
        return nn.Sequential(
            convolution(inside, outside, 3, activation=nn.SiLU),
            convolution(outside, outside, 3, activation=nn.SiLU),
            nn.Conv2d(outside, outside, 1),
        )

    def forward(self, image: Tensor) -> Tensor:
        fine = self.stages[0](image)
        middle = self.stages[1](fine)
        coarse = self.stages[2](middle)
        middle = self.up[0](torch.cat([functional.interpolate(coarse, scale_factor=2.0), middle], 1))
        fine = self.up[1](torch.cat([functional.interpolate(middle, scale_factor=2.0), fine], 1))
        middle = self.joined[0](torch.cat([self.down[0](fine), middle], 1))
        coarse = self.joined[1](torch.cat([self.down[1](middle), coarse], 1))
        images = (fine, middle, coarse)
        boxes = torch.cat([self.boxes[i](x).flatten(2) for i, x in enumerate(images)], 2)
        classes = torch.cat([self.classes[i](x).flatten(2) for i, x in enumerate(images)], 2)
        bins = boxes.reshape(1, 4, 16, -1).softmax(2)
        distances = (bins * torch.arange(16.0)[None, None, :, None]).sum(2)
        return torch.cat([distances, classes.sigmoid()], 1)


def image(size: int) -> dict[str, Tensor]:
    return {"image": torch.randn(1, 3, size, size)}


def sentence() -> dict[str, Tensor]:
    mask = torch.ones(1, 128)
    mask[:, 100:] = 0
    return {"tokens": torch.randint(0, 30522, (1, 128)), "mask": mask}


# By name: the network, and its inputs.
NETS: dict[str, tuple[Callable[[], nn.Module], Callable[[], dict[str, Tensor]]]] = {
    "mlp": (mlp, lambda: {"x": torch.randn(1, 32)}),
    "mobilenet_v2": (mobilenet_v2, lambda: image(224)),
    "yolov8n": (Yolo, lambda: image(320)),
    "resnet18": (lambda: resnet((2, 2, 2, 2), False), lambda: image(224)),
    "resnet50": (lambda: resnet((3, 4, 6, 3), True), lambda: image(224)),
    "deit_tiny": (VisionTransformer, lambda: image(224)),
    "minilm": (Encoder, sentence),
}


def make(name: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """A network whose batch norms have the statistics of a random image, so that its activations stay near one.

    What a residual body adds is small, as in a trained network: else rounding grows from block to block.
    """
    torch.manual_seed(1)
    build, inputs = NETS[name]
    net, samples = build(), inputs()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None
        norms = (
            [m for m in module.body.modules() if isinstance(m, nn.BatchNorm2d)] if isinstance(module, Residual) else []
        )
        if norms:
            nn.init.constant_(norms[-1].weight, 0.25)
    with torch.no_grad():
        net.train()(*samples.values())
    return net.eval(), samples
