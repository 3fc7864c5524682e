"""What Cuvil raises beside the built-in exceptions."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Diagnostic:
    """One thing that is wrong with a model, or a warning; str() gives it as the program prints it."""

    severity: str
    """ "error" or "warning" """
    code: str
    """ "shape-mismatch" """
    message: str
    file: str
    name: str
    """The node, module path or line in the file."""
    excerpt: str
    notes: tuple[str, ...]
    help: str
    count: int
    """How many equal ones this stands for."""
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


class Unsupported(Exception):
    """The model cannot be compiled, or the module cannot be loaded; `diagnostics` has all the reasons."""

    def __init__(self, text: str, diagnostics: list[Diagnostic] | None = None) -> None:
        super().__init__(text.rstrip("\n"))
        self.diagnostics = diagnostics or []


class InternalError(RuntimeError):
    """A bug in Cuvil. Please report it with `reproducer`, or else with the model or the smallest one that shows it."""

    reproducer: Path | None = None
    """A file that was written: the program before the step that failed, without the data of its weights."""


def bad_module(message: str, file: str = "") -> Unsupported:
    """The refusal to load a file."""
    text = f"error[bad-artifact]: {message}\n"
    return Unsupported(text, [Diagnostic("error", "bad-artifact", message, file, "", "", (), "", 1, text)])
