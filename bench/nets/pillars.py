"""PointPillars, which detects cars among the points of a lidar."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from nets.layers import convolution

ROWS, COLUMNS = 248, 216


class PointPillars(nn.Module):
    """Lang et al., "PointPillars" (2019): each column of points becomes a pixel of an image seen from above.

    The backbone and the anchors are those for cars, on half of the paper's grid in each direction.
    """

    def __init__(self, width: int = 64, anchors: int = 2) -> None:
        super().__init__()
        self.points, self.norm = nn.Linear(9, width, bias=False), nn.BatchNorm1d(width)
        self.stages, self.up = nn.ModuleList(), nn.ModuleList()
        inside = width
        for stage, (outside, count) in enumerate(((64, 4), (128, 6), (256, 6))):
            rest = [convolution(outside, outside, 3) for _ in range(count - 1)]
            self.stages.append(nn.Sequential(convolution(inside, outside, 3, 2), *rest))
            scale = 1 << stage
            wider = nn.ConvTranspose2d(outside, 128, scale, scale, bias=False)
            self.up.append(nn.Sequential(wider, nn.BatchNorm2d(128), nn.ReLU()))
            inside = outside
        self.heads = nn.ModuleList(nn.Conv2d(3 * 128, anchors * values, 1) for values in (1, 7, 2))
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.ones_(module.bias)  # most values pass the ReLU: else rounding grows from layer to layer

    def forward(self, points: Tensor, places: Tensor) -> tuple[Tensor, ...]:
        """points: f32[pillars, points of each, 9]. places: i64[pillars], each pillar's pixel, none twice."""
        pillars = functional.relu(self.norm(self.points(points).transpose(1, 2))).amax(2)
        empty = torch.zeros(ROWS * COLUMNS, pillars.shape[1])
        x = empty.index_put((places,), pillars).T.reshape(1, -1, ROWS, COLUMNS)
        parts = []
        for stage, up in zip(self.stages, self.up, strict=True):
            x = stage(x)
            parts.append(up(x))
        joined = torch.cat(parts, 1)
        return tuple(head(joined) for head in self.heads)
