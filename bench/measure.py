"""Measures models in Cuvil and its rivals, turn by turn, each time in a process of its own.

    python measure.py                                        # all models and peers; build/bench/results.json
    python measure.py --models resnet18,mlp --threads 1 --rounds 1

A round visits the peers of a (model, threads) pair in turn, so that a change of the machine's speed meets all. The
latency is the least of the rounds' medians, the spread how far those lie apart. Models of 5 ms and more are also
measured on two cores of which another process keeps one busy. Before it counts, a result is compared with PyTorch's.
A peer that cannot take a model, or is not installed, stands in the results with the reason. Needs PyTorch and onnx.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import machine
from model import Model
from peers import PEERS, program

HERE = Path(__file__).resolve().parent
# How far Cuvil may be off, relative to the largest output; a rival that is further off stands on the page, and one that
# is off by the second number computes something else.
TOLERANCE, OTHER_MODEL = 1e-5, 1e-3
LONG = 5e-3  # seconds, from which on a model is measured beside a busy core, too
PATIENCE = 900  # seconds for one process


class CannotRun(Exception):
    """A peer cannot take a model; says why."""


@dataclass
class Contest:
    """The turns of one model. found: what is known of each peer; where it has failed, "failure" says why."""

    model: Model
    found: dict[str, dict]
    rounds: int
    seconds: float

    def task(self, peer: str) -> dict:
        """What worker.py is told."""
        return {"peer": peer, "model": str(self.model.folder), "folder": str(self.model.folder / peer)}

    def attempt(self, peers: Iterable[str], work: Callable[[str], dict]) -> dict[str, dict]:
        """What work() finds for those of the peers that have not failed so far."""
        results = {}
        for peer in peers:
            if "failure" in self.found[peer]:
                continue
            try:
                results[peer] = work(peer)
            except CannotRun as failure:
                self.found[peer]["failure"] = str(failure).strip().rstrip(".")
                say(f"  {PEERS[peer].name} is out: {self.found[peer]['failure']}")
        return results


def worked(step: str, task: dict) -> dict:
    """What worker.py finds."""
    result = Path(task["folder"]) / f"{step}.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, HERE / "worker.py", step, json.dumps(task | {"started": time.monotonic()}), result]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise CannotRun(f"took more than {PATIENCE} s") from error
    if result.exists():
        return json.loads(result.read_text())
    if done.returncode < 0:
        raise CannotRun(f"ended by {signal.Signals(-done.returncode).name}")
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["ended without a word"]
    reason = said[-1].removeprefix("ValueError: ")  # peers.py's own words
    raise CannotRun(reason.replace(f"{Path(task['folder']).parents[1]}/", "")[:200])


def demand_exact(peer: str, result: dict) -> None:
    if not result["error"] < (OTHER_MODEL if PEERS[peer].is_rival else TOLERANCE):
        raise CannotRun(f"wrong by {result['error']:.1e} of the largest output")


def prepare(contest: Contest) -> None:
    def work(peer: str) -> dict:
        show(f"{PEERS[peer].name} prepares its files")
        (contest.model.folder / peer).mkdir(exist_ok=True)
        return worked("prepare", contest.task(peer))

    for peer, result in contest.attempt(contest.found, work).items():
        contest.found[peer] |= result | {"threads": {}}


def joined(rounds: list[dict]) -> dict:
    best = min(rounds, key=lambda result: result["median"])
    medians = [result["median"] for result in rounds]
    return best | {
        "spread": max(medians) / min(medians) - 1,
        "peak_bytes": max(result["peak_bytes"] for result in rounds),
        "first_output": min(result["first_output"] for result in rounds),
        "error": max(result["error"] for result in rounds),
    }


def in_turn(contest: Contest, title: str, threads: int, cores: list[int]) -> dict[str, dict]:
    """The joined results of the peers that do not fail. cores: to run on; any without one."""
    rounds: dict[str, list[dict]] = {peer: [] for peer in contest.found}

    def work(peer: str) -> dict:
        show(f"{title}, round {len(rounds[peer]) + 1} of {contest.rounds}: {PEERS[peer].name}")
        how = {"files": contest.found[peer]["files"], "threads": threads, "cores": cores, "seconds": contest.seconds}
        result = worked("run", contest.task(peer) | how)
        demand_exact(peer, result)
        return result

    for _ in range(contest.rounds):
        for peer, result in contest.attempt(contest.found, work).items():
            rounds[peer].append(result)
    results = {peer: joined(rounds[peer]) for peer, entry in contest.found.items() if "failure" not in entry}
    for peer, result in results.items():
        say(
            f"  {title:28} {PEERS[peer].name:14} {result['median'] * 1e3:10.4f} ms"
            f"  +{result['spread']:4.0%}  error {result['error']:.0e}"
        )
    return results


def beside_busy_core(contest: Contest) -> dict[str, dict]:
    """On two threads and two cores, of which another process keeps the first busy; nothing where there is one core."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        return {}
    with machine.busy_core(cores[0]):
        return in_turn(contest, "2 threads, a core busy", 2, cores)


