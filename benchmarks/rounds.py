"""Measures the time of a step, in rounds over the peers."""

import time
from dataclasses import dataclass

from benchmarks.processes import PeerError
from benchmarks.report import Result

# Threads of the previous peer spin for a moment after their last step.
PAUSE = 0.05


@dataclass(frozen=True)
class Effort:
    """The number of rounds over the peers, of loops per round, and the seconds per loop."""

    rounds: int
    loops: int
    seconds: float


def measure(workload, workers, effort, log):
    """Returns the best time of one step for each of `workers`, a dict from names to processes."""
    result = Result(workload, "s")
    for name, worker in workers.items():
        log(f"{workload}: warming up {name}")
        _attempt(_prepare, result, name, worker, effort)
    for number in range(1, effort.rounds + 1):
        log(f"{workload}: round {number} of {effort.rounds}")
        for name in [name for name in workers if name not in result.failures]:
            time.sleep(PAUSE)
            _attempt(_time, result, name, workers[name], effort)
    return result


def _attempt(action, result, name, worker, effort):
    try:
        action(result, name, worker, effort)
    except PeerError as e:
        result.failures[name] = str(e)


def _prepare(result, name, worker, effort):
    reply = worker.request("prepare", workload=result.workload, seconds=effort.seconds)
    result.checksums[name] = reply["checksum"]


def _time(result, name, worker, effort):
    times = result.rounds.setdefault(name, [])
    times.append(worker.request("time", loops=effort.loops)["seconds"])
    result.values[name] = min(times)
