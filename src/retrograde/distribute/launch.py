"""`retrograde launch`: starts the workers of a program, watches them, and restarts them.

Workers get TF_CONFIG and run `retrograde run PROGRAM`. They listen on the loopback interface only,
unless hosts are named. If one worker fails, all are stopped, because they fail together; with
restarts left, all start again, and the program continues from its last checkpoint.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple

GRACE_SECONDS = 15.0  # between the request to stop and the end by force
_POLL_SECONDS = 0.05
_SETTLE_SECONDS = 1.0
_PORT = 29400  # of the coordinator, if hosts are named without ports


class Cluster(NamedTuple):
    """The workers of a launch: `workers` on each of `hosts`, or on this machine without hosts."""

    workers: int
    hosts: Sequence[str] = ()
    host_rank: int = 0

    @property
    def ranks(self) -> range:
        """The ranks of the workers of this launcher."""
        first = self.host_rank * self.workers
        return range(first, first + self.workers)

    def addresses(self) -> list[str]:
        """Returns the addresses of all workers. On this machine, new ports at each start."""
        if not self.hosts:
            return [f"127.0.0.1:{port}" for port in free_ports(self.workers)]
        addresses = []
        for host in self.hosts:
            name, _, port = host.partition(":")
            first = int(port or _PORT)
            addresses += [f"{name}:{first + i}" for i in range(self.workers)]
        return addresses


def free_ports(count: int) -> list[int]:
    """Returns ports of the loopback interface that nothing uses."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def launch(
    program: Sequence[str],
    cluster: Cluster,
    max_restarts: int = 0,
    grace: float = GRACE_SECONDS,
) -> int:
    """Runs `program`, the arguments of `retrograde run`, in all workers. Returns the exit code.

    It is 0 if all workers succeed, else the code of the worker that failed first: 128 plus the
    number of the signal if one ended it.
    """
    console = Console(cluster.workers)
    with Requests() as requests:
        for restart in range(max_restarts + 1):
            run = Run(program, cluster, restart, console, grace)
            failure = run.wait(requests)
            if failure is None or requests.received or restart == max_restarts:
                break
            console.write_line(f"{failure}; restart {restart + 1} of {max_restarts}")
        console.clear()
        if requests.received:
            return 128 + requests.received[0]
        if failure is None:
            return 0
        console.write_line(str(failure))
        return failure.code


class Failure(NamedTuple):
    """A worker that failed, and its exit code."""

    rank: int
    code: int

    def __str__(self) -> str:
        if self.code > 128 and self.code - 128 in set(signal.Signals):
            return f"worker {self.rank} was ended by {signal.Signals(self.code - 128).name}"
        return f"worker {self.rank} failed with exit code {self.code}"


