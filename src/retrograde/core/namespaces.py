"""Array namespaces: `numpy`, or the namespace of a foreign array, such as `jax.numpy`."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from retrograde.core.hooks import hook
from retrograde.values.locks import fork_safe_lock

# Whether any tensor has ever held an array that is not a NumPy array, or may hold a batch now, or
# operations may run on a device. Only then do operations check whether their inputs are foreign,
# with `involves_foreign`.
foreign = False

_NUMPY = (np.ndarray, np.generic)
_ordinary: tuple[type, ...] = _NUMPY  # and types that represent NumPy arrays
_lock = fork_safe_lock()
_batches = 0  # blocks in which batches are expected, in all threads
_admitted = False
_accelerated = False  # whether operations run on an accelerator by default, or may do so


def register(array: Any) -> None:
    """Registers that a tensor is about to hold `array`."""
    if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
        admit()


def admit() -> None:
    """Registers that tensors may hold foreign arrays from now on."""
    global foreign, _admitted
    foreign = _admitted = True


def expect_devices(expected: bool) -> None:
    """Sets whether operations run on an accelerator by default, or may do so."""
    global _accelerated
    _accelerated = expected
    _count_batches(0)


@contextlib.contextmanager
def allow_batches() -> Iterator[None]:
    """Allows tensors to hold batches in a `with` block."""
    _count_batches(1)
    try:
        yield
    finally:
        _count_batches(-1)


def _count_batches(step: int) -> None:
    global foreign, _batches
    with _lock:
        _batches += step
        foreign = _admitted or _accelerated or _batches > 0


@contextlib.contextmanager
def temporary_foreign_arrays() -> Iterator[None]:
    """Allows tensors to hold foreign arrays in a `with` block, none of which outlives the block."""
    global foreign, _admitted
    before = _admitted
    with allow_batches():
        try:
            yield
        finally:
            _admitted = before


def batches_are_allowed() -> bool:
    """Returns whether any thread is in a block of `allow_batches`."""
    return _batches > 0


class _Scope(threading.local):
    evaluate: Callable | None = None  # replaces kernels


_scope = _Scope()


def involves_foreign(arrays: Iterable[Any]) -> bool:
    """Returns whether any of `arrays` is foreign, or operations do not run on NumPy.

    Only meaningful while `foreign` is true.
    """
    if _scope.evaluate is not None or hook("current_device")() is not None:
        return True
    return not all([isinstance(x, _ordinary) for x in arrays])


def treat_as_numpy(kind: type) -> None:
    """Makes `involves_foreign` treat objects of this type as NumPy arrays."""
    global _ordinary
    _ordinary = (*_ordinary, kind)


@contextlib.contextmanager
def evaluate_with(evaluate: Callable) -> Iterator[None]:
    """Makes operations of this thread call `evaluate(primitive, arrays, attrs)` in a `with` block.

    They run the kernel if it returns `NotImplemented`.
    """
    before = _scope.evaluate
    with allow_batches(), hook("device_scope")(None):
        _scope.evaluate = evaluate
        try:
            yield
        finally:
            _scope.evaluate = before


def evaluator() -> Callable | None:
    """Returns the function that operations of this thread call in place of kernels, or `None`."""
    return _scope.evaluate


def run(kernel: Any, arrays: Sequence[Any], attrs: dict) -> Any:
    """Runs a kernel on arrays some of which are JAX arrays, with 64-bit types enabled."""
    jax = sys.modules["jax"]  # imported by the code that created the arrays
    with jax.enable_x64(True):
        return kernel(namespace_of(arrays), *arrays, **attrs)


def namespace_of(arrays: Iterable[Any]) -> ModuleType:
    """Returns `numpy` if all `arrays` are NumPy arrays, else the namespace of the first other."""
    for array in arrays:
        if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
            return array.__array_namespace__()
    return np
