"""The intermediate representation: typed SSA graphs, built by hand, read from text or imported.

p = ir.Program()
f = p.function("main")
x = f.input("x", "f32[N,4]")
f.output("y", f.op("relu", [x]))
module = cuvil.compile(p)
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cuvil import _compiler
from cuvil._compiler import FuncIR, OpNode, Program, Value, op_table
from cuvil._files import open_file

__all__ = ["FuncIR", "OpNode", "Program", "Value", "from_onnx", "op_table", "parse", "pass_names", "run_passes"]


def parse(text: str, file: str = "<string>") -> Program:
    """Reads IR text; `file` names it in messages. Raises cuvil.Unsupported with all that is wrong in it."""
    return _compiler.parse(text, file)


def from_onnx(
    model: str | os.PathLike[str] | bytes | Any, input_shapes: Mapping[str, Sequence[int]] | None = None
) -> Program:
    """The program of an ONNX model - a path, bytes or an onnx.ModelProto - before any pass."""
    shapes = {name: list(shape) for name, shape in (input_shapes or {}).items()}
    if isinstance(model, str | os.PathLike):
        os.close(open_file(model))  # the system's error, as for any file
        return _compiler.import_model(os.fspath(model), None, shapes)
    data = model.SerializeToString() if hasattr(model, "SerializeToString") else bytes(model)
    return _compiler.import_model("", data, shapes)


def pass_names() -> list[str]:
    """The passes in their order, for run_passes and print_after."""
    return _compiler.pass_names()


def run_passes(program: Program, *, stop_after: str = "", disabled_passes: Iterable[str] = ()) -> Program:
    """What the target-free passes make of a program, which stays as it is."""
    return _compiler.run_passes(program, stop_after, list(disabled_passes))
