"""The process group: workers that exchange values through JAX's collectives.

Each process is one replica. `jax.distributed` connects the processes; the first one runs its
coordinator. A collective sends one host buffer through a jitted program over a mesh that has one
device of each process.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograde.distribute.failures import (
    WorkerLostError,
    delay_abort,
    end_on_exceptions,
    is_worker_loss,
    on_abort,
    within,
)
from retrograde.ops import random_state
from retrograde.ops.collectives import REPLAYS, TRACES, Group, current_group, set_process_group
from retrograde.program.function import drop_all_traces
from retrograde.values.optional_jax import required_jax
from retrograde.values.source_location import caller_location, location_of

AXIS = "replica"
_PATIENCE = 2.0  # seconds to ask a coordinator that may be gone


class Timeouts(NamedTuple):
    """Seconds that a worker waits for others. Environment variables override them."""

    start: int = 300  # until all workers are connected
    heartbeat: int = 30
    collective: int = 300  # more than the workers differ in the time of their first compilations
    shutdown: int = 15

    @classmethod
    def from_environment(cls, **options: float | None) -> Timeouts:
        """Returns the defaults, then `options`, then RETROGRADE_START_TIMEOUT and the like."""
        seconds = {name: value for name, value in options.items() if value is not None}
        for name in cls._fields:
            text = os.environ.get(f"RETROGRADE_{name.upper()}_TIMEOUT")
            if text:
                seconds[name] = float(text)
        return cls(**{name: max(1, round(value)) for name, value in seconds.items()})


class Worker(NamedTuple):
    """This process in a cluster: its rank, the number of processes, and the coordinator."""

    rank: int
    size: int
    coordinator: str


class ProcessGroup(Group):
    """The processes of a cluster, connected by `jax.distributed`."""

    def __init__(self, jax: Any, timeouts: Timeouts) -> None:
        self.rank, self.size = jax.process_index(), jax.process_count()
        self.timeouts = timeouts
        self.collectives = 0  # that this worker has begun
        self.bytes = 0  # that it has passed to them
        self._jax = jax
        devices: dict[int, Any] = {}
        for device in jax.devices():
            devices.setdefault(device.process_index, device)
        self.device = devices[self.rank]
        self.mesh = jax.sharding.Mesh([devices[i] for i in range(self.size)], (AXIS,))
        self._known: set[tuple] = set()  # signatures of collectives that all workers have run
        self._agreements = 0
        self._present = ""  # the collective that is running
        self._has_failed = False
        self._checks_all = os.environ.get("RETROGRADE_CHECK_COLLECTIVES") == "1"

    # Collectives

    def all_reduce(self, arrays: Sequence[Any]) -> tuple:
        """Returns the sum of each array over all workers. Arrays of one dtype share a buffer."""
        arrays = [np.asarray(x) for x in arrays]
        results: list[Any] = [None] * len(arrays)
        for dtype in dict.fromkeys(x.dtype for x in arrays):
            indices = [i for i, x in enumerate(arrays) if x.dtype == dtype]
            parts = [arrays[i] for i in indices]
            total = self._sum(_pack(parts), tuple([x.shape for x in parts]))
            for i, part in zip(indices, _unpack(total, parts), strict=True):
                results[i] = part
        return tuple(results)

    def _sum(self, buffer: np.ndarray, shapes: tuple) -> np.ndarray:
        if buffer.dtype.kind == "b":  # the sum of booleans is their disjunction, as NumPy's is
            return self._sum(buffer.astype(np.int32), shapes).astype(bool)
        return self._run("all_reduce", buffer, shapes, _jit_sum)

    def all_gather(self, array: Any, axis: int) -> Any:
        """Returns the arrays of all workers along `axis`; only its length may differ."""
        array = np.asarray(array)
        lengths = self.gather_integers(array.shape[axis])
        rows = np.moveaxis(array, axis, 0)
        padded = np.zeros((max(lengths), *rows.shape[1:]), array.dtype)
        padded[: len(rows)] = rows
        gathered = self._gather(padded, "all_gather")
        parts = [part[:n] for part, n in zip(gathered, lengths, strict=True)]
        return np.moveaxis(np.concatenate(parts), 0, axis)

    def gather_integers(self, *values: int) -> list:
        """Returns the integers of all workers: of each one, or a tuple if there are several."""
        rows = self._gather(np.array(values, np.int32), "gather_integers").tolist()
        return [row[0] if len(values) == 1 else tuple(row) for row in rows]

    def _gather(self, array: np.ndarray, name: str) -> np.ndarray:
        """Returns the arrays of all workers, which have one shape, stacked."""
        buffer = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        gathered = self._run(name, buffer, (array.shape, array.dtype.str), _jit_stack)
        return gathered.reshape(-1).view(array.dtype).reshape(self.size, *array.shape)

    def reduce_scatter(self, array: Any, axis: int, size: int) -> Any:
        """Returns the rows of this worker in the sum of `array` over all workers."""
        lengths = self.gather_integers(size)
        (total,) = self.all_reduce([array])
        start = sum(lengths[: self.rank])
        return np.take(total, range(start, start + size), axis)

    def broadcast(self, arrays: Sequence[Any]) -> tuple:
        """Returns the arrays of the first worker, bit for bit."""
        arrays = [np.asarray(x) for x in arrays]
        parts = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in arrays]
        buffer = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
        if self.rank:
            buffer = np.zeros_like(buffer)
        signature = tuple([(x.shape, x.dtype.str) for x in arrays])
        total = self._run("broadcast", buffer, signature, _jit_sum)
        results, start = [], 0
        for x in arrays:
            part = total[start : start + x.nbytes]
            array = part.copy().view(x.dtype).reshape(x.shape)
            results.append(array if x.ndim else array[()])
            start += x.nbytes
        return tuple(results)

    def agrees(self, program: int) -> bool | None:
        """Returns whether all workers are about to run the same compiled program."""
        programs = set(self.gather_integers(program))
        if REPLAYS in programs:
            return False
        return None if TRACES in programs else len(programs) == 1

    def run_program(self, f: Callable[[], Any], collectives: int) -> Any:
        """Returns the results of a compiled program. Raises an error if a worker is lost."""
        self.collectives += collectives
        self._present = f"a compiled function with {collectives} collectives"
        try:
            return f()
        except (RuntimeError, ValueError) as error:
            if not is_worker_loss(error):
                raise
            raise self._worker_lost_error(error) from error

    def barrier(self) -> None:
        """Waits until all workers are here."""
        self.gather_integers(0)

    def _run(self, name: str, buffer: np.ndarray, signature: Any, program: Callable) -> np.ndarray:
        """Runs a jitted collective on the buffers of all workers."""
        self.collectives += 1
        self.bytes += buffer.nbytes
        if not buffer.size:
            return np.zeros((self.size, 0) if program is _jit_stack else 0, buffer.dtype)
        self._agree_on(name, buffer, signature)
        jax = self._jax
        try:
            with jax.enable_x64(True):
                local = jax.device_put(buffer[None], self.device)
                sharding = jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(AXIS))
                global_array = jax.make_array_from_single_device_arrays(
                    (self.size, *buffer.shape), sharding, [local]
                )
                return np.asarray(program(self.mesh)(global_array))
        except (RuntimeError, ValueError) as error:
            if not is_worker_loss(error):
                raise
            raise self._worker_lost_error(error) from error

    # Agreement

    def _agree_on(self, name: str, buffer: np.ndarray, signature: Any) -> None:
        """Compares a collective with the collectives of the other workers, if it is new here.

        XLA ends the process if the sizes differ. With RETROGRADE_CHECK_COLLECTIVES=1 all
        collectives are compared, which finds the first one that differs.
        """
        self._present = f"{name} of {buffer.nbytes} bytes"
        key = (name, buffer.dtype, buffer.shape, signature)
        if key in self._known and not self._checks_all:
            return
        text = f"{name} of {buffer.dtype}{list(buffer.shape)} in the parts {signature}"
        self.agree(f"collective {self.collectives}: {text}", f"at {caller_location()}")
        self._known.add(key)

    def agree(self, text: str, where: str = "") -> None:
        """Raises a `WorkerLostError` on all workers unless all of them pass the same `text`."""
        prefix = f"retrograde/agreement/{self._agreements}"
        self._agreements += 1
        mine = f"{text}\n{where}"
        if self.rank:
            self._set(f"{prefix}/{self.rank}", mine)
            verdict = self._get(f"{prefix}/verdict", 0, text)
        else:
            others = {i: self._get(f"{prefix}/{i}", i, text) for i in range(1, self.size)}
            different = [i for i, other in others.items() if other.split("\n")[0] != text]
            verdict = "same"
            if different:
                lines = [f"worker 0: {_one_line(mine)}"]
                lines += [f"worker {i}: {_one_line(others[i])}" for i in different]
                verdict = "; ".join(lines)
            self._set(f"{prefix}/verdict", verdict)
        if verdict != "same":
            if not self.rank:
                time.sleep(0.5)  # lets the others read the verdict before this worker ends
            raise WorkerLostError(None, None, f"Workers do different things. {verdict}.")

    def post(self, key: str, value: str) -> None:
        """Stores a text for the other workers."""
        try:
            self._client.key_value_set(key, value, allow_overwrite=True)
        except RuntimeError as error:
            raise self._worker_lost_error(error) from error

    def read_posted(self, key: str, seconds: float) -> str | None:
        """Returns the text that a worker stored, or `None` if there is none within the time."""
        try:
            return self._client.blocking_key_value_get(key, round(1000 * seconds))
        except RuntimeError:
            return None

    def wait_for(self, key: str, other: int, awaited: str) -> str:
        """Returns the text that worker `other` stores. Raises a `WorkerLostError` if it ends."""
        return self._get(key, other, awaited)

    def _set(self, key: str, value: str) -> None:
        try:
            self._client.key_value_set(key, value)
        except RuntimeError as error:
            raise self._worker_lost_error(error) from error

    def _get(self, key: str, other: int, text: str) -> str:
        """Returns a value that worker `other` sets. It may have ended, or do something else."""
        end = time.monotonic() + self.timeouts.collective
        while True:
            try:
                return self._client.blocking_key_value_get(key, 1000)
            except RuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    raise self._worker_lost_error(error) from error
                reason = self._reason(other)
                if reason or time.monotonic() > end:
                    reason = reason or f"within {self.timeouts.collective} seconds"
                    raise WorkerLostError(
                        None, None, f"Worker {other} did not reach {text}: {reason}."
                    ) from error

    @property
    def _client(self) -> Any:
        from jax._src import distributed

        return distributed.global_state.client

    # Failures

    def _worker_lost_error(self, error: BaseException) -> WorkerLostError:
        """Returns the error for a collective that failed."""
        self._has_failed = True
        reasons = [self._reason(i) for i in range(self.size) if i != self.rank]
        reasons = [reason for reason in reasons if reason] or [
            f"a worker ended, or did not answer for {self.timeouts.collective} seconds"
        ]
        return WorkerLostError(
            None,
            None,
            f"Worker {self.rank} of {self.size} cannot finish {self._present}: "
            f"{'; '.join(reasons)}. Restart all workers from the last checkpoint. "
            f"({_one_line(str(error))[:200]})",
        )

    def _reason(self, other: int) -> str:
        """Returns the message that worker `other` left before it ended; empty without one."""
        key = f"retrograde/ended/{other}"
        text = within(_PATIENCE, lambda: self._client.key_value_try_get(key))
        return f"worker {other} {text}" if text else ""

    def report_end(self, how: str) -> None:
        """Tells the other workers how this one ends."""
        key, text = f"retrograde/ended/{self.rank}", _one_line(how)[:500]
        within(_PATIENCE, lambda: self._client.key_value_set(key, text, allow_overwrite=True))

    def report_abort(self) -> str:
        """Tells the other workers that XLA aborts this one, and returns an error message."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        location = None if frame is None else location_of(frame)
        where = "" if location is None else f" at {location}"
        self.report_end(f"was aborted by XLA in {self._present}{where}")
        return (
            f"Worker {self.rank} of {self.size} cannot finish {self._present}{where}: XLA aborted "
            "it, because another worker ran a different collective or the first worker ended. Set "
            "RETROGRADE_CHECK_COLLECTIVES=1 to find the first collective that differs."
        )

    def leave(self) -> None:
        """Ends the work with the other workers. The coordinator stays until all have left.

        The others do not disconnect: the coordinator may be gone before they have, and then XLA
        would end the process with an error.
        """
        delay_abort()
        set_process_group(Group())
        self.report_end("ended its program")
        if self.rank or self._has_failed:
            _keep_connection()
            return
        end = time.monotonic() + self.timeouts.shutdown
        left = set(range(1, self.size))
        while left and time.monotonic() < end:
            left = {i for i in left if not self._reason(i)}
            time.sleep(0.02)


