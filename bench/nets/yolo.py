"""YOLOv8, which detects objects."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from nets.layers import Residual, convolution


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
