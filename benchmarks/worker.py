"""The process of one peer: reads requests and writes answers, a line of JSON each.

It is started as `python -m benchmarks.worker PEER` with the Python of that peer.
"""

import importlib
import importlib.metadata
import itertools
import json
import os
import resource
import sys
import time

import numpy as np

from benchmarks.peers import PEER_BY_NAME


def claim_channel():
    """Keep stdin and stdout for the protocol; what the library prints goes to stderr."""
    requests = os.fdopen(os.dup(0), "r")
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, answers


def checksum(values):
    """The sum of each value, and the sum of its magnitudes to judge differences by."""
    doubles = [np.asarray(value, dtype=np.float64) for value in values]
    return [[float(np.sum(value)), float(np.sum(np.abs(value)))] for value in doubles]


def seconds_of(step, count):
    turns = itertools.repeat(None, count)
    start = time.perf_counter()
    for _ in turns:
        step()
    return time.perf_counter() - start


def calibrate(step, seconds):
    """How many steps fill about `seconds`; at least one."""
    count = 1
    elapsed = seconds_of(step, count)
    while elapsed < seconds / 2:
        count *= 2
        elapsed = seconds_of(step, count)
    return max(1, round(count * seconds / elapsed))


def peak_megabytes():
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":  # there it is in bytes
        kilobytes /= 1024
    return kilobytes / 1024


class Worker:
    """Holds the library, and the step that is being measured."""

    def __init__(self, peer):
        self.library = importlib.import_module(peer.package)
        self.module = importlib.import_module(peer.workloads)
        self.way = [peer.way] if peer.way else []
        self.step = None
        self.count = 0

    def versions(self):
        version = getattr(self.library, "__version__", None)
        if version is None:
            version = importlib.metadata.version(self.library.__name__)
        return {"version": version, "numpy": np.__version__}

    def prepare(self, workload, seconds):
        """Set up, run two steps for the checksum, and find how many fill `seconds`."""
        self.step = None  # lets the arrays of the workload before go
        self.step = self.module.workload[workload](self.library, *self.way)
        checks = [check for _ in range(2) for check in self._checked_step()]
        self.count = calibrate(self.step, seconds)
        return {"checksum": checks}

    def _checked_step(self):
        return checksum(map(self.module.to_numpy, self.step()))

    def time(self, loops):
        """The best time of a step over a few short loops: one long one meets every disturbance."""
        best = min(seconds_of(self.step, self.count) for _ in range(loops))
        return {"seconds": best / self.count}

    def each(self, calls, seconds):
        """The times of single steps: so many, or as many as begin within `seconds`."""
        end = time.perf_counter() + seconds
        times = []
        while len(times) < calls and (not times or time.perf_counter() < end):
            times.append(seconds_of(self.step, 1))
        return {"seconds": times}

    def memory(self, workload):
        """The growth of this process's peak over set-up and one step."""
        before = peak_megabytes()
        results = self.module.workload[workload](self.library)()
        grown = peak_megabytes() - before
        return {"megabytes": grown, "checksum": checksum(map(self.module.to_numpy, results))}


def answer(make_worker, worker, request):
    """The worker (made at the first request) and the reply; an exception becomes a reply too."""
    action = request.pop("action")
    try:
        worker = worker or make_worker()
        return worker, getattr(worker, action)(**request)
    except Exception as e:
        first_line = (str(e).splitlines() or [""])[0]
        return worker, {"error": f"{type(e).__name__}: {first_line}"}


def main():
    requests, answers = claim_channel()
    peer = PEER_BY_NAME[sys.argv[1]]
    worker = None
    for line in requests:
        worker, reply = answer(lambda: Worker(peer), worker, json.loads(line))
        print(json.dumps(reply), file=answers)


if __name__ == "__main__":
    main()
