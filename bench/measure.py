"""Measures models in Cuvil and its rivals, turn by turn, each time in a process of its own.

    python measure.py                                        # all models and peers; build/bench/results.json
    python measure.py --models resnet18,mlp --threads 1 --rounds 1

A round visits the peers of a (model, threads) pair in turn, so that a change of the machine's speed meets all. The
latency is the least of the rounds' medians, the spread how far those lie apart. Before it counts, a result is compared
with PyTorch's. Needs PyTorch, onnx, and the peers that are measured; those that are not installed are left out.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from peers import PEERS, Run, program

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-5  # of the largest output


# ---- In the process that is measured


def peak_bytes() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def times_of(run: Run, inputs: dict[str, np.ndarray], seconds: float) -> list[float]:
    """Of single runs, at least 10; a third of `seconds`, at most 10 000 runs, goes before them to warm up."""
    warm_until = time.perf_counter() + seconds / 3
    for _ in range(10_000):
        run(inputs)
        if time.perf_counter() > warm_until:
            break
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < until:
        begin = time.perf_counter()
        run(inputs)
        times.append(time.perf_counter() - begin)
    return times


def worker(task: dict) -> dict:
    folder = Path(task["folder"])
    inputs = dict(np.load(folder / "inputs.npz"))
    run = PEERS[task["peer"]].load(Path(task["file"]), task["threads"])
    first = run(inputs)
    ready = time.monotonic() - task["started"]  # the clock of the whole machine
    wanted = np.load(folder / "output.npy")
    error = float(np.abs(np.asarray(first[0]).reshape(wanted.shape) - wanted).max() / np.abs(wanted).max())
    for _ in range(20):
        run(inputs)
    peak = peak_bytes()  # before the times of many runs take memory, too
    times = times_of(run, inputs, task["seconds"])
    return {
        "median": statistics.median(times),
        "p99": float(np.percentile(times, 99)),
        "runs": len(times),
        "first_output": ready,
        "peak_bytes": peak,
        "error": error,
    }


# ---- In the process that measures


def write_model(name: str, folder: Path) -> None:
    """model.onnx, inputs.npz and output.npy, the answer of PyTorch; once."""
    if (folder / "output.npy").exists():
        return
    import nets
    import torch

    net, samples = nets.make(name)
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs no other package is called a legacy
        torch.onnx.export(
            net, tuple(samples.values()), folder / "model.onnx", input_names=list(samples), output_names=["output"],
            opset_version=17, dynamo=False,
        )  # fmt: skip
    np.savez(folder / "inputs.npz", **{key: value.numpy() for key, value in samples.items()})
    with torch.no_grad():
        np.save(folder / "output.npy", net(*samples.values()).numpy())


def measure(task: dict) -> dict:
    command = [sys.executable, __file__, "--worker", json.dumps(task | {"started": time.monotonic()})]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{task['peer']} failed on {task['folder']}:\n{done.stderr}")
    result = json.loads(done.stdout.splitlines()[-1])
    if not result["error"] < TOLERANCE:
        raise SystemExit(f"{task['peer']} is wrong by {result['error']:.1e} on {task['folder']}")
    return result


def joined(rounds: list[dict]) -> dict:
    best = min(rounds, key=lambda result: result["median"])
    medians = [result["median"] for result in rounds]
    return best | {
        "spread": max(medians) / min(medians) - 1,
        "peak_bytes": max(result["peak_bytes"] for result in rounds),
        "first_output": min(result["first_output"] for result in rounds),
        "error": max(result["error"] for result in rounds),
    }


def steps_of(module: Path) -> list[dict]:
    """Kernel, seconds and multiplications of Cuvil's steps on one thread, slowest first."""

    def told(*arguments: object) -> dict:
        command = [program(), *map(str, arguments), "--json"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    work = {str(step["number"]): step["work"] for step in told("inspect", module)["manifest"]["steps"]}
    measured = told("bench", module, "--threads", 1, "--layers", "--duration", 1)["layers"][0]["steps"]
    steps = [
        {
            "kernel": step["kernel"],
            "name": step["name"],
            "seconds": step["seconds"]["p50"],
            "multiplications": float(work[step["number"]].get("multiplications", 0)),
        }
        for step in measured
    ]
    return sorted(steps, key=lambda step: -step["seconds"])


def processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def measured_model(name: str, peers: list[str], options: argparse.Namespace) -> dict:
    folder = options.work / name
    write_model(name, folder)
    out: dict = {"onnx_bytes": (folder / "model.onnx").stat().st_size, "peers": {}}
    files: dict[str, Path] = {}
    for peer in peers:
        (folder / peer).mkdir(exist_ok=True)
        files[peer] = PEERS[peer].prepare(folder / "model.onnx", folder / peer)
        out["peers"][peer] = {"shipped_bytes": PEERS[peer].shipped(files[peer]), "threads": {}}
    for threads in options.threads:
        rounds: dict[str, list[dict]] = {peer: [] for peer in peers}
        for _ in range(options.rounds):
            for peer in peers:
                task = {"peer": peer, "folder": str(folder), "file": str(files[peer]), "threads": threads}
                rounds[peer].append(measure(task | {"seconds": options.seconds}))
        for peer in peers:
            result = joined(rounds[peer])
            out["peers"][peer]["threads"][str(threads)] = result
            print(
                f"{name:14} {threads} {PEERS[peer].name:14} {result['median'] * 1e3:10.4f} ms"
                f"  +{result['spread']:4.0%}  error {result['error']:.0e}",
                flush=True,
            )
    if "cuvil" in peers:
        out["steps"] = steps_of(files["cuvil"])
    return out


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
        description=__doc__.splitlines()[0], epilog="Example: measure.py --models resnet18 --threads 1 --rounds 1"
    )
    parser.add_argument("--models", type=listed(list(NETS)), default=list(NETS), help="of " + ", ".join(NETS))
    parser.add_argument("--peers", type=listed(list(PEERS)), default=list(PEERS), help="of " + ", ".join(PEERS))
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--work", type=Path, default=HERE.parent / "build/bench", help="where models are kept")
    options = parser.parse_args()
    peers = [peer for peer in options.peers if PEERS[peer].is_installed()]
    for peer in set(options.peers) - set(peers):
        print(f"{PEERS[peer].name} is not installed and left out", file=sys.stderr)
    results = {
        "date": time.strftime("%Y-%m-%d"),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "rounds": options.rounds,
        "versions": {peer: PEERS[peer].version() for peer in peers},
        "models": {name: measured_model(name, peers, options) for name in options.models},
    }
    (options.work / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(worker(json.loads(sys.argv[2]))))
    else:
        main()
