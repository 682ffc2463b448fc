"""SPMD programs: one program for all replicas, which XLA runs on the devices of a mesh."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.device_tensors import required_jax
from retrograde.core.tensor import Tensor
from retrograde.ops import collectives
from retrograde.program.donation import Donation
from retrograde.program.meshes import use_mesh
from retrograde.program.replica_merging import Location, ReplicaProgram
from retrograde.program.xla import CompiledProgram

AXIS = "replica"


class SpmdProgram(CompiledProgram):
    """A program that every device of a mesh runs on the values of its replica.

    Common values are replicated. Varying ones are global arrays that have the values of the
    replicas along their first axis. `places` are those of the variables that are written.
    """

    def __init__(self, merged: ReplicaProgram, variables: list[Any], places: Sequence[int]) -> None:
        jax = required_jax()
        self._merged = merged
        self._places = list(places)
        self._mesh = jax.sharding.Mesh(np.array(merged.devices), (AXIS,))
        spec = jax.sharding.PartitionSpec
        self._specs_of = {False: spec(), True: spec(AXIS)}
        self._replicated = jax.sharding.NamedSharding(self._mesh, spec())
        self._divided = jax.sharding.NamedSharding(self._mesh, spec(AXIS))
        use_mesh(self._replicated)
        self._cache = _ReplicatedTensors(lambda x: self._replicate(x))
        super().__init__(merged.program, variables, None)

    @property
    def makes_all(self) -> bool:
        """False: arguments of replicas have to be joined before a call."""
        return False

    def _put(self, array: Any) -> Any:
        return self._replicate(array)

    def _replicate(self, array: Any) -> Any:
        with self._jax.enable_x64(True):
            return self._jax.device_put(array, self._replicated)

    def _function(self) -> Callable:
        """Returns the function to compile: `_compute`, on each device."""
        varying = self._merged.varying
        return self._jax.shard_map(
            self._compute_replica,
            mesh=self._mesh,
            in_specs=tuple([self._specs_of[n in varying] for n in self._arguments]),
            out_specs=[self._specs_of[n in varying] for n in self.outputs],
            check_vma=False,  # values are common or varying by construction
        )

    def _compute_replica(self, *arrays: Any) -> list:
        varying, specs = self._merged.varying, self._specs
        pairs = zip(self._arguments, arrays, strict=True)
        local = [x.reshape(specs[n].shape) if n in varying else x for n, x in pairs]
        with collectives.spmd_axis(AXIS):
            made = self._compute(*local)
        pairs = zip(self.outputs, made, strict=True)
        return [x.reshape(1) if n in varying and not x.ndim else x for n, x in pairs]

    def _shaped(self, number: int) -> Any:
        shape, dtype = self._specs[number]
        if number not in self._merged.varying:
            return self._jax.ShapeDtypeStruct(shape, dtype, sharding=self._replicated)
        shape = self._global_shape(shape)
        return self._jax.ShapeDtypeStruct(shape, dtype, sharding=self._divided)

    def _global_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        first, *others = shape or (1,)
        return (first * len(self._merged.devices), *others)

    def run(self, tensors: Sequence[Any], log: Any, donation: Donation | None) -> Any:
        """Returns the values of the results and the writes, or the guard that failed."""
        del donation  # no buffers are donated
        merged, program = self._merged, self._program
        given = program.arguments[: len(tensors)]
        values = {n: _array(x) for n, x in zip(given, tensors, strict=True)}
        for place, entry in self._before:
            divergence = self._run_before(place, entry, values, log)
            if divergence is not None:
                return divergence
        if self.outputs:
            by_number = dict(zip(given, tensors, strict=True))
            with self._jax.enable_x64(True):
                for n, numbers in merged.groups.items():
                    if n in self.parameters:
                        values[n] = self._joined([self._value(m, values) for m in numbers])
            arrays = [
                self._cache[by_number[n]] if n in by_number else values[n] for n in self.parameters
            ]
            made = self._made((*arrays, *self.large), None)
            values.update(zip(self.outputs, made, strict=True))
        results = [self._at(location, values) for location in merged.results]
        return results, [self._at(merged.writes[place], values) for place in self._places]

    def _joined(self, parts: list[Any]) -> Any:
        """Returns the arrays of all replicas as one global array."""
        arrays = [np.atleast_1d(np.asarray(part)) for part in parts]
        shape = self._global_shape(arrays[0].shape)
        devices = self._mesh.devices.tolist()
        local = [self._jax.device_put(x, d) for x, d in zip(arrays, devices, strict=True)]
        return self._jax.make_array_from_single_device_arrays(shape, self._divided, local)

    def _at(self, location: Location, values: dict) -> Any:
        """Returns a result: a replicated array, or the array of one replica on the host."""
        array = self._value(location.number, values)
        if location.number in self._merged.varying:
            spec = self._specs[location.number]
            device = self._merged.devices[location.replica or 0]
            part = next(s.data for s in array.addressable_shards if s.device == device)
            array = np.asarray(part).reshape(spec.shape)
            return array if array.ndim else array[()]
        return array


def _array(tensor: Tensor) -> Any:
    device = tensor._device
    return tensor._array if device is None else device


class _ReplicatedTensors:
    """Replicated arrays of tensors, while they are alive: moving them takes longer than a step."""

    def __init__(self, replicate: Callable[[Any], Any]) -> None:
        self._replicate = replicate
        self._known: dict[int, tuple[Any, Any, Any]] = {}

    def __getitem__(self, tensor: Tensor) -> Any:
        device = tensor._device
        if device is not None:
            return self._replicate(device)  # returns the same array if it is replicated
        key = id(tensor)
        if key not in self._known:
            array, known = tensor._array, self._known
            reference = weakref.ref(tensor, lambda _: known.pop(key, None))
            # The NumPy array is held, so that no variable writes into it.
            known[key] = reference, array, self._replicate(array)
        return self._known[key][2]
