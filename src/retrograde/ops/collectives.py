"""Collectives: values exchanged between the replicas that run the same program.

The current `Group` holds the participating replicas. Outside a strategy with several replicas,
it has one replica, and a collective returns its inputs. While a program is traced that XLA compiles
for all replicas at once, `spmd_axis` sets the name of the mesh axis of the replicas.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.recorders import thread
from retrograde.ops.host_callbacks import HostCallback
from retrograde.ops.shaping import broadcast_batched
from retrograde.values import dtypes


class Group:
    """Replicas that exchange values. The base class has a single replica."""

    size = 1
    rank = 0
    mesh: Any = None  # a `jax.sharding.Mesh` with one device of each replica, if there is one
    device: Any = None  # the device of this replica in the mesh

    def all_reduce(self, arrays: Sequence[Any]) -> tuple:
        """Returns the sum of each array over all replicas."""
        return tuple(arrays)

    def all_gather(self, array: Any, axis: int) -> Any:  # noqa: ARG002
        """Returns the arrays of all replicas, concatenated along `axis` in rank order."""
        return array

    def reduce_scatter(self, array: Any, axis: int, size: int) -> Any:  # noqa: ARG002
        """Returns this replica's `size` rows, along `axis`, of the sum over all replicas."""
        return array

    def broadcast(self, arrays: Sequence[Any]) -> tuple:
        """Returns the arrays of the first replica."""
        return tuple(arrays)

    def agrees(self, program: int) -> bool | None:  # noqa: ARG002
        """Returns whether all replicas are about to run the same compiled program, by its id.

        A replica that runs a function without compiling it passes `REPLAYS`. A replica that traces
        it passes `TRACES`: then the result is `None`, unless another one passes `REPLAYS`.
        """
        return True

    def run_program(self, f: Callable[[], Any], collectives: int) -> Any:  # noqa: ARG002
        """Returns the results of a compiled program with this number of collectives."""
        return f()

    def barrier(self) -> None:
        """Waits until all replicas are here."""


SINGLE_REPLICA = Group()

REPLAYS, TRACES = 0, -1  # announced in place of the id of a compiled program


class _ThreadState(threading.local):
    group: Group | None = None
    axis: str | None = None
    log: Any = None


_thread_state = _ThreadState()
_process: list[Group] = [SINGLE_REPLICA]


def set_process_group(group: Group) -> None:
    """Sets the default group of all threads of this process."""
    _process[0] = group


def current_group() -> Group:
    """Returns the group of this thread."""
    return _thread_state.group or _process[0]


@contextlib.contextmanager
def use_group(group: Group) -> Iterator[None]:
    """Sets the group of this thread within a `with` block."""
    before = _thread_state.group
    _thread_state.group = group
    try:
        yield
    finally:
        _thread_state.group = before


def in_spmd_program() -> bool:
    """Returns whether this thread is tracing a program for all replicas at once."""
    return _thread_state.axis is not None


def num_replicas() -> int:
    """Returns the number of replicas in the current group."""
    return current_group().size


@contextlib.contextmanager
def spmd_axis(name: str) -> Iterator[None]:
    """Traces collectives within a `with` block as operations along the mesh axis `name`."""
    before = _thread_state.axis
    _thread_state.axis = name
    try:
        yield
    finally:
        _thread_state.axis = before


@contextlib.contextmanager
def replay_results_from(log: Any) -> Iterator[None]:
    """Returns logged results from collectives within a `with` block, if `log` has them.

    If a guard of a function fails, the function runs again with the same log. Its collectives do
    not communicate again, because the other replicas do not repeat theirs.
    """
    before = _thread_state.log
    _thread_state.log = log
    try:
        yield
    finally:
        _thread_state.log = before


def as_host_callback(call: Any) -> HostCallback:
    """Returns a host callback that runs a collective."""
    primitive, attrs = call.primitive, call.attrs
    return HostCallback(
        primitive.name,
        lambda *arrays: primitive.run(arrays, attrs),
        pure=False,
        outputs=primitive.outputs,
    )


def _exchange(name: str, f: Callable[[], Any]) -> Any:
    """Returns `f()`, or its logged result."""
    log = _thread_state.log
    if log is None:
        tracer = thread.recorders.tracer
        if tracer is None:
            return f()
        log = tracer.log
        announce(log, TRACES)
    return log.result_of(HostCallback(name, f, pure=False), [])


def announce(log: Any, program: int = REPLAYS) -> bool:
    """Returns whether all replicas run the same compiled program in a call.

    All of them call this in each call of a function that may be compiled, before the first
    collective, because a function may have different traces in different replicas. If one of them
    traces the function, its program is not known yet. Then all run the call with NumPy, announce
    their programs again, and run the call again if these are equal. So the results do not depend on
    which calls are traced.
    """
    if log is None or current_group().size == 1:
        return False
    if not (log.announces or (log.is_undecided and program != TRACES)):
        return False
    log.announces = False
    agreed = current_group().agrees(program)
    log.is_undecided = agreed is None
    return bool(agreed)


class Collective(Primitive):
    """A primitive that all replicas call together.

    It is not pure. Every replica has to make the same calls in the same order, so no call is
    constant-folded, deduplicated, or removed as dead code.
    """

    pure = False
    __slots__ = ()


def _lax() -> Any:
    from jax import lax

    return lax


_BUCKET_BYTES = 4 << 20  # large enough that latency does not count