def _keep_connection() -> None:
    """Prevents JAX from disconnecting when Python ends."""
    from jax._src import distributed

    client = distributed.global_state.client
    distributed.global_state.client = None
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))  # its destructor would disconnect


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _pack(parts: list[np.ndarray]) -> np.ndarray:
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0]).reshape(-1)
    return np.concatenate([x.reshape(-1) for x in parts])


def _unpack(total: np.ndarray, parts: list[np.ndarray]) -> list:
    results, start = [], 0
    for x in parts:
        part = total[start : start + x.size].reshape(x.shape)
        results.append(part if x.ndim else part[()])
        start += x.size
    return results


@functools.cache
def _jit_sum(mesh: Any) -> Callable:
    """Returns the jitted sum of buffers, one of each worker."""
    jax = required_jax()
    spec = jax.sharding.PartitionSpec
    return jax.jit(
        jax.shard_map(
            lambda x: jax.lax.psum(x, AXIS)[0], mesh=mesh, in_specs=spec(AXIS), out_specs=spec()
        )
    )


@functools.cache
def _jit_stack(mesh: Any) -> Callable:
    """Returns the jitted stack of buffers, one of each worker."""
    jax = required_jax()
    spec = jax.sharding.PartitionSpec
    return jax.jit(
        jax.shard_map(
            lambda x: jax.lax.all_gather(x[0], AXIS),
            mesh=mesh,
            in_specs=spec(AXIS),
            out_specs=spec(),
            check_vma=False,  # JAX takes the result of all_gather for one that varies
        )
    )


