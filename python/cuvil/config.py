"""Where a C or C++ program finds Cuvil's header and loader.

    cc main.c $(python -m cuvil.config --cflags --libs) -o main

prints the compiler's options for <cuvil/cuvil.h> and for libcuvil_rt.so, which is found again when the program runs.
"""

import argparse
import shlex
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def include_dir() -> Path:
    """The folder for -I: it holds cuvil/cuvil.h."""
    return _PACKAGE / "include"


def library() -> Path:
    """The loader as a shared library."""
    return _PACKAGE / "libcuvil_rt.so.0"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m cuvil.config", description=__doc__.split("\n")[0])
    parser.add_argument("--cflags", action="store_true", help="print options for the compiler")
    parser.add_argument("--libs", action="store_true", help="print options for the linker")
    options = parser.parse_args()
    if not (options.cflags or options.libs):
        parser.error("say --cflags, --libs or both")
    words = [f"-I{include_dir()}"] if options.cflags else []
    if options.libs:
        folder = library().parent
        words += [f"-L{folder}", f"-l:{library().name}", f"-Wl,-rpath,{folder}"]
    print(shlex.join(words))


if __name__ == "__main__":
    main()