def steps_of(module: Path) -> list[dict]:
    """Kernel, seconds and multiplications of Cuvil's steps on one thread, slowest first."""

    def told(*arguments: object) -> dict:
        command = [program(), *map(str, arguments), "--json"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    work = {str(step["number"]): step["work"] for step in told("inspect", module)["manifest"]["steps"]}
    timed = told("bench", module, "--threads", 1, "--layers", "--duration", 1)["layers"][0]["steps"]
    steps = [
        {
            "kernel": step["kernel"],
            "name": step["name"],
            "seconds": step["seconds"]["p50"],
            "multiplications": float(work[step["number"]].get("multiplications", 0)),
        }
        for step in timed
    ]
    return sorted(steps, key=lambda step: -step["seconds"])


def examined(contest: Contest, module: Path) -> dict:
    """What is measured of Cuvil only."""
    show("Cuvil from C, and its steps")
    try:
        from_c = machine.first_output(module, contest.model, module.parent)
        if from_c:
            demand_exact("cuvil", from_c)
        return {"from_c": from_c, "steps": steps_of(module)}
    except subprocess.CalledProcessError as error:
        raise CannotRun(error.stderr) from error


def measured_model(name: str, peers: list[str], options: argparse.Namespace) -> dict:
    contest = Contest(Model(options.work / name), {peer: {} for peer in peers}, options.rounds, options.seconds)
    found = contest.found
    show("the network itself")
    contest.model.write()
    prepare(contest)
    for threads in options.threads:
        for peer, result in in_turn(contest, f"{threads} thread{'s' * (threads > 1)}", threads, []).items():
            found[peer]["threads"][str(threads)] = result
    quiet = [entry["threads"][str(options.threads[0])]["median"] for entry in found.values() if "failure" not in entry]
    if min(quiet, default=0) >= LONG:
        for peer, result in beside_busy_core(contest).items():
            found[peer]["busy"] = result
    ours = contest.attempt(found.keys() & {"cuvil"}, lambda peer: examined(contest, Path(found[peer]["files"][0])))
    return {"onnx_bytes": contest.model.onnx.stat().st_size, "peers": found} | ours.get("cuvil", {})


def say(text: str) -> None:
    show("")
    print(text, flush=True)


def show(text: str) -> None:
    """What is being done; only on a terminal, where the next one takes its place."""
    if sys.stderr.isatty():
        print(f"\r\033[K  {text}"[:100], end="", file=sys.stderr, flush=True)


def listed(known: list[str]):
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no {name!r}; there are {', '.join(known)}")
        return names

    return parse


def main() -> None:
    try:
        from nets import NETS
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error}: the networks are PyTorch's; its CPU build is for Python 3.11") from error

    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Examples: measure.py --models resnet18 --threads 1 --rounds 1; measure.py --peers cuvil,onnxruntime",
    )
    parser.add_argument("--models", type=listed(list(NETS)), default=list(NETS), help="of " + ", ".join(NETS))
    parser.add_argument("--peers", type=listed(list(PEERS)), default=list(PEERS), help="of " + ", ".join(PEERS))
    parser.add_argument(
        "--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2], help="default: 1,2"
    )
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (default: 1)")
    parser.add_argument("--work", type=Path, default=HERE.parent / "build/bench", help="where models are kept")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    peers = [peer for peer in options.peers if PEERS[peer].is_installed()]
    absent = [peer for peer in options.peers if peer not in peers]
    for peer in absent:
        say(f"{PEERS[peer].name} is not installed and left out")
    results = {
        "date": time.strftime("%Y-%m-%d"),
        "processor": machine.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "rounds": options.rounds,
        "threads": options.threads,
        "peak": machine.peak(options.work),
        "versions": {peer: PEERS[peer].version() for peer in peers},
        "absent": absent,
        "models": {},
    }
    for i, name in enumerate(options.models):
        say(f"{name}, {i + 1} of {len(options.models)}")
        results["models"][name] = measured_model(name, peers, options)
        (options.work / "results.json").write_text(json.dumps(results, indent=1))
    show("")


if __name__ == "__main__":
    main()
