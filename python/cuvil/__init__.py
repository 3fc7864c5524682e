"""Cuvil compiles a machine-learning model to one small file of native code that needs nothing.

module = cuvil.compile("resnet18.onnx")
module.save("resnet18.cuvil")
scores = module.run({"input": image})["output"]

module = cuvil.runtime.load_module("resnet18.cuvil")
"""

import importlib
from typing import TYPE_CHECKING, Any

from cuvil import _runtime, runtime
from cuvil.errors import Diagnostic, InternalError, Unsupported
from cuvil.runtime import Module

if TYPE_CHECKING:
    from cuvil import backends, ir
    from cuvil._compile import compile

__version__ = _runtime.__version__

__all__ = ["Diagnostic", "InternalError", "Module", "Unsupported", "backends", "compile", "ir", "runtime"]


def __getattr__(name: str) -> Any:
    """What needs the compiler, which is loaded when it is first asked for: a program that runs modules does without."""
    if name == "compile":
        value = importlib.import_module("cuvil._compile").compile
    elif name in ("backends", "ir"):
        value = importlib.import_module(f"cuvil.{name}")
    else:
        raise AttributeError(f"module 'cuvil' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
