"""What several networks are built from."""

from torch import Tensor, nn


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
