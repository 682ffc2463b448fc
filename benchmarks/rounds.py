"""The time of a step: rounds over the peers, in turn, and the best of each."""

import time
from dataclasses import dataclass

from benchmarks.processes import PeerError
from benchmarks.report import Result

# Threads of the peer before still spin for a moment after their last step.
PAUSE = 0.05


@dataclass(frozen=True)
class Effort:
    """How much to measure: rounds over the peers, loops in a round, seconds in a loop."""

    rounds: int
    loops: int
    seconds: float


def measure(workload, workers, effort, say):
    """The best time of one step for each of `workers`, which maps names to processes."""
    result = Result(workload, "s")
    for name, worker in workers.items():
        say(f"{workload}: warming up {name}")
        _attempt(_prepare, result, name, worker, effort)
    for number in range(1, effort.rounds + 1):
        say(f"{workload}: round {number} of {effort.rounds}")
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
    answer = worker.ask("prepare", workload=result.workload, seconds=effort.seconds)
    result.checksums[name] = answer["checksum"]


def _time(result, name, worker, effort):
    turns = result.turns.setdefault(name, [])
    turns.append(worker.ask("time", loops=effort.loops)["seconds"])
    result.values[name] = min(turns)
