"""Placement: operations that run on a JAX device, and tensors that live there.

A tensor on a device is a `LazyTensor` with a `DeviceArray`, which is copied to the host only if
Python or NumPy reads it. Each primitive is compiled once for each combination of attributes, and
`jax.jit` adds one program for each combination of shapes and dtypes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from retrograde.core import namespaces
from retrograde.core.device_tensors import DeviceArray, device_array, on_device, put_on_device
from retrograde.core.lazy import LazyTensor, Materializer
from retrograde.core.program import Call, hashable
from retrograde.core.tensor import Tensor, wrap
from retrograde.values.errors import exhausted, is_out_of_memory
from retrograde.values.optional_jax import required_jax

# As in TensorFlow, int32 values stay on the host, because most of them are shapes and indices.
_INT32 = np.dtype(np.int32)
_SMALL = frozenset((_INT32, np.dtype(np.bool_)))

# Primitives whose results are large even if their inputs are small integers
_EXPANDING = frozenset(
    (
        "cast",
        "one_hot",
        "random_uniform",
        "random_normal",
        "random_truncated_normal",
        "random_integers",
    )
)

# Primitives that raise errors that depend on values, which compiled code cannot do
_CHECKS = frozenset(("check_numerics", "check_range"))

_MOST_KERNELS = 4096
_kernels: dict[tuple, Callable] = {}


def device_of(tensor: Tensor) -> Any:
    """Returns the accelerator that holds the value of `tensor`, or `None` if it is on the host."""
    array = tensor._device
    if array is None or not namespaces.foreign:
        return None
    devices = array.devices()
    return None if host_device() in devices else min(devices, key=lambda device: device.id)


@functools.cache
def host_device() -> Any:
    """Returns the JAX device whose arrays NumPy reads without a copy."""
    return required_jax().local_devices(backend="cpu")[0]


def place(array: Any, tensor_id: int | None = None) -> Tensor:
    """Returns a tensor with the value `array`, on the current device."""
    device = namespaces.current_device() if namespaces.foreign else None
    return Tensor(array, tensor_id) if device is None else put(array, device, tensor_id)


def put(array: Any, device: Any, tensor_id: int | None = None) -> Tensor:
    """Returns a tensor with the value `array` on `device`, a JAX device or a sharding.

    int32 values and strings that are on the host stay there.
    """
    if isinstance(array, DeviceArray):
        array = array.device_array
    elif not isinstance(array, (np.ndarray, np.generic)):  # a batch, or an array of JAX
        return Tensor(array, tensor_id)
    if array.dtype.kind == "O" or (array.dtype == _INT32 and not on_accelerator(array)):
        return Tensor(array, tensor_id)
    return on_device(put_on_device(array, device), tensor_id)


def on_accelerator(array: Any) -> bool:
    """Returns whether `array` is a JAX array that is not on the host."""
    return not isinstance(array, (np.ndarray, np.generic)) and host_device() not in array.devices()


def alias(x: Tensor, tensor_id: int | None = None) -> Tensor:
    """Returns another tensor with the value of `x`, which stays where it is."""
    if x._device is not None:
        return LazyTensor(x._spec, tensor_id)
    return wrap(x._array) if tensor_id is None else Tensor(x._array, tensor_id)


def value_of(x: Tensor) -> Any:
    """Returns the array of `x`, or the `DeviceArray` if it is on an accelerator."""
    return x._array if device_of(x) is None else x._spec


def move_like(value: Any, before: Tensor, tensor_id: int) -> Tensor:
    """Returns a tensor with `value`, an array or a `DeviceArray`, on the device of `before`."""
    if device_of(before) is not None:
        return put(value, before._device.sharding, tensor_id)
    array = LazyTensor(value)._array if isinstance(value, DeviceArray) else value
    return Tensor(array, tensor_id)


def compute(primitive: Any, inputs: tuple[Tensor, ...], attrs: dict) -> Any:
    """Applies `primitive` on the current device. Returns a tensor or a tuple of tensors.

    Returns `None` if the call has to run on the host: on strings, on small integers, on a batch, or
    if the primitive cannot be compiled. The host then also raises the errors for invalid inputs.
    """
    if namespaces.current_device() is None or _runs_on_host(primitive, inputs):
        return None
    kernel = _compiled(primitive, attrs)
    try:
        value = run(kernel, [device_array(x) for x in inputs])
    except Exception as error:
        if is_out_of_memory(error):
            raise exhausted(error, primitive.name) from None
        return None
    return tuple(map(on_device, value)) if primitive.outputs else on_device(value)


def _runs_on_host(primitive: Any, inputs: tuple[Tensor, ...]) -> bool:
    small, accepts = primitive.name not in _EXPANDING, primitive.accepts
    dtype = inputs[0]._spec.dtype
    for x in inputs:
        spec = x._spec
        if accepts is not None and (spec.dtype != dtype or dtype not in accepts):
            return True  # which raises the error
        if not isinstance(spec, (np.ndarray, np.generic, Materializer)) or spec.dtype.kind == "O":
            return True
        small = small and spec.dtype in _SMALL and x._device is None
    return small or not primitive.pure or primitive.name in _CHECKS


def _compiled(primitive: Any, attrs: dict) -> Callable:
    """Returns the kernel of `primitive`, compiled for these attributes."""
    key = (primitive, hashable(attrs))
    if key in _kernels:
        return _kernels[key]
    jax = required_jax()
    kernel = functools.partial(primitive.kernel, jax.numpy, **attrs)
    if key[1] is None:
        return kernel
    if len(_kernels) >= _MOST_KERNELS:
        _kernels.clear()
    return _kernels.setdefault(key, jax.jit(kernel))


def run(program: Callable, arrays: Sequence[Any]) -> Any:
    """Runs a program on the current device, with 64-bit types enabled."""
    with required_jax().enable_x64(True), current_device_scope():
        return program(*gather(arrays))


def compiles_all() -> bool:
    """Returns whether XLA compiles every function, because operations run on a device."""
    return bool(namespaces.foreign) and namespaces.current_device() is not None


def compiles(steps: Iterable[Any], specs: Sequence[Any]) -> bool:
    """Returns whether XLA compiles a function of these steps, because it runs on a device."""
    return compiles_all() and not any(
        call.primitive.name in _CHECKS or any([specs[n].dtype.kind == "O" for n in call.inputs])
        for call in steps
        if type(call) is Call and hasattr(call.primitive, "kernel")
    )


def is_elsewhere() -> bool:
    """Returns whether the current device is not the one on which JAX runs programs by default."""
    return namespaces.current_device() is not namespaces.default_device()


def current_device_scope() -> contextlib.AbstractContextManager:
    """Returns a context in which JAX runs programs on the current device."""
    if not is_elsewhere():
        return contextlib.nullcontext()
    return required_jax().default_device(namespaces.current_device() or host_device())


def gather(arrays: Sequence[Any]) -> list:
    """Returns `arrays`, with JAX arrays copied to the current device."""
    device = namespaces.current_device() or host_device()
    return [
        x
        if isinstance(x, (np.ndarray, np.generic)) or device in x.devices()
        else put_on_device(x, device)
        for x in arrays
    ]
