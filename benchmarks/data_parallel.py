"""Compares data-parallel training in two processes with PyTorch's DistributedDataParallel.

`python -m benchmarks.data_parallel` trains the same network with the same batches in two processes
of each library, each process on its own core. The libraries take turns, and the result is the
median of the ratios of their times in the same round. PyTorch uses gloo, as JAX does on CPUs. All
processes listen on the loopback interface only.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import threading

import numpy as np

from benchmarks.environments import python_of
from benchmarks.peers import PEER_BY_NAME, ROOT
from benchmarks.processes import child_environment

SIZES = (256, 512, 512, 10)
BATCH = 64  # examples of each process
RATE = 0.05
PROCESSES = 2
ROUNDS, STEPS = 15, 40
TIME_LIMIT = 110.0
REPLY = "reply: "  # begins lines of a process that are not the output of gloo
MODULES = {
    "retrograde_xla": "benchmarks.data_parallel_tf",
    "retrograde_function": "benchmarks.data_parallel_tf",
    "torch": "benchmarks.data_parallel_torch",
}


def weights():
    """Returns the initial weights and biases, layer by layer."""
    random = np.random.default_rng(0)
    shapes = itertools.pairwise(SIZES)
    return [
        array
        for m, n in shapes
        for array in (
            (random.normal(size=(m, n)) / np.sqrt(m)).astype("float32"),
            np.zeros(n, "float32"),
        )
    ]


def batch(rank):
    """Returns the inputs and labels of a process."""
    random = np.random.default_rng(1 + rank)
    x = random.normal(size=(BATCH, SIZES[0])).astype("float32")
    return x, random.integers(0, SIZES[-1], BATCH).astype("int64")


def serve(step, loss):
    """Runs `step()` as often as the lines of standard input say, and prints seconds and the loss.

    `loss()` returns the last loss of this process.
    """
    import time

    print(f"{REPLY}0", flush=True)
    for line in sys.stdin:
        begun = time.perf_counter()
        for _ in range(int(line)):
            step()
        last = loss()  # waits for the end of the last step
        print(REPLY + json.dumps([time.perf_counter() - begun, last]), flush=True)


class Cluster:
    """The processes of one library."""

    def __init__(self, name, python):
        self.name = name
        self.processes = []
        ports = _free_ports(PROCESSES)
        cores = sorted(os.sched_getaffinity(0))
        for rank in range(PROCESSES):
            env = child_environment() | {
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
                "TF_CONFIG": json.dumps(_tf_config(rank, ports)),
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            }
            core = str(cores[rank % len(cores)])
            command = ["taskset", "-c", core, python, "-m", MODULES[name], name]
            self.processes.append(
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env=env,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )

    def wait(self):
        """Waits until all processes are connected."""
        for process in self.processes:
            self._reply(process)

    def run(self, steps):
        """Returns the seconds per step of the slowest process, and the losses of all."""
        for process in self.processes:
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        replies = list(map(self._reply, self.processes))
        return max(seconds for seconds, _ in replies) / steps, [loss for _, loss in replies]

    def _reply(self, process):
        for line in process.stdout:
            if line.startswith(REPLY):
                return json.loads(line.removeprefix(REPLY))
        raise RuntimeError(f"{self.name}: a process ended, or the time limit was reached")

    def stop(self):
        """Ends the processes."""
        for process in self.processes:
            process.kill()
            process.communicate()


def _tf_config(rank, ports):
    addresses = [f"127.0.0.1:{port}" for port in ports]
    return {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}


def _free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def measure(pythons, rounds=ROUNDS, steps=STEPS):
    """Returns the times per step by library, in the order of rounds.

    Raises a `RuntimeError` if the losses differ, or after the time limit.
    """
    clusters = []
    timer = threading.Timer(TIME_LIMIT, lambda: [cluster.stop() for cluster in clusters])
    timer.start()
    try:
        clusters += [Cluster(name, python) for name, python in pythons.items()]
        for cluster in clusters:
            cluster.wait()
        losses = {cluster.name: cluster.run(steps)[1] for cluster in clusters}
        first, *others = losses.values()
        if not all(np.allclose(first, other, rtol=1e-4) for other in others):
            raise RuntimeError(f"the losses differ: {losses}")
        times = {cluster.name: [] for cluster in clusters}
        for _ in range(rounds):
            for cluster in clusters:
                times[cluster.name].append(cluster.run(steps)[0])
        return times
    finally:
        timer.cancel()
        for cluster in clusters:
            cluster.stop()


def main():
    """Measures, and prints times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=pathlib.Path, help="folder with an environment each")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    pythons = {name: python_of(PEER_BY_NAME[name], options.environments, print) for name in MODULES}
    times = measure(pythons, options.rounds, options.steps)
    for name, seconds in times.items():
        pairs = zip(seconds, times["torch"], strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        print(f"{name}: {1e3 * statistics.median(seconds):.2f} ms per step, {ratio:.2f} of torch")


if __name__ == "__main__":
    main()
