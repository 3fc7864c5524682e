"""Cuvil compiles a machine-learning model to one small file of native code that needs nothing.

module = cuvil.compile("resnet18.onnx")
module.save("resnet18.cuvil")
scores = module.run({"input": image})["output"]

module = cuvil.load_module("resnet18.cuvil")
"""

import importlib
from typing import TYPE_CHECKING, Any

from cuvil import _runtime, runtime
from cuvil.errors import Diagnostic, InternalError, Unsupported
from cuvil.runtime import Module, load_module

if TYPE_CHECKING:
    from cuvil import backends, ir
    from cuvil._compile import compile

__version__ = _runtime.__version__

__all__ = [
    "Diagnostic",
    "InternalError",
    "Module",
    "Unsupported",
    "backends",
    "compile",
    "ir",
    "load_module",
    "runtime",
]


def __getattr__(name: str) -> Any:
    """What needs the compiler, which is loaded when it is first asked for: a program that runs modules does without."""
    if name not in ("backends", "compile", "ir"):
        raise AttributeError(f"module 'cuvil' has no attribute {name!r}")
    try:
        module = importlib.import_module("cuvil._compile" if name == "compile" else f"cuvil.{name}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("cuvil."):
            raise
        raise ImportError(
            f"cuvil.{name} needs the compiler, and only cuvil-runtime is installed: pip install cuvil"
        ) from None
    value = module.compile if name == "compile" else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
