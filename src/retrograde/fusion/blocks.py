"""Elementwise work on large arrays, in cache-sized blocks and with threads."""

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
from retrograde.values.thresholds import (
    BLOCK_SIZE,
    MIN_THREADED_SIZE_IF_CHEAP,  # noqa: F401  (kernels compare with it)
    MIN_THREADED_SIZE_IF_COSTLY,
    UFUNC_BLOCK_SIZE,
)

if TYPE_CHECKING:
    from queue import SimpleQueue


limit = 0  # the maximum number of threads; 0 for the number of processors


def threads() -> int:
    """Returns the number of threads that share the work."""
    return min(limit, processors()) if limit else processors()


def run_in_blocks(
    f: Callable,
    arrays: Sequence,
    attrs: dict,
    dtype: Any = None,
    costly: bool = True,
    out: np.ndarray | None = None,
) -> Any:
    """Computes `f(*arrays, **attrs)` for an elementwise `f` in blocks, which threads share.

    This requires arrays of the same shape, or scalars. Other arrays are computed in one call. If
    the `dtype` of the result is given, `f` accepts `out`. The result is written into `out`, if it
    is given, which has the shape of the first array.
    """
    copies = dtype is None
    flat = _flatten(arrays if out is None else (*arrays, out))
    if flat is None:
        return f(*arrays, **attrs) if out is None else f(*arrays, out=out, **attrs)
    if copies:
        dtype = f(*_slice_all(flat, 0, 1), **attrs).dtype
    if out is None:
        out = np.empty(arrays[0].shape, dtype)
    else:
        flat.pop()
    y = out.reshape(-1)

    def work(blocks: Iterator) -> None:
        for start, stop in blocks:
            if copies:
                y[start:stop] = f(*_slice_all(flat, start, stop), **attrs)
            else:
                f(*_slice_all(flat, start, stop), out=y[start:stop], **attrs)

    # A single ufunc does not benefit from cache, and short blocks of cheap work cost too much.
    max_size = UFUNC_BLOCK_SIZE if isinstance(f, np.ufunc) or not costly else BLOCK_SIZE
    count = threads()
    run_shared(
        work,
        tapered_blocks(y.size, max_size, BLOCK_SIZE // 8 if costly else BLOCK_SIZE, count),
        count - 1,
    )
    return out


@lru_cache(maxsize=256)
def tapered_blocks(
    size: int, max_size: int, min_size: int, threads: int
) -> tuple[tuple[int, int], ...]:
    """Returns pairs `(start, stop)` that cover `size`, with decreasing lengths.

    So there are few of them, and threads finish at nearly the same time. None is shorter than
    `min_size`, except if `size` is.
    """
    pairs, start = [], 0
    while start < size:
        length = (size - start) // (2 * threads) // 16 * 16  # a multiple of a cache line
        stop = start + max(min_size, min(length, max_size))
        if size - stop < min_size:
            stop = size
        pairs.append((start, stop))
        start = stop
    return tuple(pairs)


def _flatten(arrays: Sequence) -> list | None:
    """Flattens `arrays`; uniform ones become scalars. Returns `None` if not contiguous."""
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


def _slice_all(flat: list, start: int, stop: int) -> list:
    return [a[start:stop] if a is not None and a.ndim else a for a in flat]


def run_in_slices(f: Callable, out: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    """Computes `f(*arrays, out)` in slices of the first axis, which threads share.

    `f` may write into its slice of `out` and return it. Other results are copied there.
    """
    count = len(out)
    if not out.size or not count:
        return out
    slice_size = max(1, BLOCK_SIZE * 8 * count // sum(a.size for a in (out, *arrays)))

    def work(parts: Iterator) -> None:
        for start, stop in parts:
            target = out[start:stop]
            y = f(*(a[start:stop] for a in arrays), target)
            if y is not target:
                target[...] = y

    helpers = 0 if out.size < MIN_THREADED_SIZE_IF_COSTLY else threads() - 1
    slice_size = min(slice_size, -(-count // (helpers + 1)))
    run_shared(
        work, [(i, min(i + slice_size, count)) for i in range(0, count, slice_size)], helpers
    )
    return out


@lru_cache(maxsize=256)
def halves(size: int, max_size: int) -> tuple[tuple[int, int], ...]:
    """Returns pairs `(start, stop)` that cover `size`, halved until none is longer than `max_size`.

    They are halved as in NumPy's pairwise sum. So `sum_of_halves` of the partial sums is
    bit-for-bit identical to NumPy's sum.
    """
    if size <= max_size:
        return ((0, size),)
    middle = _halve(size)
    second = [(middle + a, middle + b) for a, b in halves(size - middle, max_size)]
    return (*halves(middle, max_size), *second)


def block_bounds(size: int, max_size: int) -> tuple[tuple[int, int], ...]:
    """Returns `halves`, but halves the last ones further, so that threads finish together."""
    pairs = halves(size, max_size)
    num_long = len(pairs) - len(pairs) // 4
    less = max(_NOT_HALVED, max_size // 4)
    halved = [(a + i, a + j) for a, b in pairs[num_long:] for i, j in halves(b - a, less)]
    return (*pairs[:num_long], *halved)


def sum_of_halves(sums: dict[tuple[int, int], Any], start: int, stop: int) -> Any:
    """Returns the sum from `start` to `stop`, given the partial sums of `halves`."""
    if (start, stop) in sums:
        return sums[start, stop]
    middle = start + _halve(stop - start)
    return sum_of_halves(sums, start, middle) + sum_of_halves(sums, middle, stop)


def threaded_sum(x: np.ndarray) -> Any:
    """Computes the sum of a vector with threads, bit-for-bit identical to NumPy's."""
    sums: dict[tuple[int, int], Any] = {}

    def work(parts: Iterator) -> None:
        for start, stop in parts:
            sums[start, stop] = np.add.reduce(x[start:stop])

    run_shared(work, halves(x.size, UFUNC_BLOCK_SIZE), threads() - 1)
    return sum_of_halves(sums, 0, x.size)


_NOT_HALVED = 128  # NumPy's sum does not halve ranges of this many elements or fewer


def _halve(size: int) -> int:
    """Returns half of `size`, rounded down to a multiple of 8, as in NumPy's sum."""
    middle = size // 2
    return middle - middle % 8 if middle >= 8 else middle


# Sharing work: each thread takes the next remaining part, so a slow thread takes fewer parts. A
# thread that has not started when all parts are taken is not waited for.


class _Job:
    """A request to another thread to share work, and its outcome.

    `work` is a list with one function. The thread that pops it owns the job: a worker that starts
    it, or the caller that withdraws it.
    """

    __slots__ = ("done", "error", "finished", "flagged", "parts", "work")

    def __init__(self, work: Callable, parts: list) -> None:
        self.work = [work]
        self.parts = parts
        self.done = threading.Lock()
        self.done.acquire()
        self.finished = False
        self.flagged = False
        self.error: BaseException | None = None


def run_shared(work: Callable, parts: Sequence, helpers: int) -> None:
    """Calls `work(parts)` in this thread and up to `helpers` others, which share the parts.

    All of them have finished when it returns or raises.
    """
    helpers = min(helpers, len(parts) - 1)
    if helpers <= 0:
        work(iter(parts))
        return
    remaining = list(reversed(parts))
    submit = _job_queue().put
    jobs = [_Job(work, remaining) for _ in range(helpers)]
    for job in jobs:
        submit(job)
    try:
        work(_pop_all(remaining))
    finally:
        remaining.clear()
        started = [job for job in jobs if next(_pop_all(job.work), None) is None]
        _wait_for(started)
    for job in started:
        if job.error is not None:
            raise job.error
    if any([job.flagged for job in started]):
        floating_point_flags.set_flag()


def _wait_for(jobs: list[_Job]) -> None:
    """Waits until all jobs have finished. Only then raises Control-C, as jobs write to arrays."""
    interrupt: BaseException | None = None
    for job in jobs:
        while not job.finished:
            try:
                job.done.acquire()
            except BaseException as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt


def _pop_all(remaining: list) -> Iterator:
    while True:
        try:
            yield remaining.pop()
        except IndexError:
            return


_jobs: SimpleQueue | None = None


def _job_queue() -> SimpleQueue:
    """Returns the queue of jobs. Starts the worker threads on first use."""
    global _jobs
    if _jobs is None:
        from queue import SimpleQueue  # imported on first use

        _jobs = jobs = SimpleQueue()
        for i in range(max(1, processors() - 1)):
            name = f"retrograde-blocks_{i}"
            try:
                threading.Thread(target=_run_jobs, args=(jobs,), name=name, daemon=True).start()
            except RuntimeError:  # at interpreter shutdown
                break
    return _jobs


def _run_jobs(jobs: SimpleQueue) -> None:
    """Runs jobs, and reports whether a kernel set a floating-point exception flag."""
    flags = floating_point_flags.flags()
    context = quiet_context()
    while True:
        job = jobs.get()
        for work in _pop_all(job.work):
            before = flags.count
            try:
                context.run(work, _pop_all(job.parts))
            except BaseException as error:
                job.error = error
            job.flagged = flags.count != before
            del work  # drops references to arrays, which the caller may overwrite
            job.finished = True
            job.done.release()


def _reset_in_child() -> None:
    global _jobs
    _jobs = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)
