"""A network of the benchmark as files, which all peers share."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]


def error_of(output: np.ndarray, wanted: np.ndarray) -> float:
    """How far it is off at most, relative to the largest value; infinite for NaN."""
    if np.size(output) != wanted.size:
        raise ValueError(f"an output has {np.size(output)} values in place of {wanted.size}")
    gap = np.abs(np.asarray(output).reshape(wanted.shape) - wanted).max() / np.abs(wanted).max()
    return float(np.nan_to_num(gap, nan=np.inf))


@dataclass(frozen=True)
class Model:
    """A folder of model.onnx, inputs.npz, and in outputs.npz what PyTorch answers; it is named as in nets.NETS."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def onnx(self) -> Path:
        return self.folder / "model.onnx"

    def inputs(self) -> Arrays:
        return dict(np.load(self.folder / "inputs.npz"))

    def outputs(self) -> Arrays:
        return dict(np.load(self.folder / "outputs.npz"))

    def error(self, outputs: list[np.ndarray]) -> float:
        """The largest of all outputs."""
        return max(error_of(output, wanted) for output, wanted in zip(outputs, self.outputs().values(), strict=True))

    def write(self) -> None:
        """Makes the files, unless they are there."""
        if (self.folder / "outputs.npz").exists():
            return
        import nets
        import torch

        net, samples = nets.make(self.name)
        with torch.no_grad():
            outputs = net(*samples.values())
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        named = {f"output{i}": output.numpy() for i, output in enumerate(outputs)}
        self.folder.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter that needs no other package is called a legacy
            torch.onnx.export(
                net, tuple(samples.values()), self.onnx, input_names=list(samples), output_names=list(named),
                opset_version=17, dynamo=False,
            )  # fmt: skip
        np.savez(self.folder / "inputs.npz", **{key: value.numpy() for key, value in samples.items()})
        np.savez(self.folder / "outputs.npz", **named)