def _psum(xp, xs, axis):
    """Returns the sums of arrays over a mesh axis. Small arrays share one buffer."""
    results: list[Any] = [None] * len(xs)
    buckets: dict[Any, list[int]] = {}  # the last bucket of each dtype
    used: dict[Any, int] = {}

    def send(places):
        flat = [xs[i].reshape(-1) for i in places]
        joined = xp.concatenate(flat) if len(flat) > 1 else flat[0]
        is_bool = joined.dtype == bool
        total = _lax().psum(joined.astype(np.int32) if is_bool else joined, axis)
        start = 0
        for i in places:
            part = total[start : start + xs[i].size].reshape(xs[i].shape)
            results[i] = part.astype(bool) if is_bool else part
            start += xs[i].size

    for i, x in enumerate(xs):
        if buckets.get(x.dtype) and used[x.dtype] + x.nbytes > _BUCKET_BYTES:
            send(buckets.pop(x.dtype))
        if x.dtype not in buckets:
            used[x.dtype] = 0
        buckets.setdefault(x.dtype, []).append(i)
        used[x.dtype] += x.nbytes
    for places in buckets.values():
        send(places)
    return tuple(results)


def select_replica(xp, x, replica):
    """Returns the array of one replica, on all devices of the mesh axis."""
    axis = _thread_state.axis
    chosen = xp.where(_lax().axis_index(axis) == replica, x, xp.zeros_like(x))
    return _psum(xp, [chosen], axis)[0]


def _all_reduce_kernel(xp, *xs):
    if xp is np:
        return _exchange("all_reduce", lambda: current_group().all_reduce(xs))
    if _thread_state.axis is not None:
        return _psum(xp, xs, _thread_state.axis)
    if current_group().size == 1:
        return xs
    return tuple(map(xp.asarray, current_group().all_reduce(list(map(np.asarray, xs)))))


def _all_reduce_vjp(needed, gs, _y, *_xs):
    # The output of each replica depends on all inputs, so cotangents are summed over replicas.
    sums = all_reduce(*gs)
    return tuple(s if is_needed else None for s, is_needed in zip(sums, needed, strict=True))


all_reduce = Collective(
    "all_reduce",
    _all_reduce_kernel,
    joint=_all_reduce_vjp,
    batch=lambda batched, *xs: all_reduce(*broadcast_batched(batched, xs)),
    linear=True,
    outputs=True,
)


def _all_gather_kernel(xp, x, *, axis):
    if xp is np:
        return _exchange("all_gather", lambda: current_group().all_gather(x, axis))
    if _thread_state.axis is not None:
        return _lax().all_gather(x, _thread_state.axis, axis=axis, tiled=True)
    if current_group().size == 1:
        return x
    return xp.asarray(current_group().all_gather(np.asarray(x), axis))


all_gather = Collective(
    "all_gather",
    _all_gather_kernel,
    vjps=(lambda g, _y, _x, *, axis: reduce_scatter(g, axis=axis, size=_x.shape[axis]),),
    batch=lambda _, x, *, axis: all_gather(x, axis=axis + 1),
    linear=True,
)


def _reduce_scatter_kernel(xp, x, *, axis, size):
    if xp is np:
        return _exchange("reduce_scatter", lambda: current_group().reduce_scatter(x, axis, size))
    if _thread_state.axis is not None:
        return _lax().psum_scatter(x, _thread_state.axis, scatter_dimension=axis, tiled=True)
    if current_group().size == 1:
        return x
    return xp.asarray(current_group().reduce_scatter(np.asarray(x), axis, size))


# The transpose of `all_gather`
reduce_scatter = Collective(
    "reduce_scatter",
    _reduce_scatter_kernel,
    vjps=(lambda g, _y, _x, *, axis, **_: all_gather(g, axis=axis),),
    batch=lambda _, x, *, axis, size: reduce_scatter(x, axis=axis + 1, size=size),
    linear=True,
)


def _broadcast_from_first_kernel(xp, *xs):
    if xp is np:
        return _exchange("broadcast_from_first", lambda: current_group().broadcast(xs))
    if _thread_state.axis is not None:
        return tuple(select_replica(xp, x, 0) for x in xs)
    if current_group().size == 1:
        return xs
    return tuple(map(xp.asarray, current_group().broadcast(list(map(np.asarray, xs)))))


broadcast_from_first = Collective(
    "broadcast_from_first",
    _broadcast_from_first_kernel,
    batch=lambda batched, *xs: broadcast_from_first(*broadcast_batched(batched, xs)),
    outputs=True,
)


def _sum_replicas_kernel(xp, *xs, replicas):
    groups = [xs[i : i + replicas] for i in range(0, len(xs), replicas)]
    return tuple(functools.reduce(xp.add, group) for group in groups)


def _sum_replicas_vjp(needed, gs, _y, *_xs, replicas):
    return tuple(gs[i // replicas] if is_needed else None for i, is_needed in enumerate(needed))


# The sums over the replicas of one process. The values of all replicas are inputs, starting with
# the values of the first tensor. A program that runs on several devices has an `all_reduce`
# instead.
sum_replicas = Primitive(
    "sum_replicas",
    _sum_replicas_kernel,
    joint=_sum_replicas_vjp,
    batch=lambda batched, *xs, replicas: sum_replicas(
        *broadcast_batched(batched, xs), replicas=replicas
    ),
    linear=True,
    accepts=dtypes.NUMERIC,
    outputs=True,
)
