"""cuvil.compile."""

import json
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cuvil import _compiler, ir
from cuvil._files import memory_file, open_file
from cuvil.runtime import Module


def arguments(
    *,
    target: str = "cpu-x86-64",
    opt_level: str = "O2",
    optimize_for: str = "latency",
    precision: str = "f32",
    tuning: str | os.PathLike[str] | None = None,
    levels: Iterable[str] | None = None,
    jobs: int | None = None,
    use_cache: bool = True,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dynamic_shapes: Mapping[str, Sequence[int | str]] | None = None,
    attachments: Iterable[str | os.PathLike[str]] | None = None,
    print_after: str | Iterable[str] | None = None,
    disabled_passes: Iterable[str] | None = None,
) -> _compiler.CompileArguments:
    """The options of a compilation in native form."""
    if isinstance(jobs, int) and jobs < 1:
        raise ValueError("jobs is a positive number or None")
    if optimize_for not in ("latency", "size"):
        raise ValueError(f'optimize_for is "latency" or "size", got {optimize_for!r}')
    if precision not in _compiler.precisions():
        raise ValueError(f"precision is one of {', '.join(_compiler.precisions())}, got {precision!r}")
    native = _compiler.CompileArguments()

    def give(name: str, kind: str, value: Any, convert: Callable[[Any], Any]) -> None:
        try:
            setattr(native, name, convert(value))
        except (TypeError, AttributeError):
            raise TypeError(f"{name} is {kind}, got {value!r}") from None

    def as_it_is(value: Any) -> Any:
        return value

    give("target", "a str", target, as_it_is)
    give("opt_level", "a str", opt_level, as_it_is)
    native.optimize_for = optimize_for
    native.precision = precision
    native.kernels = _kernels(tuning)
    give("levels", "a list of str or None", levels, _listed)
    give("jobs", "a positive number or None", jobs, lambda value: 0 if value is None else value)
    give("use_cache", "a bool", use_cache, as_it_is)
    give(
        "input_shapes", "a dict of names and sizes or None", input_shapes, lambda value: _shapes(value, operator.index)
    )
    give("dynamic_shapes", "a dict of names and sizes or None", dynamic_shapes, lambda value: _shapes(value, str))
    give("attachments", "a list of paths or None", attachments, lambda value: [*map(os.fspath, _listed(value))])
    give("print_after", "a list of str or None", print_after, _listed)
    give("disabled_passes", "a list of str or None", disabled_passes, _listed)
    return native


def _kernels(tuning: str | os.PathLike[str] | None) -> dict[str, str]:
    if tuning is None:
        return {}
    try:
        kernels = json.loads(Path(tuning).read_text(encoding="utf-8"))["cuvil_kernels"]
        if all(isinstance(text, str) for text in kernels.values()):
            return kernels
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    raise ValueError(f"{os.fspath(tuning)!r} is no tuning file: `cuvil tune` writes them")


def _shapes(shapes: Any, size: Callable[[Any], Any]) -> dict[str, list[Any]]:
    return {name: [size(n) for n in shape] for name, shape in ({} if shapes is None else shapes).items()}


def _listed(words: Any) -> list[Any]:
    """One word, several or none as a list."""
    return [words] if isinstance(words, str | os.PathLike) else list(words or ())


def print_dump(name: str, text: str) -> None:
    print(f"# IR after {name}\n{text}")


def compile(
    model: "str | os.PathLike[str] | bytes | ir.Program | Any",
    *,
    target: str = "cpu-x86-64",
    opt_level: str = "O2",
    optimize_for: str = "latency",
    precision: str = "f32",
    tuning: str | os.PathLike[str] | None = None,
    levels: Iterable[str] | None = None,
    jobs: int | None = None,
    use_cache: bool = True,
    threads: int | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    dynamic_shapes: Mapping[str, Sequence[int | str]] | None = None,
    attachments: Iterable[str | os.PathLike[str]] | None = None,
    print_after: str | Iterable[str] | None = None,
    disabled_passes: Iterable[str] | None = None,
) -> Module:
    """Compiles a model and loads the module; `save` writes it to a file.

    model: the path of an .onnx or .cuir file, its bytes, an onnx.ModelProto, or a cuvil.ir.Program.
    target: "cpu-x86-64", or "native" for the best level of this CPU only. levels: only these of the target's: ["v3"].
    opt_level: "O0" to "O3", effort of the compiler. optimize_for: "latency", the shortest run, or "size", the smallest
    file and less memory while running. precision: what matrices of weights are kept in, "f32", "bf16-weights",
    "f16-weights" or "int8-weights"; all is computed in f32. tuning: a file that `cuvil tune` wrote. jobs: threads that
    compile. use_cache: False compiles all code anew, see `cuvil cache --help`. threads: how many a run may use.
    input_shapes: fixes the sizes of inputs by name. dynamic_shapes: all sizes of inputs by name, a str for one that is
    open: {"x": ["N", 3, 224, 224]}. attachments: files that go into the module under their names.
    print_after: names of passes ("all"), whose IR is printed.

    Raises OSError where the file cannot be read, Unsupported with all the reasons where the model cannot be compiled.
    Ctrl-C stops it.
    """
    native = arguments(
        target=target,
        opt_level=opt_level,
        optimize_for=optimize_for,
        precision=precision,
        tuning=tuning,
        levels=levels,
        jobs=jobs,
        use_cache=use_cache,
        input_shapes=input_shapes,
        dynamic_shapes=dynamic_shapes,
        attachments=attachments,
        print_after=print_after,
        disabled_passes=disabled_passes,
    )
    path, data = _source(model)
    fd = memory_file()
    try:
        if isinstance(model, ir.Program):
            warning = _compiler.compile_program(model, native, print_dump, fd)
        else:
            warning = _compiler.compile(path, data, native, print_dump, fd)
    except BaseException:
        os.close(fd)
        raise
    if warning:
        warnings.warn(warning.rstrip(), stacklevel=2)
    return Module(fd, "the compiled module", threads)


def _source(model: Any) -> tuple[str, bytes | None]:
    if isinstance(model, str | os.PathLike):
        path = os.fspath(model)
        os.close(open_file(path))  # the system's error, as for any file
        return path, None
    if isinstance(model, bytes | bytearray | memoryview):
        return "", bytes(model)
    if isinstance(model, ir.Program):
        return "", None
    if hasattr(model, "SerializeToString"):
        return "", model.SerializeToString()
    raise TypeError(
        f"cannot compile a {type(model).__name__}: give a path, bytes, an onnx.ModelProto or a cuvil.ir.Program"
    )
