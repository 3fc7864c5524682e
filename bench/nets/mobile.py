"""MobileNets: depthwise convolutions between those of 1 x 1."""

from torch import Tensor, nn

from nets.layers import Residual, convolution


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


class SqueezeExcite(nn.Module):
    """Channels, each scaled by what their means say."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, inner, 1),
            nn.ReLU(),
            nn.Conv2d(inner, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale(x)


def mobilenet_v3_small() -> nn.Module:
    """Howard et al., "Searching for MobileNetV3" (2019), Table 2."""
    relu, swish = nn.ReLU, nn.Hardswish
    table = (  # kernel, width, outside, channels of the squeeze, activation, stride
        *((3, 16, 16, 8, relu, 2), (3, 72, 24, 0, relu, 2), (3, 88, 24, 0, relu, 1), (5, 96, 40, 24, swish, 2)),
        *((5, 240, 40, 64, swish, 1), (5, 240, 40, 64, swish, 1), (5, 120, 48, 32, swish, 1)),
        *((5, 144, 48, 40, swish, 1), (5, 288, 96, 72, swish, 2), (5, 576, 96, 144, swish, 1)),
        (5, 576, 96, 144, swish, 1),
    )
    layers: list[nn.Module] = [convolution(3, 16, 3, 2, activation=swish)]
    inside = 16
    for kernel, width, outside, squeezed, activation, stride in table:
        body = nn.Sequential(
            *([convolution(inside, width, 1, activation=activation)] if width != inside else []),
            convolution(width, width, kernel, stride, groups=width, activation=activation),
            *([SqueezeExcite(width, squeezed)] if squeezed else []),
            convolution(width, outside, 1, activation=nn.Identity),
        )
        layers.append(Residual(body) if stride == 1 and inside == outside else body)
        inside = outside
    head = convolution(inside, 576, 1, activation=swish)
    rest = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(576, 1024), swish(), nn.Linear(1024, 1000))
    return nn.Sequential(*layers, head, *rest)
