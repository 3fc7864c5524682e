"""Loading and running compiled modules."""

import json
import os
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cuvil import _runtime
from cuvil._feeds import numpy_dtype
from cuvil._files import copy_to, memory_file, open_file, read_all, write_all
from cuvil._runtime import Cancellation
from cuvil.errors import Unsupported, bad_module

__all__ = ["Cancellation", "Module", "Port", "load_module"]


@dataclass(frozen=True)
class Port:
    """An input or output of a module."""

    name: str
    shape: tuple[int | str, ...] | None
    """Sizes; a str for one that is known only when the module runs. None where not even the rank is known."""
    dtype: np.dtype
    """object for strings and lists"""
    optional: bool = False
    """An input that may be left out."""

    def __str__(self) -> str:
        shape = "..." if self.shape is None else ",".join(map(str, self.shape))
        return f"{self.name}: {self.dtype.name}[{shape}]"


class Module(_runtime.Module):
    """A loaded module. Any number of threads may run one at once; close() or `with` unloads it.

    A copy is a module of its own over the same file. A pickle holds the file's bytes, so that it can be loaded in
    another process or on another machine; where both see the file, send its path instead and load it there.
    """

    def __init__(self, file: int, name: str, threads: int | None = None) -> None:
        """Loads the file behind the descriptor `file`, which it closes at the end; messages call it `name`."""
        weakref.finalize(self, os.close, file)
        if threads is not None and threads < 1:
            raise ValueError("threads is a positive number or None")
        self._file = file
        self._name = name
        self._threads = threads
        path = f"/proc/self/fd/{file}"
        try:
            super().__init__(path, threads or 0)
        except Unsupported as error:
            message = error.diagnostics[0].message.replace(f"'{path}'", name).replace(path, name)
            raise bad_module(message, name.strip("'") if name.startswith("'") else "") from None

    @property
    def inputs(self) -> list[Port]:
        return [_port(entry) for entry in self.manifest["inputs"]]

    @property
    def outputs(self) -> list[Port]:
        return [_port(entry) for entry in self.manifest["outputs"]]

    @property
    def manifest(self) -> dict[str, Any]:
        """All that the module says about itself."""
        return json.loads(self._manifest)

    @property
    def metadata(self) -> dict[str, str]:
        """What the model says about itself, and what it was compiled for and by."""
        manifest = self.manifest
        own = {key: manifest[key] for key in ("name", "producer", "target", "levels", "cuvil") if key in manifest}
        return own | manifest.get("metadata", {})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the module's file, whole or not at all."""
        copy_to(self._file, path)

    async def run_async(self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None) -> dict[str, Any]:
        """run() on a thread of the event loop's executor. Leave the arrays alone until it is done. A task that is
        cancelled ends the run between two steps; CancelledError comes when it has ended."""
        import asyncio  # half of what importing this module would cost

        cancellation = Cancellation()
        run = asyncio.get_running_loop().run_in_executor(None, self.run, feeds, outputs, cancellation)
        try:
            return await asyncio.shield(run)
        except asyncio.CancelledError:
            cancellation.cancel()
            if not run.cancel():
                await asyncio.wait([run])
            raise

    def __copy__(self) -> Self:
        self._expect_open()
        return type(self)(os.dup(self._file), self._name, self._threads)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        self._expect_open()
        return _load_bytes, (read_all(self._file), self._threads)

    def _expect_open(self) -> None:
        if self.closed:
            raise ValueError("the module is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<cuvil.Module, closed>"
        inputs, outputs = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<cuvil.Module {self.manifest['name']!r}: ({inputs}) -> ({outputs}), level {self.level}>"


def _port(entry: dict[str, Any]) -> Port:
    shape = entry.get("shape")
    kind = entry["kind"]
    dtype = numpy_dtype(entry.get("dtype", "")) if kind == "tensor" else np.dtype(object)
    return Port(entry["name"], None if shape is None else tuple(shape), dtype, entry.get("optional", False))


def load_module(
    module: str | os.PathLike[str] | bytes | bytearray | memoryview, *, threads: int | None = None
) -> Module:
    """Loads a .cuvil file, or its bytes.

    Loading runs the file's code: trust it like any shared library. `threads`: how many a run may use; None: as many as
    the process may use. Raises OSError where the file cannot be read, Unsupported where it is no module, is damaged or
    does not run on this machine.
    """
    if not isinstance(module, bytes | bytearray | memoryview):
        return Module(open_file(module), f"'{os.fspath(module)}'", threads)
    fd = memory_file()
    try:
        write_all(fd, module)
    except BaseException:
        os.close(fd)
        raise
    return Module(fd, "the module in memory", threads)


def _load_bytes(data: bytes, threads: int | None) -> Module:
    """What a pickle calls."""
    return load_module(data, threads=threads)
