"""Tensors on JAX's device, and how those of NumPy get there."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.recorders import thread
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor, device_name, next_id

namespaces.take_for_numpy(Spec)  # eager operations read compiled results with NumPy


class OnDevice(Tensor):
    """A tensor that a compiled program made. NumPy sees it without a copy, once it is looked at."""

    __slots__ = ("_device", "_host")

    def __init__(self, device: Any, tensor_id: int | None = None) -> None:
        self._device = device
        self._host: Any = None
        self._id = tensor_id or next_id()

    @property
    def _array(self) -> Any:
        if self._host is None:
            host = np.asarray(self._device)
            self._host = host if host.ndim else host[()]
        return self._host

    @property
    def _form(self) -> Any:
        """Shape and dtype, without a transfer from the device."""
        device = self._device
        return Spec(device.shape, device.dtype) if self._host is None else self._host

    @property
    def device(self) -> str:
        """The device that holds the array, in TensorFlow's notation."""
        return device_name(self._device)

    def numpy(self) -> Any:
        """A copy of the values, as of any tensor; by the short way if nobody listens."""
        if thread.recorders:
            return super().numpy()
        array = np.array(self._device)
        return array if array.ndim else array[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """What any tensor gives, by the short way if nobody listens: JAX's arrays are read-only."""
        if copy or dtype is not None or thread.recorders:
            return super().__array__(dtype, copy)
        return np.asarray(self._device)

    def __reduce__(self) -> tuple:
        return Tensor, (np.array(self._array),)


def required_jax() -> Any:
    """The module `jax`, or an error that says how to get it."""
    try:
        import jax
    except ImportError:
        raise ImportError(
            "function(jit_compile=True) compiles with XLA, for which JAX is needed. Install it "
            "with: pip install 'retrograde[xla]'."
        ) from None
    return jax


# By the ids of tensors of NumPy's that programs used, for as long as these live: the arrays on the
# device of those that were used twice, with their specs; and references to all of them, with the
# arrays of those.
kept: dict[int, tuple[Any, Spec]] = {}
_used: dict[int, list] = {}


@functools.cache
def only(spec: Spec) -> Spec:
    """The one of all specs equal to `spec` that is compared by identity."""
    return spec


def device_array(tensor: Tensor) -> Any:
    """What a program gets for `tensor`.

    One of NumPy's that is used a second time stays on the device from then on, for as long as the
    tensor lives: copying it there takes longer than a small program.
    """
    if type(tensor) is OnDevice:
        return tensor._device
    key, array = id(tensor), tensor._array
    if key in kept:
        return kept[key][0]
    if key not in _used:
        _used[key] = [weakref.ref(tensor, lambda _: _forget(key))]
        return array
    _used[key].append(array)  # is held, so that no variable writes into it
    jax = required_jax()
    with jax.enable_x64(True):
        device = jax.device_put(array)
    kept[key] = device, only(Spec(array.shape, array.dtype))
    return device


def _forget(key: int) -> None:
    kept.pop(key, None)
    _used.pop(key, None)


def spec_of_argument(x: Any) -> Spec | None:
    """The shape and dtype of a tensor; `None` for all else."""
    if type(x) is OnDevice:
        return Spec(x._device.shape, x._device.dtype)
    return Spec(x._array.shape, x._array.dtype) if type(x) is Tensor else None


def on_device(value: Any, tensor_id: int | None = None) -> Tensor:
    """A tensor around what a program gave: an array of JAX's, or one that Python had made."""
    if isinstance(value, (np.ndarray, np.generic)):
        return Tensor(value, tensor_id)
    return OnDevice(value, tensor_id)
