"""Cuvil compiles a machine-learning model to one small file of native code that needs nothing.

module = cuvil.compile("resnet18.onnx")
module.save("resnet18.cuvil")
scores = module.run({"input": image})["output"]

module = cuvil.runtime.load_module("resnet18.cuvil")
"""

from cuvil import _cuvil, backends, ir, runtime
from cuvil._compile import compile
from cuvil.errors import Diagnostic, InternalError, Unsupported
from cuvil.runtime import Module

__version__ = _cuvil.__version__

__all__ = ["Diagnostic", "InternalError", "Module", "Unsupported", "backends", "compile", "ir", "runtime"]
