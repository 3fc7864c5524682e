"""A detector of speech, like Silero's: a spectrum by convolution, a small encoder and an LSTM."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

FRAME, HOP = 256, 128


def spectrum_filters() -> Tensor:
    """The cosines and sines of a windowed Fourier transform, as the weights of a convolution."""
    phases = 2 * math.pi / FRAME * torch.outer(torch.arange(FRAME // 2 + 1.0), torch.arange(float(FRAME)))
    return (torch.cat([phases.cos(), phases.sin()]) * torch.hann_window(FRAME))[:, None, :]


class VoiceActivity(nn.Module):
    """Team Silero, Silero VAD 5 (2024), 16 kHz: 36 ms of sound, the first 4 of them known, and the LSTM's state."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.register_buffer("filters", spectrum_filters())
        table = (
            (FRAME // 2 + 1, width, 1),
            (width, width // 2, 2),
            (width // 2, width // 2, 2),
            (width // 2, width, 1),
        )
        self.encoder = nn.Sequential(
            *(nn.Sequential(nn.Conv1d(inside, outside, 3, stride, 1), nn.ReLU()) for inside, outside, stride in table)
        )
        self.memory = nn.LSTM(width, width)
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(width, 1), nn.Sigmoid())

    def forward(self, sound: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        padded = functional.pad(sound, (0, FRAME // 4), "reflect")
        real, imaginary = functional.conv1d(padded[:, None], self.filters, stride=HOP).chunk(2, 1)
        encoded = self.encoder((real.square() + imaginary.square()).sqrt())
        out, (hidden, cell) = self.memory(encoded.permute(2, 0, 1), (hidden, cell))
        return self.head(out[-1]), hidden, cell
