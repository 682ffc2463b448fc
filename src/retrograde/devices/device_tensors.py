"""Tensors on JAX devices: results of compiled programs, and copies of NumPy arrays."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.apply import apply
from retrograde.core.lazy import LazyTensor, Materializer, alias
from retrograde.core.recorders import isolate, next_id, thread
from retrograde.core.rules import Spec
from retrograde.core.tensor import Tensor
from retrograde.core.variable_cell import writing
from retrograde.devices.scopes import device_scope
from retrograde.values.optional_jax import gather_from_processes, required_jax

_NUMPY = (np.ndarray, np.generic)

# As in TensorFlow, int32 values stay on the host, because most of them are shapes and indices.
_ON_HOST = frozenset((np.dtype(np.int32), np.dtype(object)))


class DeviceArray(Materializer):
    """The result of a compiled program: its JAX array, which is copied to the host on first use.

    On the CPU, NumPy reads the same memory without a copy.
    """

    __slots__ = ("_host", "device_array")

    _host: Any  # set when the value is first read

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
        """Returns the array on the host. The device array is kept for other programs."""
        try:
            return self._host
        except AttributeError:
            host = _to_host(self.device_array)
            self._host = host if host.ndim else host[()]
            return self._host

    def numpy(self, tensor: LazyTensor) -> Any:
        """Returns a copy of the values, directly from the device if no recorder is active."""
        if thread.recorders:
            return super().numpy(tensor)
        array = np.array(_to_host(self.device_array))
        return array if array.ndim else array[()]

    def view(self, tensor: LazyTensor, dtype: Any, copy: bool | None) -> np.ndarray:
        """Returns a read-only array, directly from the device if no recorder is active."""
        if copy or dtype is not None or thread.recorders:
            return super().view(tensor, dtype, copy)
        return _to_host(self.device_array)

    @property
    def accelerator(self) -> Any:
        """The accelerator that holds the array, or `None` if it is on the host."""
        if not namespaces.foreign or not on_accelerator(self.device_array):
            return None
        return min(self.device_array.devices(), key=lambda device: device.id)

    def replaced_by(self, value: Tensor, variable_id: int) -> Tensor:
        """Returns a tensor on the same device."""
        if self.accelerator is None:
            return super().replaced_by(value, variable_id)
        return put(value, self.device_array.sharding, variable_id)

    def update(self, variable: Any, primitive: Any, delta: Tensor) -> bool:
        """Updates a variable on the accelerator that holds it."""
        accelerator = self.accelerator
        if accelerator is None:
            return False
        with isolate(), writing, device_scope(accelerator):
            before = variable._current()
            y = apply(primitive, (before, put(delta, before._device.sharding)))
            variable._hold(alias(y, variable._id))
        return True


def _to_host(array: Any) -> np.ndarray:
    """Returns a JAX array as a NumPy array. Other processes may hold parts of it."""
    if getattr(array, "is_fully_addressable", True) or array.is_fully_replicated:
        return np.asarray(array)
    return gather_from_processes(array)


# Device copies, with their specs, of tensors with NumPy arrays that programs used at least twice.
# They are stored by the id of the tensor, while it is alive.
kept: dict[int, tuple[Any, Spec]] = {}
_used: dict[int, list] = {}  # a weak reference to each tensor that was used, and its array if kept


@functools.cache
def interned(spec: Spec) -> Spec:
    """Returns one object for all specs equal to `spec`, so that `is` compares them."""
    return spec


def device_array(tensor: Tensor) -> Any:
    """Returns the array of `tensor` as the argument of a compiled program.

    A NumPy array that is used a second time is kept on the device while the tensor is alive: the
    copy takes longer than a small program.
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
    _used[key].append(array)  # held, so that no variable writes into it
    device = put_on_device(array)
    kept[key] = device, interned(Spec(array.shape, array.dtype))
    return device


@functools.cache
def host_device() -> Any:
    """Returns the JAX device whose arrays NumPy reads without a copy."""
    return required_jax().local_devices(backend="cpu")[0]


def on_accelerator(array: Any) -> bool:
    """Returns whether `array` is a JAX array that is not on the host."""
    return not isinstance(array, _NUMPY) and host_device() not in array.devices()


def put(x: Tensor, device: Any, tensor_id: int | None = None) -> Tensor:
    """Returns a tensor with the value of `x` on `device`, a JAX device or a sharding.

    int32 values and strings that are on the host stay there, and so do batches and JAX arrays.
    """
    array = x._device
    if array is None or not on_accelerator(array):
        array = x._array
        if not isinstance(array, _NUMPY) or array.dtype in _ON_HOST:
            return Tensor(array, tensor_id)
    return on_device(put_on_device(array, device), tensor_id)


def put_on_device(array: Any, device: Any = None) -> Any:
    """Copies `array` to a JAX device; without `device`, to JAX's default device."""
    jax = required_jax()
    with jax.enable_x64(True):
        return jax.device_put(array, device)


def _forget(key: int) -> None:
    kept.pop(key, None)
    _used.pop(key, None)


def on_device(value: Any, tensor_id: int | None = None) -> Tensor:
    """Returns a tensor for the result of a program, a JAX array or a NumPy array."""
    if isinstance(value, _NUMPY):
        tensor = object.__new__(Tensor)  # without a call, as for the results of kernels
        tensor._array = value
        tensor._id = tensor_id or next_id()
        return tensor
    return LazyTensor(DeviceArray(value), tensor_id)
