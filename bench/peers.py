"""What is measured: each peer makes its own form of a model and runs it on NumPy arrays."""

import abc
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from model import Arrays, Model

Run = Callable[[Arrays], list[np.ndarray]]


class Peer(abc.ABC):
    """name: as tables call it. distribution: the Python package that it comes in."""

    name: str
    distribution: str
    is_rival = True

    def version(self) -> str:
        return importlib.metadata.version(self.distribution)

    def is_installed(self) -> bool:
        try:
            self.version()
        except importlib.metadata.PackageNotFoundError:
            return False
        return True

    def prepare(self, model: Model, folder: Path) -> list[Path]:
        """What is done once for a model, ahead of time, in the folder; returns the files that load takes."""
        return [model.onnx]

    @abc.abstractmethod
    def load(self, model: Model, files: list[Path], threads: int) -> Run:
        """What runs the prepared files with so many threads; its outputs are in the model's order."""

    def bytes_of_libraries(self) -> int:
        """Of those libraries of the package that this process has loaded."""
        files = importlib.metadata.files(self.distribution) or []
        own = {str(Path(str(file.locate())).resolve()) for file in files if ".so" in file.name}
        mapped = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
        return sum(Path(path).stat().st_size for path in own & mapped)


class Cuvil(Peer):
    distribution = "cuvil"
    is_rival = False

    def __init__(self, name: str, optimize_for: str) -> None:
        self.name, self.optimize_for = name, optimize_for

    def prepare(self, model: Model, folder: Path) -> list[Path]:
        module = folder / "model.cuvil"
        options = ["--optimize-for", self.optimize_for, "--quiet"]
        convert(program(), "compile", model.onnx, "-o", module, *options)
        return [module]

    def load(self, model: Model, files: list[Path], threads: int) -> Run:
        import cuvil

        module = cuvil.runtime.load_module(files[0], threads=threads)
        return lambda inputs: list(module.run(inputs).values())


class OnnxRuntime(Peer):
    name = "ONNX Runtime"
    distribution = "onnxruntime"

    def load(self, model: Model, files: list[Path], threads: int) -> Run:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(files[0], options, providers=["CPUExecutionProvider"])
        return lambda inputs: session.run(None, inputs)


class OpenVino(Peer):
    name = "OpenVINO"
    distribution = "openvino"

    def load(self, model: Model, files: list[Path], threads: int) -> Run:
        import openvino

        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        request = openvino.Core().compile_model(files[0], "CPU", settings).create_infer_request()
        return lambda inputs: list(request.infer(inputs).values())


class ExecuTorch(Peer):
    """From the network in PyTorch, with XNNPACK. Its Python side needs PyTorch while running, too."""

    name = "ExecuTorch"
    distribution = "executorch"

    def version(self) -> str:
        return f"{super().version()} with XNNPACK"

    def prepare(self, model: Model, folder: Path) -> list[Path]:
        import nets
        import torch
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge_transform_and_lower

        net, samples = nets.make(model.name)
        exported = torch.export.export(net, tuple(samples.values()))
        lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
        file = folder / "model.pte"
        file.write_bytes(lowered.to_executorch().buffer)
        return [file]

    def load(self, model: Model, files: list[Path], threads: int) -> Run:
        import torch
        from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool
        from executorch.runtime import Runtime

        _unsafe_reset_threadpool(threads)
        method = Runtime.get().load_program(files[0]).load_method("forward")
        return lambda inputs: [
            output.numpy() for output in method.execute([torch.from_numpy(array) for array in inputs.values()])
        ]


