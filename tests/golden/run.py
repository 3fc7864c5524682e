#!/usr/bin/env python3
"""Runs the tests that are IR text: each file goes through cuvil-opt and is compared with what it expects.

A file opens with comments: `# run:` and the options of cuvil-opt (none: read, verify, print), then a sentence that says
what is tested. After the text comes what is expected, one of

    ---                          behind it the whole text that comes out
    # expect: no op "relu"       no node of this op comes out
    # expect: op "relu" count 2  so many nodes of this op come out
    # expect-error:              behind it, each line in a comment, the whole message that refuses the text

With --bless the expected texts and messages are rewritten and the differences shown.
"""

import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

SEPARATOR = "---\n"
ERROR_MARK = "# expect-error:\n"


@dataclass
class Case:
    path: Path
    source: str = ""  # what cuvil-opt reads, comments included
    options: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    text: str | None = None
    error: str | None = None


def read_case(path: Path) -> Case:
    case = Case(path)
    content = path.read_text(encoding="utf-8")
    if ERROR_MARK in content:
        case.source, _, comments = content.partition(ERROR_MARK)
        case.error = "".join(line.removeprefix("#").removeprefix(" ") for line in comments.splitlines(True))
    elif f"\n{SEPARATOR}" in content:
        case.source, _, case.text = content.partition(f"\n{SEPARATOR}")
        case.source += "\n"
    else:
        case.source = content
    for line in case.source.splitlines():
        if line.startswith("# run:"):
            case.options += shlex.split(line.removeprefix("# run:"))
        if line.startswith("# expect:"):
            case.facts.append(line.removeprefix("# expect:").strip())
    return case


def run_tool(tool: str, options: list[str], text: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([tool, *options], input=text.encode(), capture_output=True, timeout=60, check=False)


def difference(expected: str, actual: str, path: Path) -> str:
    lines = difflib.unified_diff(
        expected.splitlines(), actual.splitlines(), f"{path} (expected)", "actual", lineterm=""
    )
    return "\n".join(lines)


def count_op(text: str, op: str) -> int:
    return len(re.findall(rf"^\s*(?:%[^=]*= )?{re.escape(op)}(?=[ \n])", text, re.MULTILINE))


def check_fact(fact: str, text: str) -> str:
    """What is wrong with the fact, or nothing."""
    match = re.fullmatch(r'(?:no op "(\S+)"|op "(\S+)" count (\d+))', fact)
    if not match:
        return f"no such expectation: {fact}"
    op = match[1] or match[2]
    expected, actual = int(match[3] or 0), count_op(text, op)
    return "" if expected == actual else f'expected {expected} of op "{op}", got {actual}:\n{text}'


def check(case: Case, tool: str, bless: bool) -> str:
    """What is wrong with the case, or nothing. Blessing makes it right and says what changed."""
    if case.error is None and case.text is None and not case.facts and not bless:
        return "the file expects nothing"
    run = run_tool(tool, case.options, case.source)
    out, err = run.stdout.decode(), run.stderr.decode()
    if case.error is not None:
        if run.returncode != 1:
            return f"expected a refusal (exit status 1), got {run.returncode}\n{out}{err}"
        return settle(case, "error", case.error, err, bless)
    if run.returncode != 0:
        return f"exit status {run.returncode}\n{err}"
    again = run_tool(tool, [], out)
    if again.returncode != 0 or again.stdout.decode() != out:
        return (
            "the printed text does not read back as itself:\n"
            + again.stderr.decode()
            + difference(out, again.stdout.decode(), case.path)
        )
    wrong = [problem for fact in case.facts if (problem := check_fact(fact, out))]
    if wrong or (case.facts and case.text is None):
        return "\n".join(wrong)
    return settle(case, "text", case.text or "", out, bless)


def settle(case: Case, kind: str, expected: str, actual: str, bless: bool) -> str:
    if expected == actual:
        return ""
    change = difference(expected, actual, case.path)
    if not bless:
        return change
    if kind == "error":
        comments = "".join(f"# {line}".rstrip() + "\n" for line in actual.splitlines())
        case.path.write_text(case.source + ERROR_MARK + comments, encoding="utf-8")
    else:
        case.path.write_text(case.source + SEPARATOR + actual, encoding="utf-8")
    print(change)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True, help="the cuvil-opt to run")
    parser.add_argument("--bless", action="store_true", help="take what comes out as what is expected")
    parser.add_argument("paths", nargs="+", type=Path, help="files, or folders of *.cuir")
    options = parser.parse_args()
    files = [f for path in options.paths for f in (sorted(path.rglob("*.cuir")) if path.is_dir() else [path])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda f: check(read_case(f), options.tool, options.bless), files))
    failures = [(f, result) for f, result in zip(files, results, strict=True) if result]
    for file, result in failures:
        print(f"FAIL {file}\n{result}\n")
    print(f"{len(files) - len(failures)} of {len(files)} passed")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
