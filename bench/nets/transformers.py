"""Transformers for images and for text."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from nets.layers import Residual


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


def feed_forward(width: int, gelu: str = "none") -> nn.Module:
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(gelu), nn.Linear(4 * width, width))


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


class Decoder(nn.Module):
    """One layer of Gpt2Step. past: f32[2, batch, heads, tokens, channels], the keys and values of earlier tokens."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList((nn.LayerNorm(width), nn.LayerNorm(width)))
        self.input, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = feed_forward(width, "tanh")

    def forward(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        batch, tokens, width = x.shape
        parts = self.input(self.norms[0](x)).reshape(batch, tokens, 3, self.heads, width // self.heads)
        parts = parts.permute(2, 0, 3, 1, 4)
        keys, values = torch.cat([past, parts[1:]], 3)
        y = functional.scaled_dot_product_attention(parts[0], keys, values)
        x = x + self.output(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.wide(self.norms[1](x)), parts[1:]


class Gpt2Step(nn.Module):
    """Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), 124 million weights.

    It reads one more token. Returns the scores of the next one, and the keys and values of this one, to be joined to
    those of the past.
    """

    def __init__(self, width: int = 768, heads: int = 12, layers: int = 12) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(50257, width), nn.Embedding(1024, width)
        for table in (self.words, self.positions):
            nn.init.normal_(table.weight, std=0.02)
        self.layers = nn.ModuleList(Decoder(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, token: Tensor, position: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        x = self.words(token) + self.positions(position)
        added = []
        for i, layer in enumerate(self.layers):
            x, part = layer(x, past[i])
            added.append(part)
        return functional.linear(self.norm(x), self.words.weight), torch.stack(added)
