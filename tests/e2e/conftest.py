import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "tests/e2e")]

from samples import compile_with  # noqa: E402


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def resnet18_onnx(folder: Path) -> Path:
    path = folder / "resnet18.onnx"
    subprocess.run([sys.executable, str(ROOT / "examples/resnet18/make_model.py"), str(path)], check=True)
    return path


@pytest.fixture(scope="session")
def resnet18(folder: Path, resnet18_onnx: Path) -> Path:
    return compile_with(resnet18_onnx, folder / "resnet18.cuvil")


@pytest.fixture(scope="session")
def digits_onnx() -> Path:
    return ROOT / "examples/digits/digits.onnx"


@pytest.fixture(scope="session")
def digits(folder: Path, digits_onnx: Path) -> Path:
    return compile_with(digits_onnx, folder / "digits.cuvil")
