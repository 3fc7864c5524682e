"""What measure.py found, as the page and the chart ask for it."""

from typing import Any

from peers import PEERS

Results = dict[str, Any]


def rivals_of(results: Results) -> list[str]:
    return [peer for peer in results["versions"] if PEERS[peer].is_rival]


def is_measured(model: dict, peer: str) -> bool:
    return "failure" not in model["peers"].get(peer, {"failure": "not asked for"})


def ratios(model: dict, peer: str) -> list[float]:
    """How many times as long as Cuvil the peer takes, for each number of threads; none where one of them failed."""
    if not (is_measured(model, "cuvil") and is_measured(model, peer)):
        return []
    ours, theirs = model["peers"]["cuvil"]["threads"], model["peers"][peer]["threads"]
    return [theirs[threads]["median"] / ours[threads]["median"] for threads in ours]
