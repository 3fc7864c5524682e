"""What is measured: each peer makes its own form of an ONNX model and runs it on NumPy arrays."""

import abc
import importlib.metadata
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], list[np.ndarray]]


class Peer(abc.ABC):
    """name: as tables call it. distribution: the Python package that it comes in."""

    name: str
    distribution: str

    def version(self) -> str:
        return importlib.metadata.version(self.distribution)

    def is_installed(self) -> bool:
        try:
            self.version()
        except importlib.metadata.PackageNotFoundError:
            return False
        return True

    def prepare(self, model: Path, folder: Path) -> Path:
        """What is done once for an ONNX model, ahead of time, in the folder; returns the file that load takes."""
        return model

    @abc.abstractmethod
    def load(self, file: Path, threads: int) -> Run:
        """What runs it, with so many threads."""

    def shipped(self, file: Path) -> int:
        """Bytes that a program has to bring along: the model and the libraries that run it."""
        return file.stat().st_size + self.bytes_of_libraries()

    def bytes_of_libraries(self) -> int:
        files = importlib.metadata.files(self.distribution) or []
        paths = [Path(str(file.locate())) for file in files if ".so" in file.name]
        return sum(path.stat().st_size for path in paths if path.exists())


class Cuvil(Peer):
    name = "Cuvil"
    distribution = "cuvil"

    def prepare(self, model: Path, folder: Path) -> Path:
        module = folder / "model.cuvil"
        subprocess.run([program(), "compile", model, "-o", module, "--quiet"], check=True)
        return module

    def load(self, file: Path, threads: int) -> Run:
        import cuvil

        module = cuvil.runtime.load_module(file, threads=threads)
        return lambda inputs: list(module.run(inputs).values())

    def bytes_of_libraries(self) -> int:
        import cuvil

        return (Path(cuvil.__file__).parent / "libcuvil_rt.so.0").stat().st_size


class OnnxRuntime(Peer):
    name = "ONNX Runtime"
    distribution = "onnxruntime"

    def load(self, file: Path, threads: int) -> Run:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        return lambda inputs: session.run(None, inputs)


class OpenVino(Peer):
    name = "OpenVINO"
    distribution = "openvino"

    def load(self, file: Path, threads: int) -> Run:
        import openvino

        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        request = openvino.Core().compile_model(file, "CPU", settings).create_infer_request()
        return lambda inputs: list(request.infer(inputs).values())


PEERS: dict[str, Peer] = {"cuvil": Cuvil(), "onnxruntime": OnnxRuntime(), "openvino": OpenVino()}


def program() -> str:
    found = shutil.which("cuvil")
    if not found:
        raise SystemExit("there is no program cuvil in PATH; run scripts/bench, which builds it")
    return found
