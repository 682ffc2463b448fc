"""Collectives: values exchanged between the replicas that run the same program.

The replicas that a call reaches are the present `Group`. Outside of a strategy with several
replicas it has one, and a collective returns its inputs. In a program that XLA compiles for all
replicas at once, `spmd_axis` names the axis of the mesh along which they are.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from retrograde.core.apply import Primitive
from retrograde.core.host_callbacks import HostCallback
from retrograde.core.recorders import thread
from retrograde.ops.shaping import broadcast_batched


class Group:
    """The replicas that exchange values. This one has a single replica."""

    size = 1
    rank = 0

    def all_reduce(self, arrays: Sequence[Any]) -> tuple:
        """Returns the sum of each array over all replicas."""
        return tuple(arrays)

    def all_gather(self, array: Any, axis: int) -> Any:  # noqa: ARG002
        """Returns the arrays of all replicas, concatenated along `axis` in the order of ranks."""
        return array

    def reduce_scatter(self, array: Any, axis: int, size: int) -> Any:  # noqa: ARG002
        """Returns the sum over all replicas, cut to the `size` rows along `axis` of this one."""
        return array

    def broadcast(self, arrays: Sequence[Any]) -> tuple:
        """Returns the arrays of the first replica."""
        return tuple(arrays)


ALONE = Group()


class _Present(threading.local):
    group: Group | None = None
    axis: str | None = None
    log: Any = None


_present = _Present()
_process: list[Group] = [ALONE]


def set_process_group(group: Group) -> None:
    """Makes `group` the group of all threads of this process that have no other."""
    _process[0] = group


def current_group() -> Group:
    """Returns the group of this thread."""
    return _present.group or _process[0]


@contextlib.contextmanager
def use_group(group: Group) -> Iterator[None]:
    """Makes `group` the group of this thread for the duration of a block."""
    before = _present.group
    _present.group = group
    try:
        yield
    finally:
        _present.group = before


def in_spmd_program() -> bool:
    """Returns whether this thread traces a program for all replicas at once."""
    return _present.axis is not None


def num_replicas() -> int:
    """Returns the number of replicas that a collective reaches."""
    return current_group().size


@contextlib.contextmanager
def spmd_axis(name: str) -> Iterator[None]:
    """Marks a block that traces a program for all replicas along the mesh axis `name`."""
    before = _present.axis
    _present.axis = name
    try:
        yield
    finally:
        _present.axis = before


@contextlib.contextmanager
def answered_by(log: Any) -> Iterator[None]:
    """Takes the results of collectives from `log`, if it has them, for the duration of a block.

    A function whose guard fails runs again with the same log. Its collectives are not repeated,
    because the other replicas do not repeat theirs.
    """
    before = _present.log
    _present.log = log
    try:
        yield
    finally:
        _present.log = before


def logged_call(call: Any) -> HostCallback:
    """Returns a host callback that does what the call of a collective does."""
    primitive, attrs = call.primitive, call.attrs
    return HostCallback(
        primitive.name,
        lambda *arrays: primitive.run(arrays, attrs),
        pure=False,
        outputs=primitive.outputs,
    )


def _exchange(name: str, f: Callable[[], Any]) -> Any:
    """Returns `f()`, or its logged result."""
    log = _present.log
    if log is None:
        tracer = thread.recorders.tracer
        if tracer is None:
            return f()
        log = tracer.log
    return log.result_of(HostCallback(name, f, pure=False), [])


class Collective(Primitive):
    """A primitive that all replicas call together.

    It is not pure: every replica makes the same calls in the same order, so none is folded, merged
    with another, or removed because its result is not used.
    """

    pure = False
    __slots__ = ()


def _lax() -> Any:
    from jax import lax

    return lax


def _all_reduce_kernel(xp, *xs):
    if xp is np:
        return _exchange("all_reduce", lambda: current_group().all_reduce(xs))
    if _present.axis is not None:
        return tuple(_lax().psum(xs, _present.axis))
    if current_group().size == 1:
        return xs
    return tuple(map(xp.asarray, current_group().all_reduce(list(map(np.asarray, xs)))))


def _all_reduce_vjp(needed, gs, _y, *_xs):
    # Every replica makes the same call, so all cotangents are summed.
    sums = all_reduce(*gs)
    return tuple(s if wanted else None for s, wanted in zip(sums, needed, strict=True))


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
    if _present.axis is not None:
        return _lax().all_gather(x, _present.axis, axis=axis, tiled=True)
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
    if _present.axis is not None:
        return _lax().psum_scatter(x, _present.axis, scatter_dimension=axis, tiled=True)
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


def _from_first_kernel(xp, *xs):
    if xp is np:
        return _exchange("from_first", lambda: current_group().broadcast(xs))
    if _present.axis is not None:
        lax = _lax()
        first = lax.axis_index(_present.axis) == 0
        return tuple(lax.psum([xp.where(first, x, xp.zeros_like(x)) for x in xs], _present.axis))
    if current_group().size == 1:
        return xs
    return tuple(map(xp.asarray, current_group().broadcast(list(map(np.asarray, xs)))))


from_first = Collective(
    "from_first",
    _from_first_kernel,
    batch=lambda batched, *xs: from_first(*broadcast_batched(batched, xs)),
    outputs=True,
)
