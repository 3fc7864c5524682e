"""Writes what measure.py found into docs/performance.md and README.md, between their two marks, and draws the chart.

    python report.py [RESULTS.json] [--into FOLDER]

FOLDER: where README.md and docs/ stand; the repository without one.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from chart import chart
from figures import Results, is_measured, ratios, rivals_of
from peers import PEERS

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- measured: scripts/bench writes from here -->", "<!-- to here -->"
NONE = "no"
INEXACT = 1e-5  # of the largest output


def time_text(seconds: float) -> str:
    value, unit = (seconds * 1e3, "ms") if seconds >= 1e-3 else (seconds * 1e6, "µs")
    return f"{value:.2f} {unit}" if value < 10 else f"{value:.1f} {unit}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number > 1)}"


def joined(words: list[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def name_of(peer: str) -> str:
    return PEERS[peer].name


def first_of(entry: dict) -> dict:
    """What was measured on the first number of threads."""
    return next(iter(entry["threads"].values()))


def speed_table(results: Results) -> str:
    rivals = rivals_of(results)
    rows = []
    for name, model in results["models"].items():
        ours = [time_text(times["median"]) for times in model["peers"].get("cuvil", {}).get("threads", {}).values()]
        theirs = [", ".join(f"{ratio:.2f}" for ratio in ratios(model, rival)) or NONE for rival in rivals]
        rows.append([name, ", ".join(ours) or NONE, *theirs])
    return table(["", "Cuvil", *map(name_of, rivals)], rows)


def exceptions(results: Results) -> str:
    """What was not measured, and what is less exact than the others."""
    lines = [f"- {name_of(peer)} is not installed.\n" for peer in results["absent"]]
    for name, model in results["models"].items():
        for peer, entry in model["peers"].items():
            error = max((times["error"] for times in entry.get("threads", {}).values()), default=0.0)
            if "failure" in entry:
                lines.append(f"- {name_of(peer)} cannot run {name}: {entry['failure']}.\n")
            elif error > INEXACT:
                lines.append(f"- {name_of(peer)} is off by {error:.0e} of the largest output of {name}.\n")
    return "".join(lines) or "- Nothing.\n"


def busy_table(results: Results) -> str:
    peers = ["cuvil", *rivals_of(results)]
    rows = []
    for name, model in results["models"].items():
        entries = [model["peers"].get(peer, {}) for peer in peers]
        if any("busy" in entry for entry in entries):
            rows.append([name, *map(busy_text, entries)])
    return table(["", *map(name_of, peers)], rows) if rows else "No model took so long, or there is one core only.\n"


def busy_text(entry: dict) -> str:
    if "failure" in entry or "busy" not in entry:
        return NONE
    times = first_of(entry)["median"], entry["busy"]["median"], entry["busy"]["p99"]
    return ", ".join(f"{seconds * 1e3:.1f}" for seconds in times)


def peers_table(results: Results, peers: list[str], text: Callable[[dict], str]) -> str:
    rows = [
        [name, *(text(model["peers"][peer]) if is_measured(model, peer) else NONE for peer in peers)]
        for name, model in results["models"].items()
    ]
    return table(["", *map(name_of, peers)], rows)


def with_c(results: Results, figures: str, text: Callable[[dict], str]) -> str:
    """The table of all peers, with a column for Cuvil in a program in C."""
    lines = peers_table(results, ["cuvil", *rivals_of(results)], lambda entry: text(first_of(entry))).splitlines()
    from_c = [model.get("from_c") for model in results["models"].values()]
    if not any(from_c):
        return "\n".join(lines) + f"\n\nThere was no C compiler for {figures} of Cuvil from C.\n"
    cells = ["Cuvil, from C", "---", *(text(entry) if entry else NONE for entry in from_c)]
    return "".join(f"{line} {cell} |\n" for line, cell in zip(lines, cells, strict=True))


def shipped_text(entry: dict) -> str:
    return f"{(entry['model_bytes'] + first_of(entry)['library_bytes']) / 1e6:.1f}"


def small_table(results: Results) -> str:
    """Cuvil's default beside --optimize-for size."""
    rows = []
    for name, model in results["models"].items():
        if not (is_measured(model, "cuvil") and is_measured(model, "cuvil-size")):
            continue
        default, small = (model["peers"][peer] for peer in ("cuvil", "cuvil-size"))
        rows.append(
            [
                name,
                f"{model['onnx_bytes'] / 1e6:.2f}",
                f"{default['model_bytes'] / 1e6:.2f}, {small['model_bytes'] / 1e6:.2f}",
                ", ".join(f"{first_of(entry)['peak_bytes'] / 1e6:.0f}" for entry in (default, small)),
                ", ".join(f"{ratio:.2f}" for ratio in ratios(model, "cuvil-size")),
            ]
        )
    head = ["", "ONNX file, MB", "module, MB", "memory of the process, MB", "time for size / time of the default"]
    return table(head, rows) if rows else "Not measured.\n"


