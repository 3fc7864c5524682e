from collections.abc import Iterable, Mapping
from typing import Any

__version__: str

class Cancellation:
    """Ends a run from another thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """The run ends soon, with RuntimeError, as does each that begins."""

class BoundCall:
    """What Module.bind gives. One thread at a time runs it; it keeps the module loaded."""

    def __call__(self) -> dict[str, Any]:
        """Runs the module and returns the outputs by name, the same arrays each time."""

class Module:
    def __init__(self, path: str, threads: int) -> None: ...
    def __call__(self, *arrays: Any, **named: Any) -> dict[str, Any]:
        """run() with inputs by position, in the order of the model, and by name."""
    def run(
        self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None, cancellation: Cancellation | None = None
    ) -> dict[str, Any]:
        """Runs the module on a dict of arrays by input name; returns a dict of NumPy arrays by output name, in the
        order of the model, or of the outputs named in `outputs`. Inputs may have any strides and are never
        written; the arrays that come back are the caller's. Ctrl-C, and `cancellation` from another thread, end it
        between steps."""
    def run_into(self, feeds: Mapping[str, Any], outs: Mapping[str, Any]) -> dict[str, Any]:
        """As run, but the results are written into the arrays of the dict `outs`, by output name: of the output's
        dtype and shape, contiguous and writable, NumPy's or exported by the buffer protocol or DLPack. They may overlap
        the inputs. Returns a dict of the outputs that `outs` does not have."""
    def bind(self, feeds: Mapping[str, Any], outs: Mapping[str, Any] = ...) -> BoundCall:
        """Binds arrays to the inputs and, of `outs`, to outputs: a call that runs the module on the numbers that are
        then in the inputs' memory and writes into the outputs', in a fraction of a microsecond more than the model
        takes. Inputs are contiguous arrays of the very dtype, outputs as in run_into without overlapping an input;
        those that `outs` does not have are made. Sizes must be known before the run."""
    def close(self) -> None:
        """Unloads the module; what it returned stays."""
    @property
    def closed(self) -> bool: ...
    @property
    def level(self) -> str:
        """The instruction-set level that runs here: "v3"."""
    @property
    def _manifest(self) -> str: ...
