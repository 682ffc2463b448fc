"""Measures how much other processes on the same cores slow down retrograde and PyTorch.

`python benchmarks/run.py --neighbors` measures each workload alone and next to busy processes. The
slowdown is the mean time with the other processes divided by the mean time alone. The goal is a
slowdown close to PyTorch's.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import time

from benchmarks.environments import python_of
from benchmarks.peers import PEER_BY_NAME
from benchmarks.processes import WorkerProcess
from benchmarks.report import format_ratio, format_value, markdown_table

HEADING = "## Busy neighbors"
PEERS = ("retrograde", "torch")
CALLS = 200
SECONDS = 1.0  # limit for the calls of one row
MAX_RATIO = 1.3  # to PyTorch's slowdown

ROWS = {
    "stacked_products": "32 products of 128 x 64 and 64 x 128",
    "conv_forward": "3 x 3 convolution, 8 images, 32 x 32, 8 to 16 channels",
    "small_mlp": "training step of a 16-32-32-4 network",
    "mnist_mlp": "training step of a 784-512-512-10 network",
    "elementwise_1m": "gradient of elementwise operations on 1,000,000 elements",
    "conv_small": "gradients of a 3 x 3 convolution, 32 images, 28 x 28, 8 to 16 channels",
    "conv_64": "the same, 64 to 64 channels",
    "max_pool": "gradient of 2 x 2 max pooling, 32 images, 28 x 28, 64 channels",
}

_PRODUCTS = "import numpy as np\na = np.ones((512, 512), np.float32)\nwhile True: a @ a"
_BUSY = "while True: pass"
NEIGHBORS = {
    "none": [],
    "one loop of products": [_PRODUCTS],
    "three loops of products": [_PRODUCTS] * 3,
    "two busy loops": [_BUSY] * 2,
    "one core": [],
}


@contextlib.contextmanager
def running(programs):
    """Runs these Python programs, each in a process, during a `with` block."""
    processes = [subprocess.Popen([sys.executable, "-c", program]) for program in programs]
    time.sleep(1.0 if programs else 0.2)
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def on_cores(count):
    """Restricts new processes to the first `count` cores during a `with` block."""
    if count is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measure(rows, environments, log):
    """Returns the mean and the longest time of a call, by neighbors, row and peer."""
    pythons = {name: python_of(PEER_BY_NAME[name], environments, log) for name in PEERS}
    measured = {}
    # All times are compared with the times alone. These are measured twice, and the shorter ones
    # count, because a disturbance of the machine can only lengthen them.
    for neighbors, programs in [*NEIGHBORS.items(), ("none", [])]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(on_cores(1 if neighbors == "one core" else None))
            workers = {
                name: stack.enter_context(WorkerProcess(python, PEER_BY_NAME[name]))
                for name, python in pythons.items()
            }
            stack.enter_context(running(programs))
            for row in rows:
                log(f"{row}, neighbors: {neighbors}")
                times = _times(row, workers)
                before = measured.get((neighbors, row), times)
                measured[neighbors, row] = {name: min(before[name], times[name]) for name in times}
    return measured


def _times(row, workers):
    for worker in workers.values():
        worker.request("prepare", workload=row, seconds=0.02)
    times = {name: [] for name in workers}
    for _ in range(4):  # alternate, because the load of the machine changes from second to second
        for name, worker in workers.items():
            time.sleep(0.1)
            reply = worker.request("each", calls=CALLS // 4, seconds=SECONDS / 4)
            times[name] += reply["seconds"]
    return {name: (statistics.fmean(each), max(each)) for name, each in times.items()}


def slowdowns(measured):
    """Returns retrograde's and PyTorch's slowdown, by neighbors and row."""
    result = {}
    for (neighbors, row), times in measured.items():
        if neighbors != "none":
            alone = measured["none", row]
            result[neighbors, row] = tuple(times[name][0] / alone[name][0] for name in PEERS)
    return result


def tables(measured):
    """Returns the section of the page, in Markdown."""
    lines = [HEADING, "", _INTRODUCTION, ""]
    rows = list(dict.fromkeys(row for _, row in measured))
    lines += [
        markdown_table(["workload", "description"], [[f"`{r}`", ROWS[r]] for r in rows], left=2),
        "",
    ]
    ratios = slowdowns(measured)
    for neighbors in NEIGHBORS:
        header = ["workload", "retrograde", "worst", "torch", "worst"]
        if neighbors != "none":
            header += ["retrograde slowdown", "torch slowdown", "ratio"]
        table = []
        for row in rows:
            cells = [f"`{row}`"]
            for name in PEERS:
                cells += [format_value(t, "s") for t in measured[neighbors, row][name]]
            if neighbors != "none":
                ours, theirs = ratios[neighbors, row]
                cells += [format_ratio(r) for r in (ours, theirs, ours / theirs)]
            table.append(cells)
        lines += [f"Neighbors: {neighbors}", "", markdown_table(header, table), ""]
    worse = [key for key, (ours, theirs) in ratios.items() if ours > MAX_RATIO * theirs]
    listed = ", ".join(f"`{row}` ({neighbors})" for neighbors, row in worse)
    result = f"except for {listed}" if worse else "in every case"
    lines += [f"The slowdown of retrograde is at most {MAX_RATIO} times PyTorch's {result}.", ""]
    return "\n".join(lines)


_INTRODUCTION = f"""\
`python benchmarks/run.py --neighbors --write` writes this section. It shows the mean and the
longest time of up to {CALLS} calls, alone and while other processes keep the cores busy: products
of 512 x 512 matrices with NumPy, or plain Python loops. With "one core", all threads of a library
share one core. The slowdown is the mean time divided by the mean time alone. The ratio is
retrograde's slowdown divided by PyTorch's; below 1 retrograde slows down less."""
