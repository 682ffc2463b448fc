"""Variables whose arrays are laid out over the devices of a mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.lazy import LazyTensor
from retrograde.core.recorders import thread
from retrograde.core.variable import Variable
from retrograde.core.variable_cell import commit
from retrograde.devices.device_tensors import DeviceArray
from retrograde.devices.meshes import use_mesh
from retrograde.values.optional_jax import required_jax


class ShardedVariable(Variable):
    """A variable with a fixed layout: its array is a global JAX array.

    A value that is assigned gets the layout. Traced functions assign values without it until XLA
    compiles them, so `sharding` moves the array first if necessary.
    """

    __slots__ = ("layout",)

    layout: Any  # a `jax.sharding.Sharding`

    def __init__(self, initial_value: Any, layout: Any, **options: Any) -> None:
        super().__init__(initial_value, **options)
        self.layout = layout
        self._move()

    @property
    def sharding(self) -> Any:
        """The `jax.sharding.Sharding` of the array."""
        self._move()
        return self._current()._device.sharding

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable:
        """Assigns `value`, with the layout of the variable."""
        result = super().assign(value, use_locking, name, read_value)
        self._move()
        return result

    def _update(self, ufunc: Any, primitive: Any, delta: Any, how: str, read_value: bool) -> Any:
        result = super()._update(ufunc, primitive, delta, how, read_value)
        self._move()
        return result

    def _move(self) -> None:
        """Moves the array to the devices of the layout, unless it is there or is being traced."""
        if thread.recorders.tracer is not None:
            return
        while True:
            tensor = self._current()
            device = tensor._device
            if device is not None and device.sharding.is_equivalent_to(self.layout, device.ndim):
                return
            moved = LazyTensor(DeviceArray(global_array(tensor._array, self.layout)), self._id)
            if commit([self], [moved], [self], [tensor]):
                return


def global_array(array: Any, sharding: Any) -> Any:
    """Returns a global JAX array with the values of `array`, which is the same in all processes."""
    jax = required_jax()
    use_mesh(sharding)
    with jax.enable_x64(True):
        if isinstance(array, jax.Array) or jax.process_count() == 1:
            return jax.device_put(array, sharding)
        host = np.asarray(array)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])
