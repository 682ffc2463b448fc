"""The process of one peer. Reads requests and writes replies, one line of JSON each.

The Python of the peer runs it as `python -m benchmarks.worker PEER`.
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
    """Reserves stdin and stdout for the protocol; output of the library goes to stderr."""
    requests = os.fdopen(os.dup(0), "r")
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, replies


def checksum(values):
    """Returns the sum of each value, and the sum of its absolute values for scale."""
    doubles = [np.asarray(value, dtype=np.float64) for value in values]
    return [[float(np.sum(value)), float(np.sum(np.abs(value)))] for value in doubles]


def seconds_of(step, count):
    iterations = itertools.repeat(None, count)
    start = time.perf_counter()
    for _ in iterations:
        step()
    return time.perf_counter() - start


def calibrate(step, seconds):
    """Returns the number of steps that take about `seconds`, at least one."""
    count = 1
    elapsed = seconds_of(step, count)
    while elapsed < seconds / 2:
        count *= 2
        elapsed = seconds_of(step, count)
    return max(1, round(count * seconds / elapsed))


def peak_megabytes():
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":  # ru_maxrss is in bytes on macOS
        kilobytes /= 1024
    return kilobytes / 1024


class Worker:
    """Imports the library and runs the step that is measured."""

    def __init__(self, peer):
        self.library = importlib.import_module(peer.package)
        self.module = importlib.import_module(peer.workloads)
        self.mode = [peer.mode] if peer.mode else []
        self.step = None
        self.count = 0

    def versions(self):
        version = getattr(self.library, "__version__", None)
        if version is None:
            version = importlib.metadata.version(self.library.__name__)
        return {"version": version, "numpy": np.__version__}

    def prepare(self, workload, seconds):
        """Sets up a workload, runs two steps for the checksum, and calibrates the loop."""
        self.step = None  # frees the arrays of the previous workload
        self.step = self.module.workload[workload](self.library, *self.mode)
        checks = [check for _ in range(2) for check in self._checked_step()]
        if hasattr(self.module, "settle"):
            self.module.settle(self.library, *self.mode, self.step)
        self.count = calibrate(self.step, seconds)
        return {"checksum": checks}

    def _checked_step(self):
        return checksum(map(self.module.to_numpy, self.step()))

    def time(self, loops):
        """Returns the best time of a step over a few short loops, to avoid disturbances."""
        best = min(seconds_of(self.step, self.count) for _ in range(loops))
        return {"seconds": best / self.count}

    def each(self, calls, seconds):
        """Returns the times of up to `calls` single steps that start within `seconds`."""
        end = time.perf_counter() + seconds
        times = []
        while len(times) < calls and (not times or time.perf_counter() < end):
            times.append(seconds_of(self.step, 1))
        return {"seconds": times}

    def memory(self, workload):
        """Returns how much the peak memory grows during setup and one step."""
        before = peak_megabytes()
        results = self.module.workload[workload](self.library)()
        increase = peak_megabytes() - before
        return {"megabytes": increase, "checksum": checksum(map(self.module.to_numpy, results))}

    def model_memory(self, workload):
        """Returns the peak memory of the process after three steps, with the library.

        Backends import different parts of their libraries during the first step, so the library
        cannot be left out.
        """
        step = self.module.workload[workload](self.library, *self.mode)
        results = [step() for _ in range(3)][-1]
        return {
            "megabytes": peak_megabytes(),
            "checksum": checksum(map(self.module.to_numpy, results)),
        }


def handle_request(make_worker, worker, request):
    """Creates the worker if needed, and returns it with its reply or its error."""
    action = request.pop("action")
    try:
        worker = worker or make_worker()
        return worker, getattr(worker, action)(**request)
    except Exception as e:
        first_line = (str(e).splitlines() or [""])[0]
        return worker, {"error": f"{type(e).__name__}: {first_line}"}


def main():
    requests, replies = claim_channel()
    peer = PEER_BY_NAME[sys.argv[1]]
    worker = None
    for line in requests:
        worker, reply = handle_request(lambda: Worker(peer), worker, json.loads(line))
        print(json.dumps(reply), file=replies)


if __name__ == "__main__":
    main()
