"""ResNets."""

from torch import nn

from nets.layers import Residual, convolution


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
