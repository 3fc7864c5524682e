"""Shows handwritten digits as text and what a compiled classifier says to them.

    python show.py digits.cuvil [--count 4]

The images are samples.npz: 32 digits by writers whom the training has not seen.
"""

import argparse
from pathlib import Path

import numpy as np

import cuvil

SHADES = " .:-=+*#%@"


def pictures(images: np.ndarray) -> str:
    """f32[count,1,8,8] with values from 0 to 1 -> 8 lines of text, the images side by side."""
    shade = np.clip(images[:, 0] * len(SHADES), 0, len(SHADES) - 1).astype(int)
    rows = ("   ".join("".join(SHADES[s] * 2 for s in image[y]) for image in shade) for y in range(8))
    return "\n".join(f"  {row}" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Shows handwritten digits and how a compiled classifier reads them.")
    parser.add_argument("module", type=Path, help="the compiled digits.onnx")
    parser.add_argument("--count", type=int, default=4, help="how many digits to show (default: 4)")
    options = parser.parse_args()

    samples = np.load(Path(__file__).parent / "samples.npz")
    images, labels = samples["image"], samples["label"]
    module = cuvil.runtime.load_module(options.module)
    scores = module.run({"image": images})["scores"]
    digits = scores.argmax(axis=1)

    print(pictures(images[: options.count]))
    print("  " + "   ".join(f"{f'reads as {digit}':^16}" for digit in digits[: options.count]))
    print(f"\n  {np.sum(digits == labels)} of {len(labels)} samples read right, in one batch")


if __name__ == "__main__":
    main()
