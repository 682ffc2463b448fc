"""Trains small networks in several replicas, and compares them with one replica.

A trial trains one network for 50 steps in one layout: 1, 2 or 4 processes, or 2 or 4 devices of one
process. It does so in all modes (eager, replayed, XLA), in float32 and float64, and twice, with new
processes. 25 trials cover all networks and layouts. Checks:

- variables and losses are within a tolerance of one replica with the same global batch;
- all workers, and both runs, are bitwise equal;
- eager and replayed training are bitwise equal.
"""

from __future__ import annotations

import functools
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

SHORT = 1
STEPS = 50
TOLERANCES = {"float32": 2e-6, "float64": 1e-13}
NETWORKS = ("mlp", "cnn", "lstm", "transformer", "gan")
LAYOUTS = (("processes", 2), ("devices", 4), ("processes", 1), ("devices", 2), ("processes", 4))
_LIMIT = 400.0  # seconds for one run
_ROOT = pathlib.Path(__file__).resolve().parent.parent


def trial(seed: int) -> str | None:
    """Runs one trial. Returns a description of the problem, if any."""
    network = NETWORKS[seed % len(NETWORKS)]
    kind, count = LAYOUTS[(seed + seed // len(NETWORKS)) % len(LAYOUTS)]
    workers = [*run(network, kind, count, STEPS), *run(network, kind, count, STEPS)]
    (reference,) = _one_replica(network)
    problems, distances = compare(workers, reference)
    text = ", ".join(f"{distance:.1e} in {dtype}" for dtype, distance in distances.items())
    print(f"replicas: {network}, {count} {kind}: within {text}", flush=True)
    return "\n".join(problems) or None


def compare(workers: list[dict], reference: dict) -> tuple[list[str], dict[str, float]]:
    """Returns the problems, and the largest distances from the reference by dtype."""
    problems, distances = [], dict.fromkeys(TOLERANCES, 0.0)
    first, *others = workers
    for (dtype, mode), trained in first.items():
        distance = _distance(trained, reference[dtype, "eager"])
        distances[dtype] = max(distances[dtype], distance)
        if not distance <= TOLERANCES[dtype]:
            problems.append(f"{mode}, {dtype}: {distance:.1e} from one replica")
        if any(_bytes(other[dtype, mode]) != _bytes(trained) for other in others):
            problems.append(f"{mode}, {dtype}: workers or runs differ")
        if mode == "replayed" and _bytes(trained) != _bytes(first[dtype, "eager"]):
            problems.append(f"{dtype}: eager and replayed training differ")
    return problems, distances


def _distance(a: tuple, b: tuple) -> float:
    pairs = zip((a[0], *a[1]), (b[0], *b[1]), strict=True)
    return max(float(np.max(np.abs(np.subtract(x, y)))) for x, y in pairs)


def _bytes(trained: tuple) -> list[bytes]:
    losses, variables = trained
    return [np.asarray(x).tobytes() for x in (losses, *variables)]


@functools.cache
def _one_replica(network: str) -> list[dict[Any, tuple]]:
    return run(network, "alone", 1, STEPS)


def run(network: str, kind: str, count: int, steps: int) -> list[dict[Any, tuple]]:
    """Returns what each worker trained: losses and variables by dtype and mode."""
    size = count if kind == "processes" else 1
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "retrograde", "launch", "-n", str(size), "-m"]
        command += ["campaigns._replicas.program", folder, network, kind, str(count), str(steps)]
        done = subprocess.run(
            command,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LIMIT,  # the workers end with the launcher
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout[-3000:]}")
        paths = [pathlib.Path(folder, f"{rank}.pickle") for rank in range(size)]
        return [pickle.loads(path.read_bytes()) for path in paths]


def _environment() -> dict[str, str]:
    return os.environ | {
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}",
        "RETROGRADE_START_TIMEOUT": "120",
        "RETROGRADE_COLLECTIVE_TIMEOUT": "120",
    }