class Ncnn(Peer):
    """pnnx converts the traced network; it takes the first axis away, the batch's, where that has one element."""

    name = "ncnn"
    distribution = "ncnn"

    def prepare(self, model: Model, folder: Path) -> list[Path]:
        import nets
        import torch

        net, samples = nets.make(model.name)
        shapes = [f"{list(a.shape)}{a.dtype.kind}{a.itemsize * 8}".replace(" ", "") for a in model.inputs().values()]
        files = [folder / "model.param", folder / "model.bin"]
        with tempfile.TemporaryDirectory() as beside:  # for all other forms that pnnx writes, none of them needed
            torch.jit.trace(net, tuple(samples.values())).save(f"{beside}/model.pt")
            options = [f"inputshape={','.join(shapes)}", "fp16=0", f"ncnnparam={files[0]}", f"ncnnbin={files[1]}"]
            convert(Path(sys.executable).with_name("pnnx"), "model.pt", *options, folder=beside)
        return files

    def load(self, model: Model, files: list[Path], threads: int) -> Run:
        import ncnn

        net = ncnn.Net()
        net.opt.num_threads = threads
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        net.opt.use_bf16_storage = False
        if net.load_param(str(files[0])) or net.load_model(str(files[1])):
            raise ValueError("ncnn cannot load what pnnx wrote")
        outputs = range(len(net.output_names()))

        def run(inputs: Arrays) -> list[np.ndarray]:
            extractor = net.create_extractor()
            for i, array in enumerate(inputs.values()):
                values = without_int64(array)
                extractor.input(f"in{i}", ncnn.Mat(values[0] if values.shape[0] == 1 else values))
            results = [extractor.extract(f"out{i}") for i in outputs]
            if any(status for status, _ in results):
                raise ValueError("ncnn cannot compute an output")
            return [np.array(output) for _, output in results]

        return run


class Mnn(Peer):
    name = "MNN"
    distribution = "mnn"

    def prepare(self, model: Model, folder: Path) -> list[Path]:
        import _tools  # not the program mnnconvert, which installs a package to report each use to its makers

        file = folder / "model.mnn"
        options = ["--modelFile", str(model.onnx), "--MNNModel", str(file), "--bizCode", "bench"]
        _tools.mnnconvert(["mnnconvert", "-f", "ONNX", *options])
        if not file.exists():
            raise ValueError("MNN's converter refuses it")
        return [file]

    def load(self, model: Model, files: list[Path], threads: int) -> Run:
        import MNN

        settings = {"backend": "CPU", "numThread": threads, "precision": "high", "memory": "normal"}
        manager = MNN.nn.create_runtime_manager((settings,))
        names = list(model.inputs()), list(model.outputs())
        net = MNN.nn.load_module_from_file(str(files[0]), *names, runtime_manager=manager, shape_mutable=False)
        types = {"int32": MNN.numpy.int32, "float32": MNN.numpy.float32}

        def run(inputs: Arrays) -> list[np.ndarray]:
            arrays = [without_int64(array) for array in inputs.values()]
            values = [MNN.expr.const(a, a.shape, MNN.expr.NCHW, types[a.dtype.name]) for a in arrays]
            return [np.array(MNN.expr.convert(output, MNN.expr.NCHW).read()) for output in net.forward(values)]

        return run


PEERS: dict[str, Peer] = {
    "cuvil": Cuvil("Cuvil", "latency"),
    "cuvil-size": Cuvil("Cuvil for size", "size"),
    "onnxruntime": OnnxRuntime(),
    "openvino": OpenVino(),
    "executorch": ExecuTorch(),
    "ncnn": Ncnn(),
    "mnn": Mnn(),
}


def convert(*command: str | Path, folder: str | None = None) -> None:
    """Runs a program that converts a model; what it says when it cannot becomes an error of one line."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()] or [f"exit status {done.returncode}"]
        told = next((line for line in lines if "error" in line), lines[-1])
        raise ValueError(f"{Path(command[0]).name}: {told}")


def without_int64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int32) if array.dtype == np.int64 else array


def program() -> str:
    found = shutil.which("cuvil")
    if not found:
        raise SystemExit("there is no program cuvil in PATH; run scripts/bench, which builds it")
    return found
