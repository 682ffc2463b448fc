"""Starts worker processes for tests, with a time limit, and ends them by their ids."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 240  # more than any program takes on a busy machine
LAYOUT_SECONDS = 900  # the same for all programs of a layout


class Outcome(NamedTuple):
    """The outcome of a worker: its exit code, its output, and the result of its program."""

    code: int | None
    output: str
    result: Any


def free_port() -> int:
    """Returns a port of the loopback interface that nothing uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(**added: str) -> dict[str, str]:
    """Returns the environment for a worker: one thread, one JAX device, on the CPU."""
    kept = {k: v for k, v in os.environ.items() if k not in ("TF_CONFIG", "XLA_FLAGS")}
    return kept | {
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "RETROGRADE_START_TIMEOUT": "120",
        "RETROGRADE_COLLECTIVE_TIMEOUT": "100",
        "RETROGRADE_HEARTBEAT_TIMEOUT": "60",
        **added,
    }


def tf_config(rank: int, size: int, port: int) -> str:
    """Returns the TF_CONFIG of one of `size` workers."""
    addresses = [f"127.0.0.1:{port + i}" for i in range(size)]
    return json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}})


def run_workers(program: str, size: int, *args: Any, **env: str) -> list[Outcome]:
    """Runs `program`, such as "programs:training", in `size` workers, and waits for all of them."""
    seconds = LAYOUT_SECONDS if program.startswith("layouts:") else SECONDS
    with tempfile.TemporaryDirectory() as folder, started(program, size, folder, args, env) as all_:
        end = time.monotonic() + seconds
        for worker in all_:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(max(0.1, end - time.monotonic()))
        return [outcome(worker, folder, rank) for rank, worker in enumerate(all_)]


@contextlib.contextmanager
def started(program: str, size: int, folder: str, args: tuple = (), env: dict | None = None) -> Any:
    """Starts workers, and ends them when the block ends."""
    port, workers = free_port(), []
    module, function = program.split(":")
    code = f"from tests.distribute import workers; workers.work({module!r}, {function!r})"
    pathlib.Path(folder, "args").write_bytes(pickle.dumps(args))
    try:
        for rank in range(size):
            config = tf_config(rank, size, port) if size > 1 else ""
            worker_env = environment(TF_CONFIG=config, FOLDER=folder, RANK=str(rank), **(env or {}))
            with pathlib.Path(folder, f"output{rank}").open("w") as output:
                workers.append(
                    subprocess.Popen(
                        [sys.executable, "-c", code],
                        cwd=ROOT,
                        env=worker_env,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
                )
        yield workers
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGKILL)
            worker.wait()


def outcome(worker: subprocess.Popen, folder: str, rank: int) -> Outcome:
    """Returns how a worker ended; its exit code is `None` if it still runs."""
    output = pathlib.Path(folder, f"output{rank}").read_text(errors="replace")
    path = pathlib.Path(folder, f"result{rank}")
    result = pickle.loads(path.read_bytes()) if path.exists() else None
    return Outcome(worker.poll(), output, result)


def results(program: str, size: int, *args: Any, **env: str) -> list[Any]:
    """Returns the result of `program` in each of `size` workers, which all have to succeed."""
    outcomes = run_workers(program, size, *args, **env)
    for rank, worker in enumerate(outcomes):
        assert worker.code == 0, f"worker {rank} of {program}: {worker.code}\n{worker.output}"
    return [worker.result for worker in outcomes]


def work(module: str, function: str) -> None:
    """Runs a program in a worker, and stores its result."""
    import importlib

    folder = pathlib.Path(os.environ["FOLDER"])
    args = pickle.loads((folder / "args").read_bytes())
    result = getattr(importlib.import_module(f"tests.distribute.{module}"), function)(*args)
    (folder / f"result{os.environ['RANK']}").write_bytes(pickle.dumps(result))
