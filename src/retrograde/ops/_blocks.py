"""Elementwise work on large arrays: in blocks that stay in cache, over threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograde.core import alarms
from retrograde.core.dispatch import MANY
from retrograde.core.recorders import quiet_context

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

BLOCK = 1 << 16  # elements: a few float32 blocks fit the caches, and a kernel outlasts the GIL
LARGE = MANY  # elements from which on threads are worth waking for a costly function
HUGE = 1 << 19  # and for plain arithmetic

limit = 0  # how many threads may share the work; 0 for as many as there are cores

_pool: ThreadPoolExecutor | None = None


def threads() -> int:
    """How many threads share the work."""
    return min(limit, _cores()) if limit else _cores()


def _cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_blocks(f: Callable, from_size: int = LARGE) -> Callable:
    """`f`, an elementwise function of arrays, made to take large ones block by block."""

    def run(first: Any, *others: Any, **attrs: Any) -> Any:
        if type(first) is np.ndarray and first.size >= from_size:
            return run_in_blocks(f, first, *others, **attrs)
        return f(first, *others, **attrs)

    return run


def run_in_blocks(f: Callable, *arrays: Any, **attrs: Any) -> Any:
    """`f(*arrays, **attrs)`, by blocks if all arrays have the shape of the first or no axes."""
    shape, size = arrays[0].shape, arrays[0].size
    flat = [_flat(array, shape) for array in arrays]
    if any(a is NotImplemented for a in flat):
        return f(*arrays, **attrs)
    if isinstance(f, np.ufunc):  # needs no blocks, only a place to write to
        out = np.empty(size, f.resolve_dtypes((*(a.dtype for a in arrays), None))[-1])
        block, start = size, 0
    else:
        head = f(*_cut(flat, 0, BLOCK), **attrs)
        out = np.empty(size, head.dtype)
        out[:BLOCK] = head
        block, start = BLOCK, BLOCK

    def work(i: int, stop: int) -> None:
        for a in range(i, stop, block):
            b = min(a + block, stop)
            if block == size:
                f(*_cut(flat, a, b), out=out[a:b])
            else:
                out[a:b] = f(*_cut(flat, a, b), **attrs)

    share = -(-size // (threads() * BLOCK)) * BLOCK
    others = [_start(work, i, min(i + share, size)) for i in range(share, size, share)]
    work(start, min(share, size))
    _finish(others)
    return out.reshape(shape)


def over_batch(f: Callable, out: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    """`f(*arrays, out)`, a few elements of the first axes at a time.

    What `f` returns is copied to its part of `out`, unless it is this part: it may write there.
    """
    count = len(out)
    if not out.size or not count:
        return out
    few = max(1, BLOCK * 8 * count // sum(a.size for a in (out, *arrays)))

    def work(start: int, stop: int) -> None:
        for i in range(start, stop, few):
            part = slice(i, min(i + few, stop))
            room = out[part]
            y = f(*(a[part] for a in arrays), room)
            if y is not room:
                room[...] = y

    share = count if out.size < LARGE else -(-count // threads())
    others = [_start(work, i, min(i + share, count)) for i in range(share, count, share)]
    work(0, min(share, count))
    _finish(others)
    return out


@lru_cache(maxsize=256)
def halves(size: int, most: int) -> tuple[tuple[int, int], ...]:
    """Pairs `(start, stop)` that cover `size`, which is halved until none is longer than `most`.

    It is halved as NumPy does for a sum, so the sums of the parts, added as `sum_of_halves` does,
    are NumPy's sum of the whole to the last bit.
    """
    if size <= most:
        return ((0, size),)
    middle = _middle(size)
    behind = [(middle + a, middle + b) for a, b in halves(size - middle, most)]
    return (*halves(middle, most), *behind)


def sum_of_halves(sums: dict[int, Any], size: int, most: int, start: int = 0) -> Any:
    """The sum over `size` elements from `start` on, out of those over the `halves`, by start."""
    if size <= most:
        return sums[start]
    middle = _middle(size)
    behind = sum_of_halves(sums, size - middle, most, start + middle)
    return sum_of_halves(sums, middle, most, start) + behind


def _middle(size: int) -> int:
    """Half of `size`, in whole steps of eight as NumPy's loop takes them."""
    middle = size // 2
    return middle - middle % 8 if middle >= 8 else middle


def shared(work: Callable, parts: Sequence, helpers: int) -> None:
    """`work(parts)`, in this thread and in `helpers` others: each takes the next that is left.

    When it returns or raises, all of them are done.
    """
    left = list(reversed(parts))
    others = [_start(work, _taken(left)) for _ in range(min(helpers, len(parts) - 1))]
    try:
        work(_taken(left))
    finally:
        left.clear()
        running = [other for other in others if other is not None and not other.cancel()]
        for other in running:
            other.exception()  # which waits
    _finish(running)


def _taken(left: list) -> Iterator:
    while True:
        try:
            yield left.pop()
        except IndexError:
            return


def _start(work: Callable, *arguments: Any) -> Future | None:
    """Has another thread do `work`; but a Python that is about to exit starts none."""
    try:
        return _executor().submit(_done_apart, work, *arguments)
    except RuntimeError:
        work(*arguments)
        return None


def _done_apart(work: Callable, *arguments: Any) -> list:
    """Does `work` in a context of its own, and returns the alarms in it."""
    alarms_there: list = []
    quiet_context(lambda *alarm: alarms_there.append(alarm)).run(work, *arguments)
    return alarms_there


def _finish(others: list[Future | None]) -> None:
    """Waits for the others, and hears the alarms that they heard."""
    if any([other.result() for other in others if other is not None]):
        alarms.heard()


def _flat(array: Any, shape: tuple) -> Any:
    """`array` along one axis, or without axes if it is one element all over."""
    if array is None or not array.ndim:
        return array
    if array.shape != shape:
        return NotImplemented
    if not any(array.strides):
        return array.flat[0]
    return array.reshape(-1) if array.flags.c_contiguous else NotImplemented


def _cut(flat: list, start: int, stop: int) -> list:
    return [a[start:stop] if a is not None and a.ndim else a for a in flat]


def _executor() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor  # not before it is needed

        _pool = ThreadPoolExecutor(max(1, _cores() - 1), thread_name_prefix="retrograde-blocks")
    return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
