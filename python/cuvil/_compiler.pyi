from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

class CompileArguments:
    def __init__(self) -> None: ...
    target: str
    opt_level: str
    optimize_for: str
    precision: str
    levels: list[str]
    jobs: int
    use_cache: bool
    kernels: dict[str, str]
    input_shapes: dict[str, list[int]]
    dynamic_shapes: dict[str, list[str]]
    attachments: list[str]
    print_after: list[str]
    disabled_passes: list[str]
    stop_after: str

class Value:
    """A value of a function: an input, or a result of a node."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str:
        """As in IR text: "f32[N,4]"."""
    @property
    def dtype(self) -> str | None:
        """ "f32"; None for what has no dtype."""
    @property
    def shape(self) -> tuple[int | str, ...] | None:
        """Sizes, as int or text; None where not even the rank is known."""
    @property
    def producer(self) -> OpNode | None:
        """The node that makes it; None for an input."""
    @property
    def users(self) -> list[OpNode]:
        """The nodes that use it, once for each use."""

class OpNode:
    """One operation."""

    @property
    def op(self) -> str: ...
    @property
    def operands(self) -> list[Value | None]:
        """Values, None where an optional one was left out."""
    @property
    def results(self) -> list[Value]: ...
    @property
    def attributes(self) -> dict[str, Any]:
        """By name, defaults included."""
    @property
    def location(self) -> tuple[str, str]:
        """The place in the model: (file, node)."""
    @property
    def regions(self) -> list[list[OpNode]]:
        """The nodes of each region of control flow."""

class FuncIR:
    """One function of a program; iterating gives its nodes in order."""

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> list[tuple[str, Value]]:
        """(name, Value) of each."""
    @property
    def outputs(self) -> list[tuple[str, Value]]:
        """(name, Value) of each."""
    @property
    def nodes(self) -> list[OpNode]: ...
    def __iter__(self) -> Iterator[OpNode]: ...
    def __len__(self) -> int: ...
    def input(self, name: str, type: str) -> Value:
        """Adds an input of a type such as "f32[N,4]"."""
    def output(self, name: str, value: Value) -> None:
        """Makes a value the next output."""
    def op(self, op: str, operands: list[Value | None], **attributes: Any) -> Any:
        """Adds a node; returns its result, or a tuple of them. None stands for an operand that is left out,
        attributes are keyword arguments."""
    def constant(self, array: Any, name: str = "constant") -> Value:
        """Adds an array that is known now."""
    def weight(self, name: str, array: Any) -> Value:
        """Adds an array to the table of weights."""

class Program:
    """Functions and the table of weights; str() gives its text."""

    def __init__(self, name: str = "model") -> None: ...
    name: str
    @property
    def metadata(self) -> dict[str, str]: ...
    def function(self, name: str) -> FuncIR:
        """Adds an empty function."""
    @property
    def functions(self) -> list[FuncIR]: ...
    @property
    def main(self) -> FuncIR:
        """The first function, which a module runs."""
    @property
    def weights(self) -> dict[str, str]:
        """The type of each weight by name."""
    def verify(self) -> list[str]:
        """What is broken, as sentences; empty when nothing is."""

class LoweredModule:
    @property
    def source(self) -> str: ...
    @property
    def sources(self) -> list[tuple[str, str, list[str]]]: ...
    def compile(self, arguments: CompileArguments) -> bytes: ...
    def write(self, arguments: CompileArguments, fd: int) -> None: ...

def compile(
    path: str, model: bytes | None, arguments: CompileArguments, dump: Callable[[str, str], object], fd: int
) -> str: ...
def compile_program(
    program: Program, arguments: CompileArguments, dump: Callable[[str, str], object], fd: int
) -> str: ...
def import_model(path: str, bytes: bytes | None, input_shapes: Mapping[str, Sequence[int]]) -> Program: ...
def lower(program: Program, levels: list[str]) -> LoweredModule: ...
def op_table() -> list[dict[str, Any]]:
    """The record of each op: name, summary, operands, attributes, results, reference and tests."""

def parse(text: str, file: str) -> Program: ...
def pass_names() -> list[str]: ...
def precisions() -> list[str]: ...
def run_passes(program: Program, stop_after: str, disabled_passes: list[str]) -> Program: ...
def targets() -> dict[str, list[str]]: ...
