"""What the machine can do, what else it is made to do, and programs in C that are measured on it."""

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from model import Model, error_of

HERE = Path(__file__).resolve().parent
COMPILERS = ("cc", "gcc", "clang", "clang-19")


def processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def c_program(source: str, folder: Path, *options: str) -> Path | None:
    """Compiled into the folder; nothing where there is no C compiler."""
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if not compiler:
        return None
    program = folder / Path(source).stem
    command = [compiler, "-O3", HERE / source, "-o", program, *options]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return program


def peak(folder: Path) -> float | None:
    """Multiplications with their additions that one core does in a ns at best; see peak.c."""
    program = c_program("peak.c", folder, "-march=native", "-ffp-contract=fast")
    return float(subprocess.run([program], capture_output=True, text=True, check=True).stdout) if program else None


def first_output(module: Path, model: Model, folder: Path, starts: int = 5) -> dict | None:
    """Of a program in C: seconds from its start to the first output, the least of several, and its memory.

    Nothing where there is no C compiler.
    """
    from cuvil import config

    loader = config.library()
    options = (f"-I{config.include_dir()}", str(loader), f"-Wl,-rpath,{loader.parent}")
    program = c_program("first_output.c", folder, *options)
    if not program:
        return None
    output, words = folder / "output.raw", []
    for name, array in model.inputs().items():
        file = folder / f"{name}.raw"
        file.write_bytes(array.tobytes())
        words.append(f"{array.dtype.kind}{array.itemsize * 8}:{'x'.join(map(str, array.shape))}={file}")
    seconds, memory = [], []
    for _ in range(starts):
        begin = time.monotonic()
        done = subprocess.run([program, module, output, *words], capture_output=True, text=True, check=True)
        ready, peak_bytes = done.stdout.split()
        seconds.append(float(ready) - begin)
        memory.append(int(peak_bytes))
    wanted = next(iter(model.outputs().values()))
    error = error_of(np.fromfile(output, wanted.dtype), wanted)
    return {"first_output": min(seconds), "peak_bytes": max(memory), "error": error}


@contextmanager
def busy_core(core: int) -> Iterator[subprocess.Popen]:
    """The other process that keeps the core busy meanwhile. It ends by itself should this one be killed."""
    program = f"import os\nos.sched_setaffinity(0, [{core}])\nwhile os.getppid() == {os.getpid()}: pass"
    other = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield other
    finally:
        other.kill()
        other.wait()
