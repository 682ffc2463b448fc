"""Values on JAX's device: results of compiled programs, and copies of NumPy's arrays."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from retrograde.core.lazy import LazyTensor, Materializer
from retrograde.core.recorders import thread
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor


class DeviceArray(Materializer):
    """The result of a compiled program: its JAX array, which is copied to the host on first use.

    On the CPU, NumPy reads the same memory without a copy.
    """

    __slots__ = ("_host", "device_array")

    _host: Any  # is set when the value is first read

    def __init__(self, device_array: Any) -> None:
        self.device_array = device_array

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape, without a transfer from the device."""
        return self.device_array.shape

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """The dtype, without a transfer from the device."""
        return self.device_array.dtype

    @property
    def array(self) -> Any:
        """The array on the host; `None` before the first use."""
        return getattr(self, "_host", None)

    def materialize(self, tensor: LazyTensor) -> Any:  # noqa: ARG002
        """Returns the array on the host. The one on the device is kept for other programs."""
        try:
            return self._host
        except AttributeError:
            host = np.asarray(self.device_array)
            self._host = host if host.ndim else host[()]
            return self._host

    def numpy(self, tensor: LazyTensor) -> Any:
        """Returns a copy of the values, directly from the device if no recorder is active."""
        if thread.recorders:
            return super().numpy(tensor)
        array = np.array(self.device_array)
        return array if array.ndim else array[()]

    def view(self, tensor: LazyTensor, dtype: Any, copy: bool | None) -> np.ndarray:
        """Returns a read-only array, as JAX's are, directly if no recorder is active."""
        if copy or dtype is not None or thread.recorders:
            return super().view(tensor, dtype, copy)
        return np.asarray(self.device_array)


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
    """Returns the array that a program is given for `tensor`.

    A NumPy array that is used a second time stays on the device from then on, for as long as the
    tensor lives: copying it there takes longer than a small program.
    """
    device = tensor._device
    if device is not None:
        return device
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
    """Returns the shape and dtype of a tensor; `None` for anything else."""
    kind = type(x)
    if kind is not Tensor and kind is not LazyTensor:
        return None
    spec = x._spec
    return Spec(spec.shape, spec.dtype)


def on_device(value: Any, tensor_id: int | None = None) -> Tensor:
    """Returns a tensor for a program's result: a JAX array, or a NumPy array made by Python."""
    if isinstance(value, (np.ndarray, np.generic)):
        return Tensor(value, tensor_id)
    return LazyTensor(DeviceArray(value), tensor_id)
