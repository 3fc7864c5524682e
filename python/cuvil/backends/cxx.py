"""Programs as C++, and C++ as native code.

program = cuvil.ir.run_passes(cuvil.ir.from_onnx("model.onnx"))
cxx = LowerToCXXPass()(program)
print(cxx.source)
module = cxx.load()
"""

import os
from collections.abc import Iterable

from cuvil import _compiler
from cuvil._compile import arguments
from cuvil._files import memory_file
from cuvil.ir import Program
from cuvil.runtime import Module

__all__ = ["CXXModule", "LowerToCXXPass"]


class CXXModule:
    """A program as C++ over Cuvil's kernels, one copy for each level."""

    def __init__(self, lowered: _compiler.LoweredModule) -> None:
        self._lowered = lowered

    @property
    def source(self) -> str:
        """All sources, one after the other, each under a line with its name and levels."""
        return self._lowered.source

    @property
    def sources(self) -> list[tuple[str, str, list[str]]]:
        """Name, text and levels of each source."""
        return self._lowered.sources

    def compile(self, *, jobs: int | None = None) -> bytes:
        """The linked shared object: code alone, without weights and manifest. Clang runs inside the process."""
        return self._lowered.compile(arguments(jobs=jobs))

    def load(self, *, threads: int | None = None, jobs: int | None = None) -> Module:
        """Compiles and loads the whole module."""
        fd = memory_file()
        try:
            self._lowered.write(arguments(jobs=jobs), fd)
        except BaseException:
            os.close(fd)
            raise
        return Module(fd, "the compiled module", threads)

    def __repr__(self) -> str:
        return f"<CXXModule of {len(self.sources)} sources>"


class LowerToCXXPass:
    """Plans a program for the target and writes it as C++. The program, which stays as it is, is one that
    cuvil.ir.run_passes returned."""

    def __init__(self, levels: Iterable[str] | None = None) -> None:
        """levels: of x86-64, least demanding first; None: v2, v3 and v4."""
        self.levels = list(levels) if levels is not None else _compiler.targets()["cpu-x86-64"]

    def __call__(self, program: Program) -> CXXModule:
        return CXXModule(_compiler.lower(program, self.levels))