class Requests:
    """The signals that ask the launcher to stop, in the order of their arrival."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Requests:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: Any) -> None:
        self.received.append(number)


class Run:
    """One start of all workers of this launcher."""

    def __init__(
        self,
        program: Sequence[str],
        cluster: Cluster,
        restart: int,
        console: Console,
        grace: float,
    ) -> None:
        self._console, self._grace = console, grace
        self._workers: dict[int, subprocess.Popen] = {}
        self._readers: list[threading.Thread] = []
        addresses = cluster.addresses()
        try:
            for rank in cluster.ranks:
                self._start(rank, program, addresses, restart, cluster.workers)
        except BaseException:
            self.stop(signal.SIGKILL)
            raise

    def _start(
        self, rank: int, program: Sequence[str], addresses: list[str], restart: int, local: int
    ) -> None:
        task = {"type": "worker", "index": rank}
        added = {
            "TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": task}),
            "RETROGRADE_RESTART": str(restart),
            "PYTHONUNBUFFERED": "1",
        }
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        threads = {"OMP_NUM_THREADS": str(max(1, cores // local))}
        worker = subprocess.Popen(
            [sys.executable, "-m", "retrograde", "run", *program],
            env=threads | os.environ | added,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that its own children can be ended with it
            preexec_fn=end_with_parent(os.getpid()),
        )
        self._workers[rank] = worker
        reader = threading.Thread(target=self._console.copy, args=(rank, worker.stdout))
        reader.daemon = True
        reader.start()
        self._readers.append(reader)

    def wait(self, requests: Requests) -> Failure | None:
        """Waits until all workers have succeeded, one has failed, or a signal asks to stop."""
        failure = None
        started = time.monotonic()
        while not requests.received:
            running = self._count_running()
            failure = self._failure()
            if failure is not None:
                failure = self._first_failure(failure)
            if not running or failure is not None:
                break
            self._console.status(running, time.monotonic() - started)
            time.sleep(_POLL_SECONDS)
        number = requests.received[0] if requests.received else signal.SIGTERM
        self.stop(number, requests)
        return failure

    def _count_running(self) -> int:
        return sum(worker.poll() is None for worker in self._workers.values())

    def _failure(self) -> Failure | None:
        """Returns the worker that failed with the highest code, if any did."""
        codes = {rank: worker.poll() for rank, worker in self._workers.items()}
        failed = [Failure(rank, _exit_code(code)) for rank, code in codes.items() if code]
        return max(failed, key=lambda failure: failure.code, default=None)

    def _first_failure(self, seen: Failure) -> Failure:
        """Returns the worker that failed first and made the others fail.

        A worker that loses another one fails with code 1. The coordinator ends after the others.
        """
        end = time.monotonic() + _SETTLE_SECONDS
        while seen.code == 1 and self._count_running() and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
            failure = self._failure()
            seen = failure if failure.code > 1 else seen
        return seen

    def stop(self, number: int, requests: Requests | None = None) -> None:
        """Ends all workers and their children: by signal `number`, later by force."""
        self._signal(number)
        end = time.monotonic() + self._grace
        while any(worker.poll() is None for worker in self._workers.values()):
            again = requests is not None and len(requests.received) > 1
            if again or time.monotonic() > end:
                break
            time.sleep(_POLL_SECONDS)
        self._signal(signal.SIGKILL)
        for worker in self._workers.values():
            worker.wait()
        for reader in self._readers:
            reader.join(1.0)

    def _signal(self, number: int) -> None:
        """Sends a signal to the sessions of all workers; at the end, also of those that ended."""
        for worker in self._workers.values():
            if worker.poll() is None or number == signal.SIGKILL:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(worker.pid, number)


def _exit_code(code: int) -> int:
    return 128 - code if code < 0 else code


def end_with_parent(parent: int) -> Callable[[], None] | None:
    """Returns a function for a new process: the kernel ends it when the launcher dies.

    Only Linux can do that. Elsewhere a worker finds out at its next collective.
    """
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)

    def end() -> None:
        library.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return end


class Console:
    """Writes the output of workers line by line, and one line of progress to a terminal."""

    def __init__(self, workers: int, out: IO[str] | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._width = len(str(max(workers - 1, 0)))
        self._shows_status = self._out.isatty()
        self._status = ""
        self._lock = threading.Lock()

    def copy(self, rank: int, source: IO[bytes]) -> None:
        """Writes all lines of `source`, with the rank before each."""
        for line in _lines(source):
            self._write(f"[{rank:{self._width}}] {line}")

    def write_line(self, text: str) -> None:
        """Writes a line of the launcher itself."""
        self._write(f"[launch] {text}")

    def status(self, running: int, seconds: float) -> None:
        """Shows how many workers run, if the output is a terminal."""
        text = f"[launch] {running} workers, {seconds:.0f} s"
        if self._shows_status and text != self._status:
            with self._lock:
                self._out.write(f"\r\x1b[K{text}")
                self._out.flush()
                self._status = text

    def clear(self) -> None:
        """Removes the line of progress."""
        if self._status:
            with self._lock:
                self._out.write("\r\x1b[K")
                self._out.flush()
                self._status = ""

    def _write(self, line: str) -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):
            start = "\r\x1b[K" if self._status else ""
            self._out.write(f"{start}{line}\n{self._status}")
            self._out.flush()


def _lines(source: IO[bytes]) -> Iterator[str]:
    """Yields the lines of a stream. A carriage return ends one, as progress bars write them."""
    rest = b""
    while True:
        part = os.read(source.fileno(), 1 << 16)
        if not part:
            break
        *lines, rest = (rest + part).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    if rest:
        yield rest.decode(errors="replace")
