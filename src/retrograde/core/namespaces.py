"""Array namespaces: `numpy`, or the namespace of a foreign array, such as `jax.numpy`."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

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
_find_default: Callable[[], Any] | None = None
_default_device: Any = None


def register(array: Any) -> None:
    """Registers that a tensor is about to hold `array`."""
    global foreign, _admitted
    if not isinstance(array, _NUMPY) and hasattr(array, "__array_namespace__"):
        foreign = _admitted = True


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


_DEFAULT = object()

device_names: dict[Any, str] = {}  # TensorFlow's names of JAX devices, such as "GPU:0"


class _Scope(threading.local):
    device: Any = _DEFAULT
    evaluate: Callable | None = None  # replaces kernels


_scope = _Scope()


def involves_foreign(arrays: Iterable[Any]) -> bool:
    """Returns whether any of `arrays` is foreign, or operations do not run on NumPy.

    Only meaningful while `foreign` is true.
    """
    if _scope.evaluate is not None or current_device() is not None:
        return True
    return not all([isinstance(x, _ordinary) for x in arrays])


def treat_as_numpy(kind: type) -> None:
    """Makes `involves_foreign` treat objects of this type as NumPy arrays."""
    global _ordinary
    _ordinary = (*_ordinary, kind)


@contextlib.contextmanager
def device_scope(device: Any) -> Iterator[None]:
    """Makes operations run on a JAX device in a `with` block; `None` stands for NumPy."""
    global foreign, _admitted
    before = _scope.device
    _scope.device = device
    if device is not None:
        foreign = _admitted = True
    try:
        yield
    finally:
        _scope.device = before


@contextlib.contextmanager
def evaluate_with(evaluate: Callable) -> Iterator[None]:
    """Makes operations of this thread call `evaluate(primitive, arrays, attrs)` in a `with` block.

    They run the kernel if it returns `NotImplemented`.
    """
    before = _scope.evaluate
    with allow_batches(), device_scope(None):
        _scope.evaluate = evaluate
        try:
            yield
        finally:
            _scope.evaluate = before


def evaluator() -> Callable | None:
    """Returns the function that operations of this thread call in place of kernels, or `None`."""
    return _scope.evaluate


def on_host(function: Callable) -> Callable:
    """Returns `function`, extended to run operations with NumPy."""

    def run(*args: Any) -> Any:
        with device_scope(None):
            return function(*args)

    return run


def current_device() -> Any:
    """Returns the JAX device on which operations of this thread run, or `None` for NumPy."""
    device = _scope.device
    return default_device() if device is _DEFAULT else device


def default_device() -> Any:
    """Returns the JAX device on which operations run outside of device scopes, or `None`."""
    global foreign, _accelerated, _find_default, _default_device
    if _find_default is not None:
        find, _find_default = _find_default, None
        _default_device = find()
        _accelerated = _default_device is not None
        foreign = _admitted or _accelerated or _batches > 0
    return _default_device


def set_default_device(find: Callable[[], Any]) -> None:
    """Makes operations run on the device that `find()` returns. It is called on first use."""
    global foreign, _accelerated, _find_default
    _find_default = find
    foreign = _accelerated = True


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
