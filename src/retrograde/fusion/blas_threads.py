"""Matrix products that stay fast when other processes use the same cores.

OpenBLAS threads wait for each other at every product. If another process occupies a core, they wait
until the scheduler runs the preempted thread again. For a product of less than a millisecond, that
is many times its own time. So small products use one BLAS thread. Large stacks of matrices are
shared by our own threads: each takes the next matrices when it is scheduled.

The choice depends on shapes only, so neither the number of threads nor the load changes a result.
The number of BLAS threads is a process-wide setting. It is changed during a product and then
restored, because the program may use NumPy as well.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from threading import get_ident
from typing import NamedTuple

import numpy as np

from retrograde.fusion import blocks
from retrograde.values.locks import fork_safe_lock
from retrograde.values.thresholds import (
    MAX_CAPPED_WORK,
    MAX_SINGLE_THREADED_WORK,
    MIN_SHARED_STACK_WORK,
    STACK_SHARE_WORK,
)


def dot(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Returns the product of two matrices."""
    if MAX_SINGLE_THREADED_WORK < a.size * b.shape[1] <= MAX_CAPPED_WORK:
        with ONE_THREAD:
            return a.dot(b) if out is None else np.matmul(a, b, out=out)
    return a.dot(b) if out is None else np.matmul(a, b, out=out)


def matmul_stacks(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the products of the matrices in two stacks, whose leading axes broadcast."""
    each = a.shape[-2] * a.shape[-1] * b.shape[-1]
    if each <= MAX_SINGLE_THREADED_WORK // 8 or each > MAX_CAPPED_WORK:
        return np.matmul(a, b)
    with ONE_THREAD:
        y = _shared_products(a, b, each) if a.shape[:-2] == b.shape[:-2] else None
        return np.matmul(a, b) if y is None else y


def _shared_products(a: np.ndarray, b: np.ndarray, each: int) -> np.ndarray | None:
    """Computes `matmul_stacks` with threads; `None` if the stack is too small or not contiguous."""
    if a.size * b.shape[-1] < MIN_SHARED_STACK_WORK:
        return None
    y = np.empty((*a.shape[:-1], b.shape[-1]), np.result_type(a, b))
    first, second, products = (x.reshape(-1, *x.shape[-2:]) for x in (a, b, y))
    if not (np.may_share_memory(first, a) and np.may_share_memory(second, b)):
        return None
    step = max(1, STACK_SHARE_WORK // each)

    def work(parts: Iterator[int]) -> None:
        for i in parts:
            np.matmul(first[i : i + step], second[i : i + step], out=products[i : i + step])

    blocks.run_shared(work, range(0, len(first), step), blocks.threads() - 1)
    return y


# The number of BLAS threads


class _Library(NamedTuple):
    """The functions that read and set the number of threads of NumPy's BLAS library."""

    get: Callable[[], int]
    set: Callable[[int], None]


@cache
def _library() -> _Library | None:
    """Returns the OpenBLAS that NumPy has loaded; `None` if it uses another library."""
    from threadpoolctl import ThreadpoolController  # takes 10 ms, once

    for library in ThreadpoolController().lib_controllers:
        if library.internal_api == "openblas" and "numpy" in library.filepath:
            dynamic = ctypes.PyDLL(library.filepath)  # holds the GIL: the functions return at once
            for affixes in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
                prefix, suffix = affixes
                get = getattr(dynamic, f"{prefix}openblas_get_num_threads{suffix}", None)
                put = getattr(dynamic, f"{prefix}openblas_set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    return _Library(get, put)
    return None


class _OneThread:
    """A context in which BLAS uses one thread. The last thread to leave it restores the setting.

    Contexts are tracked by thread and do not nest. So if Control-C prevents an exit, the next
    product of that thread corrects it.
    """

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._threads: set[int] = set()  # threads in the context
        self._replaced = 0  # the setting to restore, if there is one

    def __enter__(self) -> None:
        library = _library()
        if library is None:
            return
        with self._lock:
            self._threads.add(get_ident())
            if not self._replaced:
                count = library.get()
                if count > 1:
                    self._replaced = count
                    library.set(1)

    def __exit__(self, *_: object) -> None:
        library = _library()
        if library is None:
            return
        with self._lock:
            self._threads.discard(get_ident())
            if self._replaced and not self._threads:
                if library.get() == 1:  # else the program has changed the setting meanwhile
                    library.set(self._replaced)
                self._replaced = 0


ONE_THREAD = _OneThread()
