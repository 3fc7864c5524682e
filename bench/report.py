"""Writes what measure.py found into docs/performance.md, between its two marks, and draws docs/performance.svg.

python report.py [RESULTS.json]
"""

import json
import sys
from html import escape
from pathlib import Path

from peers import PEERS

ROOT = Path(__file__).resolve().parents[1]
PAGE, CHART = ROOT / "docs/performance.md", ROOT / "docs/performance.svg"
BEGIN, END = "<!-- measured: scripts/bench writes from here -->", "<!-- to here -->"
COLOURS = {"onnxruntime": "#4c78a8", "openvino": "#f58518"}


def time_text(seconds: float) -> str:
    value, unit = (seconds * 1e3, "ms") if seconds >= 1e-3 else (seconds * 1e6, "µs")
    return f"{value:.2f} {unit}" if value < 10 else f"{value:.1f} {unit}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def rivals_of(results: dict) -> list[str]:
    return [peer for peer in results["versions"] if peer != "cuvil"]


def ratios(model: dict, rival: str) -> list[float]:
    """How many times as long the rival takes, for each number of threads."""
    ours, theirs = model["peers"]["cuvil"]["threads"], model["peers"][rival]["threads"]
    return [theirs[threads]["median"] / ours[threads]["median"] for threads in ours]


def speed_table(results: dict) -> str:
    rivals = rivals_of(results)
    rows = []
    for name, model in results["models"].items():
        ours = ", ".join(time_text(result["median"]) for result in model["peers"]["cuvil"]["threads"].values())
        rows.append([name, ours, *(", ".join(f"{r:.2f}" for r in ratios(model, rival)) for rival in rivals)])
    return table(["", "Cuvil", *(PEERS[rival].name for rival in rivals)], rows)


def size_table(results: dict) -> str:
    """Of one thread: memory, time to the first output, and what a program has to bring along."""
    peers = list(results["versions"])
    rows = []
    for name, model in results["models"].items():
        first = {peer: next(iter(model["peers"][peer]["threads"].values())) for peer in peers}
        rows.append(
            [
                name,
                f"{model['onnx_bytes'] / 1e6:.1f}",
                ", ".join(f"{first[peer]['peak_bytes'] / 1e6:.0f}" for peer in peers),
                ", ".join(f"{first[peer]['first_output']:.2f}" for peer in peers),
                ", ".join(f"{model['peers'][peer]['shipped_bytes'] / 1e6:.1f}" for peer in peers),
            ]
        )
    head = ["", "ONNX file, MB", "memory of the process, MB", "start to first output, s", "model and libraries, MB"]
    return table(head, rows)


def steps_table(results: dict, count: int = 3) -> str:
    rows = []
    for name, model in results["models"].items():
        steps = model.get("steps", [])
        total = sum(step["seconds"] for step in steps)
        for step in steps[:count]:
            rate = step["multiplications"] / step["seconds"] / 1e9
            rows.append(
                [
                    name,
                    step["kernel"],
                    step["name"].split(" + ")[0],
                    time_text(step["seconds"]),
                    f"{step['seconds'] / total:.0%}",
                    f"{rate:.0f}" if rate >= 1 else "",
                ]
            )
    return table(["", "kernel", "first node", "time", "share", "multiplications in a ns"], rows)


def chart(results: dict) -> str:
    """Bars of the rivals' times in multiples of Cuvil's, one thread."""
    rivals, models = rivals_of(results), results["models"]
    left, unit, bar, gap = 130, 90, 12, 14
    longest = 6.0  # bars beyond it are cut, and say so by their number
    width = left + unit * int(longest) + 70
    height = 40 + len(models) * (len(rivals) * bar + gap)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">']
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for i, rival in enumerate(rivals):
        x = left + 130 * i
        parts.append(f'<rect x="{x}" y="8" width="10" height="10" fill="{COLOURS[rival]}"/>')
        parts.append(f'<text x="{x + 15}" y="17" font-size="12">{escape(PEERS[rival].name)}</text>')
    y = 30
    for name, model in models.items():
        middle = y + len(rivals) * bar / 2 + 4
        parts.append(f'<text x="{left - 8}" y="{middle}" font-size="12" text-anchor="end">{escape(name)}</text>')
        for rival in rivals:
            ratio = ratios(model, rival)[0]
            length = unit * min(ratio, longest)
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.0f}" height="{bar - 2}" fill="{COLOURS[rival]}"/>')
            parts.append(f'<text x="{left + length + 4:.0f}" y="{y + bar - 3}" font-size="10">{ratio:.2f}</text>')
            y += bar
        y += gap
    x = left + unit
    parts.append(f'<line x1="{x}" y1="24" x2="{x}" y2="{height - 8}" stroke="black" stroke-dasharray="3 2"/>')
    parts.append(f'<text x="{x + 3}" y="{height - 4}" font-size="10">1 = Cuvil</text></svg>')
    return "\n".join(parts) + "\n"


def page_part(results: dict) -> str:
    versions = ", ".join(f"{PEERS[peer].name} {version}" for peer, version in results["versions"].items())
    spread = max(
        result["spread"]
        for model in results["models"].values()
        for peer in model["peers"].values()
        for result in peer["threads"].values()
    )
    peers = ", ".join(PEERS[peer].name for peer in results["versions"])
    threads = next(iter(next(iter(results["models"].values()))["peers"].values()))["threads"]
    return f"""
{results["date"]}, {results["processor"]}, {results["cores"]} cores; {versions}. The least of the medians of
{results["rounds"]} rounds, which lay up to {spread:.0%} apart.

### Time of a run

On {" and ".join(threads)} threads, from Python, NumPy arrays in and out; of the others, how many times as long as Cuvil
they take.

{speed_table(results)}
![How many times as long the others take on one thread](performance.svg)

### Memory, start and size

On one thread: {peers}.

{size_table(results)}
### Where the time goes

The slowest steps of Cuvil on one thread.

{steps_table(results)}
"""


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/bench/results.json"
    results = json.loads(source.read_text())
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE} has lost the marks {BEGIN} and {END}")
    PAGE.write_text(before + BEGIN + "\n" + page_part(results) + END + after)
    CHART.write_text(chart(results))


if __name__ == "__main__":
    main()
