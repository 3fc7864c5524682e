"""Runs a compiled ResNet-18 on a random image and says how long that takes.

python run.py resnet18.cuvil [--runs 50]
"""

import argparse
import time
from pathlib import Path

import numpy as np

import cuvil


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs a compiled ResNet-18 and says how long one image takes.")
    parser.add_argument("module", type=Path, help="the compiled resnet18.onnx")
    parser.add_argument("--runs", type=int, default=50, help="how often to run it (default: 50)")
    options = parser.parse_args()

    start = time.perf_counter()
    module = cuvil.runtime.load_module(options.module)
    loaded = time.perf_counter() - start
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224), dtype=np.float32)

    times = []
    for _ in range(options.runs):
        start = time.perf_counter()
        output = module.run({"input": image})["output"]
        times.append(time.perf_counter() - start)

    best = output[0].argsort()[::-1][:3]
    print("  highest scores: " + ", ".join(f"class {c} {output[0, c]:.3f}" for c in best))
    print(f"  loading {1e3 * loaded:.1f} ms, first run {1e3 * times[0]:.1f} ms, then ", end="")
    print(f"{1e3 * np.median(times[1:]):.1f} ms an image (median of {len(times) - 1}; least {1e3 * min(times):.1f} ms)")


if __name__ == "__main__":
    main()
