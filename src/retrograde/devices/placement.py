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

from retrograde.core.lazy import Materializer
from retrograde.core.program import Call, hashable
from retrograde.core.recorders import notify, thread
from retrograde.core.tensor import Tensor
from retrograde.devices.device_tensors import (
    device_array,
    host_device,
    on_device,
    put,
    put_on_device,
)
from retrograde.devices.scopes import compiles_all, current_device, is_elsewhere
from retrograde.values.errors import exhausted, is_out_of_memory
from retrograde.values.optional_jax import required_jax

# Most of these values are shapes, indices and conditions.
_SMALL = frozenset((np.dtype(np.int32), np.dtype(np.bool_)))

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


def place(x: Tensor, tensor_id: int | None = None) -> Tensor:
    """Returns a tensor with the value of `x`, on the current device."""
    device = current_device()
    if device is not None:
        return put(x, device, tensor_id)
    return x if tensor_id is None else Tensor(x._array, tensor_id)


def apply_on_device(primitive: Any, inputs: tuple[Tensor, ...], attrs: dict) -> Any:
    """Applies `primitive` on the current device, and notifies the recorders.

    Returns `None` if the call has to run on the host: on strings, on small integers, on a batch, or
    if the primitive cannot be compiled. The host then also raises the errors for invalid inputs.
    """
    if current_device() is None or _runs_on_host(primitive, inputs):
        return None
    kernel = _compiled(primitive, attrs)
    try:
        value = run(kernel, [device_array(x) for x in inputs])
    except Exception as error:
        if is_out_of_memory(error):
            raise exhausted(error, primitive.name) from None
        return None
    y = tuple(map(on_device, value)) if primitive.outputs else on_device(value)
    notify(thread.recorders, primitive, inputs, attrs, y)
    return y


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


def compiles(steps: Iterable[Any], specs: Sequence[Any]) -> bool:
    """Returns whether XLA compiles a function of these steps, because it runs on a device."""
    return compiles_all() and not any(
        call.primitive.name in _CHECKS or any([specs[n].dtype.kind == "O" for n in call.inputs])
        for call in steps
        if type(call) is Call and hasattr(call.primitive, "kernel")
    )


def current_device_scope() -> contextlib.AbstractContextManager:
    """Returns a context in which JAX runs programs on the current device."""
    if not is_elsewhere():
        return contextlib.nullcontext()
    return required_jax().default_device(current_device() or host_device())


def gather(arrays: Sequence[Any]) -> list:
    """Returns `arrays`, with JAX arrays copied to the current device."""
    device = current_device() or host_device()
    return [
        x
        if isinstance(x, (np.ndarray, np.generic)) or device in x.devices()
        else put_on_device(x, device)
        for x in arrays
    ]
