"""Elementwise work on large arrays: in blocks that stay in cache, over threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograde.core import floating_point_flags
from retrograde.core.recorders import quiet_context
from retrograde.fusion.processors import processors
from retrograde.values.thresholds import BLOCK
from retrograde.values.thresholds import THREADED_IF_CHEAP as HUGE  # noqa: F401  (kernels compare with it)
from retrograde.values.thresholds import THREADED_IF_COSTLY as LARGE
from retrograde.values.thresholds import UFUNC_BLOCK as LONG

if TYPE_CHECKING:
    from queue import SimpleQueue


limit = 0  # how many threads may share the work; 0 for as many as there are cores


def threads() -> int:
    """How many threads share the work."""
    return min(limit, processors()) if limit else processors()


def run_in_blocks(
    f: Callable,
    arrays: Sequence,
    attrs: dict,
    dtype: Any = None,
    costly: bool = True,
    out: np.ndarray | None = None,
) -> Any:
    """`f(*arrays, **attrs)` for an elementwise `f`, by blocks.

    Threads share them, if all arrays have the shape of the first or no axes; else it is done all
    at once. If the `dtype` of the result is given, `f` writes into an `out`: into the one that is
    handed in, which has the shape of the first array, or into a new one.
    """
    copies = dtype is None
    flat = _flat(arrays if out is None else (*arrays, out))
    if flat is None:
        return f(*arrays, **attrs) if out is None else f(*arrays, out=out, **attrs)
    if copies:
        dtype = f(*_cut(flat, 0, 1), **attrs).dtype
    if out is None:
        out = np.empty(arrays[0].shape, dtype)
    else:
        flat.pop()
    y = out.reshape(-1)

    def work(blocks: Iterator) -> None:
        for start, stop in blocks:
            if copies:
                y[start:stop] = f(*_cut(flat, start, stop), **attrs)
            else:
                f(*_cut(flat, start, stop), out=y[start:stop], **attrs)

    # A single ufunc has nothing to find in the cache again; what is cheap is not cut too short.
    most = LONG if isinstance(f, np.ufunc) or not costly else BLOCK
    count = threads()
    shared(work, _shorter(y.size, most, BLOCK // 8 if costly else BLOCK, count), count - 1)
    return out


@lru_cache(maxsize=256)
def _shorter(size: int, most: int, least: int, threads: int) -> tuple[tuple[int, int], ...]:
    """Pairs `(start, stop)` that cover `size`, shorter and shorter.

    So threads need few of them, and yet are done at nearly the same time.
    """
    pairs, start = [], 0
    while start < size:
        length = (size - start) // (2 * threads) // 16 * 16  # so that each begins a line of cache
        stop = min(start + max(least, min(length, most)), size)
        pairs.append((start, stop))
        start = stop
    return tuple(pairs)


def _flat(arrays: Sequence) -> list | None:
    """`arrays` along one axis, or without axes if one element all over; `None` if not possible."""
    shape = arrays[0].shape
    flat = []
    for array in arrays:
        if array is None or not array.ndim:
            flat.append(array)
        elif array.shape != shape:
            return None
        elif not any(array.strides):
            flat.append(array.flat[0])
        elif array.flags.c_contiguous:
            flat.append(array.reshape(-1))
        else:
            return None
    return flat


def _cut(flat: list, start: int, stop: int) -> list:
    return [a[start:stop] if a is not None and a.ndim else a for a in flat]


def over_batch(f: Callable, out: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    """`f(*arrays, out)`, a few elements of the first axes at a time.

    What `f` returns is copied to its part of `out`, unless it is this part: it may write there.
    """
    count = len(out)
    if not out.size or not count:
        return out
    few = max(1, BLOCK * 8 * count // sum(a.size for a in (out, *arrays)))

    def work(parts: Iterator) -> None:
        for start, stop in parts:
            room = out[start:stop]
            y = f(*(a[start:stop] for a in arrays), room)
            if y is not room:
                room[...] = y

    helpers = 0 if out.size < LARGE else threads() - 1
    few = min(few, -(-count // (helpers + 1)))
    shared(work, [(i, min(i + few, count)) for i in range(0, count, few)], helpers)
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


def shorter_halves(size: int, most: int) -> tuple[tuple[int, int], ...]:
    """As `halves`, but the last ones are halved further, so that threads are done together."""
    pairs = halves(size, most)
    long = len(pairs) - len(pairs) // 4
    less = max(_NOT_HALVED, most // 4)
    behind = [(a + i, a + j) for a, b in pairs[long:] for i, j in halves(b - a, less)]
    return (*pairs[:long], *behind)


def sum_of_halves(sums: dict[tuple[int, int], Any], start: int, stop: int) -> Any:
    """The sum over the elements from `start` to `stop`, out of those over halves of halves."""
    if (start, stop) in sums:
        return sums[start, stop]
    middle = start + _middle(stop - start)
    return sum_of_halves(sums, start, middle) + sum_of_halves(sums, middle, stop)


def sum_of_many(x: np.ndarray) -> Any:
    """NumPy's sum of floats along one axis, to the last bit, over threads."""
    sums: dict[tuple[int, int], Any] = {}

    def work(parts: Iterator) -> None:
        for start, stop in parts:
            sums[start, stop] = np.add.reduce(x[start:stop])

    shared(work, halves(x.size, LONG), threads() - 1)
    return sum_of_halves(sums, 0, x.size)


