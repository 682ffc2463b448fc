"""The state of stateful random operations: each draw has its own key and counter.

Random numbers are a function of key and counter only (`numpy.random.Philox`), so restoring the
position in a stream reproduces them. Each thread has its own stream, so its numbers do not depend
on what other threads draw.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from retrograde.core.batching import Level, mapped
from retrograde.core.recorders import thread
from retrograde.ops.host_callbacks import CallbackDescription, HostCallback, call_host
from retrograde.ops.host_functions import CALLBACK_BUILDERS, register_function, registered_name
from retrograde.values.arguments import as_int
from retrograde.values.locks import fork_safe_lock

_WORD = 1 << 64
_DEFAULT_SEED = 87654321  # used as the global seed if only an operation seed is set


class Draw(NamedTuple):
    """The key and counter of one draw, two 64-bit words each.

    `levels` are the batch levels, outermost first, whose elements get different numbers. While a
    function is traced, `words` is a tensor of key and counter, which each replay draws again.
    """

    key: tuple[int, int]
    counter: tuple[int, int]
    levels: tuple[Level, ...] = ()
    words: Any = None

    def as_words(self) -> np.ndarray:
        """Returns key and counter as an array."""
        return np.array([*self.key, *self.counter], np.uint64)

    @classmethod
    def from_words(cls, words: np.ndarray) -> Draw:
        """Returns the inverse of `as_words`."""
        first, second, third, fourth = words.tolist()
        return cls((first, second), (third, fourth))


class State(NamedTuple):
    """A position in a stream: the seed, the number of the stream, and the draws from each key."""

    seed: int | None
    stream: int
    counts: dict[int | None, int]


class _Global:
    """The seed of the process, and the number of streams created since it was set."""

    def __init__(self) -> None:
        self.lock = fork_safe_lock()
        self.entropy = int.from_bytes(os.urandom(8), "little")
        self.fork_word = 0
        self.restart(None)

    def restart(self, seed: int | None) -> None:
        self.seed = seed
        self.epoch = object()
        self.streams = 0
        self.forks = 0  # by this process, since the seed was set


class _Thread(threading.local):
    epoch: object = None
    state: State
    replayed: State | None = None
    replica: int = 0


_global = _Global()
_thread = _Thread()


def set_seed(seed: int | None) -> None:
    """Restarts all streams from `seed`. The calling thread gets the first stream."""
    with _global.lock:
        _global.restart(seed)
        _start_stream()


def entropy() -> np.uint64:
    """Returns the number that replaces the seed while none is set."""
    return np.uint64(_global.entropy)


def share_entropy(number: int) -> None:
    """Sets the number that replaces the seed while none is set."""
    with _global.lock:
        _global.entropy = number


def _start_stream() -> None:
    """Starts a new stream with the current seed for this thread."""
    _thread.epoch = _global.epoch
    _thread.state = State(_global.seed, _global.streams, {})
    _global.streams += 1


def _current() -> State:
    if _thread.replayed is not None:
        return _thread.replayed
    if _thread.epoch is not _global.epoch:
        with _global.lock:
            _start_stream()
    return _thread.state


def _count_fork() -> None:
    _global.forks += 1


def _reset_in_child() -> None:
    """Gives a forked child streams that no other process uses.

    They depend on the parent's stream and the number of the fork, so a program that sets a seed and
    forks in a fixed order is reproducible.
    """
    parent = _current()
    path = [_global.fork_word, parent.stream, _global.forks]
    _global.fork_word = int(np.random.SeedSequence(path).generate_state(1, np.uint64)[0])
    _global.forks = 0
    _global.entropy = int.from_bytes(os.urandom(8), "little")
    _global.epoch = object()
    _global.streams = _global.fork_word % (_WORD // 4)
    _start_stream()


def fork_word() -> int:
    """Returns a number that differs between this process and all others forked from its parent."""
    return _global.fork_word


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_count_fork, after_in_child=_reset_in_child)


def draw_key(seed: int | None = None) -> Draw:
    """Returns the key and counter of the next draw. Each operation `seed` has its own counter."""
    replica = _thread.replica
    if thread.recorders.tracer is None:
        return _next_in_replica((replica, seed)) if replica else _next(seed)
    callback = (
        _draw_on_host(_next_in_replica, (replica, seed)) if replica else _draw_on_host(_next, seed)
    )
    words = call_host(callback)
    return Draw.from_words(words._array)._replace(levels=mapped(), words=words)


def _draw_on_host(function: Callable, seed: Any) -> HostCallback:
    """Returns a host callback that advances a stream in each call to a traced function."""
    description = CallbackDescription("draw", registered_name(function), seed)
    return HostCallback(
        "draw", lambda: function(seed).as_words(), pure=False, draws=True, description=description
    )


CALLBACK_BUILDERS["draw"] = _draw_on_host


@register_function
def _next(seed: int | None) -> Draw:
    state, seed = _current(), None if seed is None else as_int(seed, "seed")
    count = state.counts.get(seed, 0)
    state.counts[seed] = count + 1
    if seed is None:
        first = _global.entropy if state.seed is None else state.seed
        return Draw((first % _WORD, 0), (count, state.stream), mapped())
    first = _DEFAULT_SEED if state.seed is None else state.seed
    return Draw((first % _WORD, seed % _WORD), (count, state.stream + _WORD // 2), mapped())


@register_function
def _next_in_replica(key: tuple[int, int | None]) -> Draw:
    """Draws as `_next` does, from the streams of a replica that is not the first."""
    replica, seed = key
    draw = _next(seed)
    count, stream = draw.counter
    return draw._replace(counter=(count, (stream + (replica << 40)) % _WORD))


def shared_state() -> State:
    """Returns the position of this thread in its stream, for `share_state` in another thread."""
    return _current()


def share_state(state: State) -> None:
    """Makes this thread draw from the same stream as another one, in turns."""
    _thread.epoch, _thread.state = _global.epoch, state


def replica() -> int:
    """Returns the number of the replica that this thread draws for."""
    return _thread.replica


@contextlib.contextmanager
def in_replica(number: int) -> Iterator[None]:
    """Makes random numbers differ between replicas, in a context.

    The first replica draws as a program without replicas does.
    """
    before = _thread.replica
    _thread.replica = number
    try:
        yield
    finally:
        _thread.replica = before


def state() -> State:
    """Returns the position of this thread in its stream."""
    seed, stream, counts = _current()
    return State(seed, stream, dict(counts))


def restore(saved: State) -> None:
    """Restores the position of this thread in its stream that `state` returned."""
    counts = _current().counts
    counts.clear()
    counts.update(saved.counts)


@contextlib.contextmanager
def replaying(saved: State) -> Iterator[None]:
    """Makes this thread draw the numbers that follow `saved` again, in a context.

    Afterwards it continues as if nothing had been drawn in the context.
    """
    before = _thread.replayed
    _thread.replayed = State(saved.seed, saved.stream, dict(saved.counts))
    try:
        yield
    finally:
        _thread.replayed = before
