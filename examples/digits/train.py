"""Trains the digits classifier of this folder and writes digits.onnx and samples.npz.

The data are scikit-learn's 1797 handwritten digits, 8x8 pixels with values 0 to 16, which need no download. The first
1500 are for training; the last 297, by other writers, are for the accuracy that the script prints and for the samples.
Needs torch, onnx and scikit-learn.
"""

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

FOLDER = Path(__file__).parent
TRAINING = 1500


class Digits(nn.Module):
    """f32[N,1,8,8] with pixels from 0 to 1 -> f32[N,10], one score for each digit."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, padding=1),
            nn.BatchNorm2d(48),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.classify(self.features(image))


def shifted(images: torch.Tensor) -> torch.Tensor:
    """Each image moved by up to one pixel in each direction: people do not write in the middle of the box."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    moved = torch.empty_like(images)
    for i, (y, x) in enumerate(torch.randint(0, 3, (len(images), 2)).tolist()):
        moved[i] = padded[i, :, y : y + 8, x : x + 8]
    return moved


def train(model: Digits, images: torch.Tensor, labels: torch.Tensor, epochs: int = 60) -> None:
    batch = 64
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, epochs=epochs, steps_per_epoch=-(-len(images) // batch)
    )
    model.train()
    for _ in range(epochs):
        for chosen in torch.randperm(len(images)).split(batch):
            loss = nn.functional.cross_entropy(model(shifted(images[chosen])), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()


def main() -> None:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)

    model = Digits()
    train(model, images[:TRAINING], labels[:TRAINING])
    with torch.no_grad():
        right = model(images[TRAINING:]).argmax(1) == labels[TRAINING:]
    print(f"test accuracy {100 * right.float().mean():.1f} % ({int(right.sum())} of {len(right)})")

    torch.onnx.export(
        model,
        (images[:2],),
        str(FOLDER / "digits.onnx"),
        input_names=["image"],
        output_names=["scores"],
        dynamic_axes={"image": {0: "N"}, "scores": {0: "N"}},
        opset_version=17,
        dynamo=False,
    )
    samples = slice(TRAINING, TRAINING + 32)
    np.savez_compressed(
        FOLDER / "samples.npz",
        image=images[samples].numpy(),
        label=labels[samples].to(torch.uint8).numpy(),
    )


if __name__ == "__main__":
    main()
