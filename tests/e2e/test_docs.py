"""The tutorials: every command and every program of theirs is run, and what they show is what comes out.

A page's blocks belong together: `c` blocks are files whose first line names them, `python` blocks are one program whose
output the `text` blocks show, `console` blocks are commands behind `$ ` with their output. `...` stands for
anything.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import program

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def expect(shown: str, output: str, source: str) -> None:
    checker, rules = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if not checker.check_output(shown, output, rules):
        pytest.fail(source + checker.output_difference(doctest.Example(source, shown), output, rules))


@pytest.fixture
def shell(tmp_path: Path):
    """Runs commands where `cuvil`, `python` and the examples of the repository are at hand."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "bin").mkdir()
    for name, command in {"cuvil": program(), "python": [sys.executable]}.items():
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"

    def run(command: list[str] | str) -> str:
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    return run


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial(page: Path, shell, tmp_path: Path):
    if page.stem == "c" and not shutil.which("cc"):
        pytest.skip("there is no C compiler named cc")
    python = "".join(text for kind, text in blocks(page) if kind == "python")
    if python:
        shown = "".join(text for kind, text in blocks(page) if kind == "text")
        (tmp_path / "tutorial.py").write_text(python)
        expect(shown, shell([sys.executable, "tutorial.py"]), python)
    for kind, text in blocks(page):
        if kind == "c":
            (tmp_path / text.split()[1]).write_text(text)
        elif kind == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                expect(shown, shell(command), f"$ {command}\n")
