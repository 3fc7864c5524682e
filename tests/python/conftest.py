import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cuvil

sys.path.insert(0, str(Path(__file__).parent))

from samples import MLP, TWO, program


@pytest.fixture(scope="session")
def mlp_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("modules") / "mlp.cuvil"
    cuvil.compile(MLP.encode()).save(path)
    return path


@pytest.fixture
def mlp(mlp_file: Path) -> cuvil.Module:
    return cuvil.runtime.load_module(mlp_file)


@pytest.fixture(scope="session")
def two() -> cuvil.Module:
    return cuvil.compile(TWO.encode())


@pytest.fixture
def cli(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the program in a folder of its own."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = program() + [str(a) for a in arguments]
        return subprocess.run(
            command, **{"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120} | options
        )

    return run


@pytest.fixture
def mlp_text(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.cuir"
    path.write_text(MLP)
    return path