def steps_table(results: Results, count: int = 3) -> str:
    rows = []
    for name, model in results["models"].items():
        steps = model.get("steps", [])
        total = sum(step["seconds"] for step in steps)
        whole = {"kernel": "all steps", "name": "", "seconds": total}
        whole["multiplications"] = sum(step["multiplications"] for step in steps)
        for step in [whole, *steps[:count]] if steps else []:
            rate = step["multiplications"] / step["seconds"] / 1e9
            cells = [step["kernel"], step["name"].split(" + ")[0], time_text(step["seconds"])]
            cells.append(f"{step['seconds'] / total:.0%}")
            cells.append(f"{rate:.0f}" if rate >= 1 else "")
            cells.append(f"{rate / results['peak']:.0%}" if rate >= 1 and results["peak"] else "")
            rows.append([name, *cells])
    head = ["", "kernel", "first node", "time", "share of the run", "multiplications in a ns", "share of the peak"]
    return table(head, rows)


def peak_text(results: Results) -> str:
    if not results["peak"]:
        return "There was no C compiler to measure the peak with."
    return f"At its peak the core does {results['peak']:.1f} multiplications with their additions in a ns."


def origin(results: Results) -> str:
    """When, where and how."""
    versions = ", ".join(
        f"{name_of(peer)} {version}" for peer, version in results["versions"].items() if peer != "cuvil-size"
    )
    spreads = [
        times["spread"]
        for model in results["models"].values()
        for entry in model["peers"].values()
        for times in entry.get("threads", {}).values()
    ]
    machine = f"{results['date']}, {results['processor']}, {results['cores']} cores"
    rounds = counted(results["rounds"], "round")
    return f"""{machine}; {versions}.
The least of the medians of {rounds}, which lay up to {max(spreads, default=0):.0%} apart."""


def threads_text(results: Results) -> str:
    *others, last = results["threads"]
    return joined([*map(str, others), counted(last, "thread")])


def page_part(results: Results) -> str:
    everyone = ["cuvil", *rivals_of(results)]
    first = counted(results["threads"][0], "thread")
    return f"""
{origin(results)}

### Time of a run

On {threads_text(results)}, from Python, NumPy arrays in and out; of the others, how many times as long as Cuvil
they take.

{speed_table(results)}
![How many times as long the others take on {first}](performance.svg)

What was not measured and why, and who is off by more than {INEXACT:.0e} of the largest output:

{exceptions(results)}
### Beside a busy core

Models of 5 ms and more, in ms: the median on {first} with nothing else to do; then on 2 threads and two cores, of which
another process keeps one busy, the median and the 99th percentile.

{busy_table(results)}
### Memory

Of the whole process, MB, at most, on {first}. ExecuTorch's is mostly PyTorch, which its Python side needs.

{with_c(results, "the memory", lambda times: f"{times['peak_bytes'] / 1e6:.0f}")}
### Cold start

From the start of the process to the first output, s: Python and its packages, the model, one run; the files have
been read before. From C it is a program that loads the module with `libcuvil_rt.so`. ExecuTorch's is mostly PyTorch.

{with_c(results, "the start", lambda times: f"{times['first_output']:.3f}")}
### What a program brings along

The model, and those libraries of the peer's own Python package that are loaded to run it, MB.

{peers_table(results, everyone, shipped_text)}
### For size

`cuvil compile --optimize-for size` beside the default: default, for size. Times on {threads_text(results)}.

{small_table(results)}
### Where the time goes

The slowest steps of Cuvil on one thread. {peak_text(results)}
Those of Winograd's method count as they are done, fewer than the convolution has.

{steps_table(results)}
"""


def readme_part(results: Results) -> str:
    return f"""
Time of a run on {threads_text(results)}, and how many times as long the others take ({NONE}: it cannot):

{speed_table(results)}
{origin(results)}
"""


def rewrite(page: Path, part: str) -> None:
    before, _, rest = page.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{page} has lost the marks {BEGIN} and {END}")
    page.write_text(before + BEGIN + "\n" + part + "\n" + END + after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=ROOT / "build/bench/results.json")
    parser.add_argument("--into", type=Path, default=ROOT, metavar="FOLDER", help="where README.md and docs/ stand")
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    rewrite(options.into / "docs/performance.md", page_part(results))
    rewrite(options.into / "README.md", readme_part(results))
    (options.into / "docs/performance.svg").write_text(chart(results))


if __name__ == "__main__":
    main()
