"""One step of the benchmark in a process of its own, so that no library meets another; measure.py starts it.

python worker.py prepare|run TASK RESULT      TASK is JSON, RESULT the file that takes what was found, as JSON
"""

import json
import os
import re
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from model import Arrays, Model
from peers import PEERS, Run


def peak_bytes() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def warm_up(run: Run, inputs: Arrays, runs: int, seconds: float) -> None:
    """So many runs, or fewer when they take that long."""
    until = time.perf_counter() + seconds
    for _ in range(runs):
        run(inputs)
        if time.perf_counter() > until:
            break


def times_of(run: Run, inputs: Arrays, seconds: float) -> list[float]:
    """Of single runs, at least 10 unless they take ten times as long."""
    times: list[float] = []
    start = time.perf_counter()
    while not times or time.perf_counter() - start < (seconds if len(times) >= 10 else 10 * seconds):
        begin = time.perf_counter()
        run(inputs)
        times.append(time.perf_counter() - begin)
    return times


def prepare(task: dict) -> dict:
    begin = time.perf_counter()
    files = PEERS[task["peer"]].prepare(Model(Path(task["model"])), Path(task["folder"]))
    return {
        "files": [str(file) for file in files],
        "model_bytes": sum(file.stat().st_size for file in files),
        "prepare_seconds": time.perf_counter() - begin,
    }


def measure(task: dict) -> dict:
    if task["cores"]:
        os.sched_setaffinity(0, task["cores"])
    peer, model = PEERS[task["peer"]], Model(Path(task["model"]))
    inputs = model.inputs()
    run = peer.load(model, [Path(file) for file in task["files"]], task["threads"])
    first = run(inputs)
    ready = time.monotonic() - task["started"]  # the clock of the whole machine
    error = model.error(first)
    warm_up(run, inputs, 20, 1.0)
    peak = peak_bytes()  # before the times of many runs take memory, too
    warm_up(run, inputs, 10_000, task["seconds"] / 3)
    times = times_of(run, inputs, task["seconds"])
    return {
        "median": statistics.median(times),
        "p99": float(np.percentile(times, 99)),
        "runs": len(times),
        "first_output": ready,
        "peak_bytes": peak,
        "library_bytes": peer.bytes_of_libraries(),
        "error": error,
    }


def main() -> None:
    step, task, result = sys.argv[1:]
    found = {"prepare": prepare, "run": measure}[step](json.loads(task))
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