_NOT_HALVED = 128  # so many elements NumPy adds up as they come


def _middle(size: int) -> int:
    """Half of `size`, in whole steps of eight as NumPy's loop takes them."""
    middle = size // 2
    return middle - middle % 8 if middle >= 8 else middle


# Sharing work: each thread takes the next part that is left, so one that comes late or is slow
# takes fewer. Nobody waits for a thread that has not begun.


class _Job:
    """What another thread is asked to do, and what came of it.

    `work` is a list with one function, which goes to the thread that begins, or back.
    """

    __slots__ = ("alarmed", "done", "error", "finished", "left", "work")

    def __init__(self, work: Callable, left: list) -> None:
        self.work = [work]
        self.left = left
        self.done = threading.Lock()
        self.done.acquire()
        self.finished = False
        self.alarmed = False
        self.error: BaseException | None = None


def shared(work: Callable, parts: Sequence, helpers: int) -> None:
    """`work(parts)`, in this thread and in `helpers` others: each takes the next that is left.

    When it returns or raises, all of them are done.
    """
    helpers = min(helpers, len(parts) - 1)
    if helpers <= 0:
        work(iter(parts))
        return
    left = list(reversed(parts))
    ask = _helpers().put
    jobs = [_Job(work, left) for _ in range(helpers)]
    for job in jobs:
        ask(job)
    try:
        work(_taken(left))
    finally:
        left.clear()
        begun = [job for job in jobs if next(_taken(job.work), None) is None]
        _wait_for(begun)
    for job in begun:
        if job.error is not None:
            raise job.error
    if any([job.alarmed for job in begun]):
        floating_point_flags.set_flag()


def _wait_for(jobs: list[_Job]) -> None:
    """Waits until all jobs are done. Control-C is raised after that: they still write to arrays."""
    interrupt: BaseException | None = None
    for job in jobs:
        while not job.finished:
            try:
                job.done.acquire()
            except BaseException as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt


def _taken(left: list) -> Iterator:
    while True:
        try:
            yield left.pop()
        except IndexError:
            return


_jobs: SimpleQueue | None = None


def _helpers() -> SimpleQueue:
    """Where threads wait for jobs."""
    global _jobs
    if _jobs is None:
        from queue import SimpleQueue  # not before it is needed

        _jobs = jobs = SimpleQueue()
        for i in range(max(1, processors() - 1)):
            name = f"retrograde-blocks_{i}"
            try:
                threading.Thread(target=_help, args=(jobs,), name=name, daemon=True).start()
            except RuntimeError:  # a Python that is about to exit starts none
                break
    return _jobs


def _help(jobs: SimpleQueue) -> None:
    """Runs one job after the other, and reports whether a kernel set a floating-point flag."""
    flags = floating_point_flags.flags()
    context = quiet_context()
    while True:
        job = jobs.get()
        for work in _taken(job.work):
            before = flags.count
            try:
                context.run(work, _taken(job.left))
            except BaseException as error:
                job.error = error
            job.alarmed = flags.count != before
            del work  # and with it the arrays: who waits may write into them
            job.finished = True
            job.done.release()


def _forget_helpers() -> None:
    global _jobs
    _jobs = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)
