"""Checks the order of the house, from the sources alone.

    house_test.py includes            who may include whom
    house_test.py headers COMPILER    each header compiles alone, include/cuvil/cuvil.h as C99, too
    house_test.py errors              docs/errors.md lists the codes of all diagnostics, and no others
    house_test.py scripts             each script tells what it does, and refuses words that it does not know

Prints what is wrong and exits with 1, or exits with 0.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["support", "ir", "ops", "import", "optimize", "plan", "codegen", "artifact", "eval"]

# The only places that know LLVM. Its headers cost 17 seconds and 1.3 GB for each file that includes them.
LLVM_PLACES = (
    *("src/codegen/clang.cpp", "src/codegen/lld.cpp", "src/codegen/no_polly.cpp", "src/codegen/objcopy.cpp"),
    "src/codegen/llvm_passes/",
)
LLVM_HEADER = re.compile(r"(llvm|clang|lld)(-c)?/")

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


# A diagnostic's code in a source: the first argument of what makes it, or an argument of a parser's report().
CODE = re.compile(
    r'''(?:\b(?:error|warning|ImportError)\(\s*|code\ =\ )"([a-z0-9]+(?:-[a-z0-9]+)*)"
      | \breport\([^;]*?,\s*"([a-z0-9]+(?:-[a-z0-9]+)+)"''',
    re.VERBOSE,
)


def sources(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".hpp", ".cpp", ".h")]
    return sorted(path.relative_to(ROOT) for path in found)


def includes(path: Path) -> list[str]:
    return INCLUDE.findall((ROOT / path).read_text())


def folder_of_src(path: str) -> str | None:
    """The folder of src/ that an include names: "ir" for "ir/type.hpp"; none for other headers."""
    folder = path.split("/")[0]
    return folder if "/" in path and folder in FOLDERS else None


def wrong_includes() -> list[str]:
    wrong = []
    for path in sources("include", "src", "kernels", "runtime", "tools", "python", "tests", "fuzz"):
        place = path.parts[1] if path.parts[0] == "src" and len(path.parts) > 2 else None
        for included in includes(path):
            target = folder_of_src(included)
            if folder_of_src(included.removeprefix("src/")) != target:
                wrong.append(f"{path}: {included}: say it without src/")
            if path.parts[0] in ("kernels", "runtime", "include") and target:
                wrong.append(f"{path}: {included}: {path.parts[0]}/ includes nothing of src/")
            if place in FOLDERS and target and FOLDERS.index(target) > FOLDERS.index(place):
                wrong.append(f"{path}: {included}: src/{target} comes after src/{place}")
            if LLVM_HEADER.match(included) and not str(path).startswith(LLVM_PLACES):
                wrong.append(f"{path}: {included}: LLVM is for {', '.join(LLVM_PLACES)} only")
    return wrong


def wrong_headers(compiler: str) -> list[str]:
    def check(job: tuple[Path, str, list[str]]) -> str:
        path, text, flags = job
        command = [compiler, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DCUVIL_ISA=eval", *flags]
        command += [f"-I{ROOT / folder}" for folder in ("include", "src", "")]
        done = subprocess.run([*command, "-"], input=text, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else f"{path} does not compile alone ({' '.join(flags)}):\n{done.stderr}"

    jobs = []
    for path in sources("include", "src", "kernels", "runtime", "tools"):
        if path.suffix == ".hpp" or path.parts[0] == "include":
            name = path.relative_to(path.parts[0]) if path.parts[0] in ("include", "src") else path
            jobs.append((path, f'#include "{name}"\n', ["-std=c++20", "-xc++"]))
    jobs.append((Path("include/cuvil/cuvil.h"), '#include "cuvil/cuvil.h"\n', ["-std=c99", "-pedantic", "-xc"]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [message for message in pool.map(check, jobs) if message]


def wrong_errors() -> list[str]:
    page = "docs/errors.md"
    listed = re.findall(r"^\| `([^`]+)` \|", (ROOT / page).read_text(), re.MULTILINE)
    places = {}
    for path in sources("src", "tools"):
        for match in CODE.finditer((ROOT / path).read_text()):
            places.setdefault(match[1] or match[2], path)
    wrong = [
        f"{page} does not list {code}, which {path} reports" for code, path in places.items() if code not in listed
    ]
    wrong += [f"{page} lists {code}, which nothing reports" for code in listed if code not in places]
    if listed != sorted(set(listed)):
        wrong.append(f"{page}: the codes are not in order")
    return wrong


def wrong_scripts() -> list[str]:
    wrong = []
    for script in sorted(path for path in (ROOT / "scripts").iterdir() if os.access(path, os.X_OK)):

        def answer(*words: str, script: Path = script) -> tuple[int, str]:
            try:
                done = subprocess.run([script, *words], cwd="/", capture_output=True, text=True, timeout=30)
            except subprocess.TimeoutExpired:
                return -1, "it began to work"
            return done.returncode, done.stdout + done.stderr

        purpose = re.search(r"\A#!.*\n\W*(.+?)[.,:;]", script.read_text())[1]
        for words in (["--help"], ["-h"]):
            status, text = answer(*words)
            if status != 0 or purpose not in text:
                wrong.append(f"scripts/{script.name} {words[0]} does not say '{purpose}', but: {text}")
        status, text = answer("--no-such-option")
        if status != 2 or "--no-such-option" not in text:
            wrong.append(f"scripts/{script.name} --no-such-option is not refused, but: {text}")
    return wrong


def main() -> int:
    checks = {
        "includes": wrong_includes,
        "headers": lambda: wrong_headers(sys.argv[2]),
        "errors": wrong_errors,
        "scripts": wrong_scripts,
    }
    wrong = checks[sys.argv[1]]()
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
