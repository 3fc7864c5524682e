"""Installs wheels in fresh environments outside of this tree and uses them there, with nothing else on the PATH.

    check_wheels.py PYTHON WHEEL...

Needs of the machine PYTHON with venv, and pip's index for NumPy. Prints what it checked; a failure ends it with 1.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"

RUNTIME_ALONE = """
import sys
import cuvil
for name in ("compile", "ir", "backends"):
    try:
        getattr(cuvil, name)
    except ImportError as error:
        assert "pip install cuvil" in str(error), error
    else:
        raise AssertionError(f"cuvil.{name} is there without the compiler")
assert cuvil.__version__, cuvil
"""

RUN_MODULE = """
import sys
import numpy as np
import cuvil
samples = np.load(sys.argv[2])
with cuvil.runtime.load_module(sys.argv[1]) as module:
    scores = next(iter(module.run({module.inputs[0].name: samples["image"]}).values()))
share = float((scores.argmax(1) == samples["label"]).mean())
assert share > 0.9, share
assert not any("LLVM" in line or "libcuvil_llvm" in line for line in open("/proc/self/maps"))
print(f"{len(scores)} digits, {share:.1%} right")
"""

COMPILE = """
import sys
import cuvil
cuvil.compile(sys.argv[1]).save(sys.argv[2])
try:
    cuvil.compile(b"no model")
except cuvil.Unsupported as error:
    assert error.diagnostics, error
else:
    raise AssertionError("compiled what is no model")
print("compiled in Python")
"""


class Environment:
    """A fresh environment of `python`, whose programs see only each other."""

    def __init__(self, python: str, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        subprocess.run([python, "-m", "venv", folder], check=True)
        self.variables = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_"))}
        self.variables |= {"PATH": str(self.bin), "HOME": str(folder), "LANG": "C.UTF-8"}

    def run(self, program: str, *arguments: object) -> str:
        command = [self.bin / program, *map(str, arguments)]
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout.strip()

    def install(self, *arguments: object) -> None:
        self.run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments)

    def package(self) -> Path:
        return Path(self.run("python", "-c", "import cuvil; print(cuvil.__path__[0])"))


def check_needs(package: Path) -> None:
    """The loader, the extensions and the program find all libraries, none of them of LLVM or Clang."""
    files = [path for path in package.rglob("*") if ".so" in path.name or path.parent.name == "bin"]
    for path in files:
        found = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=True).stdout
        assert "not found" not in found, found
        for line in found.splitlines():
            ours = str(package.parent) in line
            assert ours or not any(word in line for word in ("LLVM", "clang", "fmt", "zstd")), f"{path} needs {line}"
    print("no library is missing:", ", ".join(sorted(path.name for path in files)))


def main() -> None:
    python, wheels = sys.argv[1], [Path(name).resolve() for name in sys.argv[2:]]
    runtime = next(path for path in wheels if path.name.startswith("cuvil_runtime-"))
    with tempfile.TemporaryDirectory() as folder:
        full = Environment(python, Path(folder) / "full")
        full.install(*wheels)
        check_needs(full.package())
        module, again = full.folder / "digits.cuvil", full.folder / "again.cuvil"
        print(full.run("cuvil", "--version"))
        full.run("cuvil", "compile", "--quiet", DIGITS / "digits.onnx", "-o", module)
        print(full.run("python", "-c", COMPILE, DIGITS / "digits.onnx", again))
        assert module.read_bytes() == again.read_bytes()
        full.run("cuvil", "compile", "--quiet", "--emit=static", DIGITS / "digits.onnx")
        full.run("cuvil", "verify", "--size", "N=2", DIGITS / "digits.onnx")
        print(full.run("python", "-c", RUN_MODULE, module, DIGITS / "samples.npz"))

        alone = Environment(python, Path(folder) / "alone")
        alone.install(runtime)
        alone.run("python", "-c", RUNTIME_ALONE)
        alone.run("python", "-m", "cuvil.config", "--cflags", "--libs")
        print("the loader alone:", alone.run("python", "-c", RUN_MODULE, module, DIGITS / "samples.npz"))
        alone.install(*wheels)
        alone.run("cuvil", "--version")
        print("the compiler was added to it")


if __name__ == "__main__":
    main()