# Starting

_started: list[ProcessGroup] = []


def start(worker: Worker | None, collective_timeout: float | None = None) -> Group:
    """Connects this process with the other workers, once, and returns their group.

    Without `worker`, JAX finds the cluster: SLURM, Open MPI, Kubernetes and others.
    """
    if _started:
        return _started[0]
    if worker is not None and worker.size == 1:
        return current_group()
    timeouts = Timeouts.from_environment(collective=collective_timeout)
    jax = required_jax()
    _set_collective_timeout(timeouts.collective)
    jax.config.update("jax_enable_recoverability", True)
    options: dict[str, Any] = {
        "initialization_timeout": timeouts.start,
        "heartbeat_timeout_seconds": timeouts.heartbeat,
        "shutdown_timeout_seconds": timeouts.shutdown,
    }
    if worker is not None:
        options |= {
            "coordinator_address": worker.coordinator,
            "num_processes": worker.size,
            "process_id": worker.rank,
            "cluster_detection_method": "deactivate",
        }
        if not worker.rank:
            options["coordinator_bind_address"] = (
                os.environ.get("RETROGRADE_BIND_ADDRESS") or worker.coordinator
            )
    on_abort(lambda: _start_message(worker, timeouts))
    try:
        jax.config.update("jax_num_cpu_devices", 1)
        jax.distributed.initialize(**options)
    except RuntimeError as error:
        raise _not_started(worker, timeouts, error) from error
    group = ProcessGroup(jax, timeouts)
    if group.size == 1:
        return current_group()
    _started.append(group)
    set_process_group(group)
    drop_all_traces()
    on_abort(group.report_abort)
    end_on_exceptions(lambda text: group.report_end(f"raised {text}"))
    atexit.register(group.leave)  # runs before JAX leaves, which registered before
    import retrograde

    group.agree(f"retrograde {retrograde.__version__}, jax {jax.__version__}")
    random_state.share_entropy(int(group.broadcast([random_state.entropy()])[0]))
    return group


def _set_collective_timeout(seconds: int) -> None:
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_collective_timeout_seconds" not in flags:
        added = f"--xla_cpu_collective_timeout_seconds={seconds}"
        os.environ["XLA_FLAGS"] = f"{flags} {added}".strip()


def _not_started(worker: Worker | None, timeouts: Timeouts, error: RuntimeError) -> Exception:
    if "before" in str(error) or "initialized" in str(error).split("\n")[0]:
        return RuntimeError(
            "MultiWorkerMirroredStrategy must be created at the beginning of the program, before "
            f"anything runs on JAX. ({_one_line(str(error))[:200]})"
        )
    message = f"{_start_message(worker, timeouts)} ({_one_line(str(error))[:300]})"
    return WorkerLostError(None, None, message)


def _start_message(worker: Worker | None, timeouts: Timeouts) -> str:
    where = "the cluster" if worker is None else f"the coordinator at {worker.coordinator}"
    return f"Cannot connect to {where}, or not all workers started within {timeouts.start} seconds."
