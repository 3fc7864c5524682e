"""Conversions at the door of a module that need Python: whatever is not an array of the right dtype already."""

import sys
from typing import Any

import numpy as np

_NUMPY_NAMES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "bool": "bool",
    "c64": "complex64",
    "c128": "complex128",
}
_KINDS = "biufc"  # a value of one kind fits those behind it; "u" is reached from "i" by the values themselves
_PYTHON_VALUES = (bool, int, float, complex, list, tuple)


class Results(dict[str, Any]):
    """Outputs by name; the only output of a module also answers to "output"."""

    def __missing__(self, name: str) -> Any:
        if name == "output" and len(self) == 1:
            return next(iter(self.values()))
        raise KeyError(f"no output {name!r}; the outputs are {', '.join(map(repr, self))}")


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype for Cuvil's name: float32 for "f32". bfloat16 is the package ml_dtypes' if there is one, else its
    bits in uint16; strings are objects."""
    if name == "bf16":
        return _bfloat16() or np.dtype(np.uint16)
    return np.dtype(_NUMPY_NAMES.get(name, "object"))


def _bfloat16() -> np.dtype | None:
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


def as_bfloat16(bits: np.ndarray) -> np.ndarray:
    """uint16 bits as an array of bfloat16, where that exists."""
    dtype = _bfloat16()
    return bits if dtype is None else bits.view(dtype)


def string_array(texts: list[str], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)


def as_array(value: Any, name: str, dtype: str) -> np.ndarray:
    """`value` as an array that the module can read in place: native byte order, the input's dtype. Python numbers and
    lists are converted where no kind is lost (ints to floats, not floats to ints), arrays never."""
    wanted = _NUMPY_NAMES[dtype]
    port = f"input {name!r}"
    if value is None:
        raise TypeError(f"{port} is None; expected {wanted}")
    array = _from_python(value, port, wanted) if isinstance(value, _PYTHON_VALUES) else _from_array(value, port)
    if array.dtype.name != wanted:
        raise TypeError(f"{port} is {array.dtype.name}, expected {wanted}; convert it with .astype({wanted!r})")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if dtype == "bf16":
        array = array.view(np.uint16)
    if any(stride % array.itemsize for stride in array.strides):
        array = np.ascontiguousarray(array)
    return array


def as_target(value: Any, name: str, dtype: str) -> np.ndarray:
    """`value` as an array that the module can write output `name` into; never a copy."""
    wanted = _NUMPY_NAMES[dtype]
    port = f"output {name!r}"
    if value is None or isinstance(value, _PYTHON_VALUES):
        raise TypeError(f"{port} is a {type(value).__name__}; give an array of {wanted} to write into")
    array = _from_array(value, port)
    if array.dtype.name != wanted:
        raise TypeError(f"{port} is {array.dtype.name}, expected {wanted}")
    if not array.dtype.isnative:
        raise ValueError(f"{port} must have the byte order of the machine")
    if not array.flags.writeable or not isinstance(value, np.ndarray):
        raise ValueError(f"{port} is read-only")
    if any(stride % array.itemsize for stride in array.strides):
        raise ValueError(f"{port} must be row-major without gaps")
    return array.view(np.uint16) if dtype == "bf16" else array


def _from_python(value: Any, port: str, wanted: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{port}: {error}") from None
    if array.dtype.kind not in _KINDS:
        raise TypeError(f"{port} holds {_described(array)}, expected {wanted}")
    target = numpy_dtype(next(k for k, v in _NUMPY_NAMES.items() if v == wanted))
    kinds = "f" if wanted == "bfloat16" else target.kind
    if array.size and _rank(array.dtype.kind) > _rank(kinds):
        raise TypeError(f"{port} holds {_described(array)}, expected {wanted}")
    if array.size and target.kind in "iu" and array.dtype.kind in "iu":
        limits = np.iinfo(target)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise ValueError(f"{port}: a value does not fit {wanted}")
    if wanted == "bfloat16" and target.kind == "u":
        raise TypeError(f"{port}: bfloat16 from Python numbers needs the package ml_dtypes")
    return array.astype(target)


def _rank(kind: str) -> int:
    return _KINDS.index("i" if kind == "u" else kind)


def _described(array: np.ndarray) -> str:
    names = {"b": "bools", "i": "integers", "u": "integers", "f": "floats", "c": "complex numbers", "U": "strings"}
    return names.get(array.dtype.kind, "objects that are no numbers")


def _from_array(value: Any, port: str) -> np.ndarray:
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, port)
    array = np.asarray(value) if hasattr(value, "__array__") or hasattr(value, "__array_interface__") else None
    if array is None:
        try:
            array = np.asarray(memoryview(value))
        except TypeError:
            raise TypeError(f"{port} is a {type(value).__name__}, which is no array") from None
    return array


def _from_dlpack(value: Any, port: str) -> np.ndarray:
    detach = getattr(value, "detach", None)  # PyTorch: values that need gradients are not exported
    value = detach() if callable(detach) else value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16:
        return as_bfloat16(np.from_dlpack(value.view(torch.int16)).view(np.uint16))
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{port} cannot be read as an array: {error}") from None


def as_strings(value: Any, name: str, dtype: str) -> tuple[list[bytes], tuple[int, ...]]:
    """The strings of an array, list or single str, in UTF-8 and row-major order, and their shape."""
    array = np.asarray(value, dtype=object if isinstance(value, list | tuple) else None)
    if array.dtype.kind not in "USOT":
        raise TypeError(f"input {name!r} is {array.dtype.name}, expected strings")
    texts = []
    for text in array.ravel().tolist():
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogateescape")
        if not isinstance(text, bytes):
            raise TypeError(f"input {name!r} holds a {type(text).__name__}, expected strings")
        texts.append(text)
    return texts, array.shape
