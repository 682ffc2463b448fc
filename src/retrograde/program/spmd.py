"""SPMD programs: one program for all replicas, which XLA runs on the devices of a mesh."""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.program import Program
from retrograde.core.tensor import Tensor
from retrograde.devices.meshes import use_mesh
from retrograde.ops import collectives
from retrograde.program.donation import Donation
from retrograde.program.interpreter import Divergence
from retrograde.program.replica_merging import Location, ReplicaProgram
from retrograde.program.xla import CompiledProgram
from retrograde.values.optional_jax import required_jax

AXIS = "replica"


class MeshProgram(CompiledProgram):
    """A program that every device of a mesh runs on its own values.

    Divided values are global arrays, which have the values of all devices along their first axis.
    The others are the same on all devices.
    """

    def __init__(self, program: Program, variables: list[Any], mesh: Any) -> None:
        sharding = required_jax().sharding
        self._mesh = mesh
        self._replicated = sharding.NamedSharding(mesh, sharding.PartitionSpec())
        self._divided = sharding.NamedSharding(mesh, sharding.PartitionSpec(AXIS))
        use_mesh(self._divided)
        super().__init__(program, variables, None)

    @property
    def computes_all_results(self) -> bool:
        """False: a call has to create global arrays, or to compare programs."""
        return False

    def _is_divided(self, number: int) -> bool:
        raise NotImplementedError

    def _sharding(self, number: int) -> Any:
        return self._divided if self._is_divided(number) else self._replicated

    def _function(self) -> Callable:
        """Returns the function to compile: `_compute`, on each device."""
        return self._jax.shard_map(
            self._compute_part,
            mesh=self._mesh,
            in_specs=tuple([self._sharding(n).spec for n in self._arguments]),
            out_specs=[self._sharding(n).spec for n in self.outputs],
            check_vma=False,  # values are divided or not by construction
        )

    def _compute_part(self, *arrays: Any) -> list:
        pairs = zip(self._arguments, arrays, strict=True)
        local_arrays = [x.reshape(self._specs[n].shape) for n, x in pairs]
        with collectives.spmd_axis(AXIS):
            outputs = self._compute(*local_arrays)
        pairs = zip(self.outputs, outputs, strict=True)
        return [x.reshape(1) if self._is_divided(n) and not x.ndim else x for n, x in pairs]

    def _shaped(self, number: int) -> Any:
        shape, dtype = self._specs[number]
        shape = self._global_shape(shape) if self._is_divided(number) else shape
        return self._jax.ShapeDtypeStruct(shape, dtype, sharding=self._sharding(number))

    def _global_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        first, *other_sizes = shape or (1,)
        return (first * self._mesh.size, *other_sizes)

    def _argument(self, tensor: Tensor) -> Any:
        return tensor._array if tensor._device is None else tensor._device


class SpmdProgram(MeshProgram):
    """A program that every device of a mesh runs on the values of its replica.

    Varying values are divided, and common ones replicated. `places` are the indices of the written
    variables.
    """

    def __init__(self, merged: ReplicaProgram, variables: list[Any], places: Sequence[int]) -> None:
        self._merged = merged
        self._places = list(places)
        self._cache = _ReplicatedTensors(lambda x: self._put(x))
        mesh = required_jax().sharding.Mesh(np.array(merged.devices), (AXIS,))
        super().__init__(merged.program, variables, mesh)

    def _is_divided(self, number: int) -> bool:
        return number in self._merged.varying

    def _put(self, array: Any) -> Any:
        with self._jax.enable_x64(True):
            return self._jax.device_put(array, self._replicated)

    def run(self, tensors: Sequence[Any], log: Any, donation: Donation | None) -> Any:
        """Returns the values of the results and the writes, or the guard that failed."""
        del donation  # no buffers are donated
        merged, values = self._merged, self._known_values(tensors, log)
        if type(values) is Divergence:
            return values
        if self.outputs:
            by_number = dict(zip(self._program.arguments, tensors, strict=False))
            with self._jax.enable_x64(True):
                for n, numbers in merged.groups.items():
                    if n in self.parameters:
                        values[n] = self._join([self._value(m, values) for m in numbers])
            arrays = [
                self._cache[by_number[n]] if n in by_number else values[n] for n in self.parameters
            ]
            outputs = self._made((*arrays, *self.large), None)
            values.update(zip(self.outputs, outputs, strict=True))
        results = [self._at(location, values) for location in merged.results]
        return results, [self._at(merged.writes[place], values) for place in self._places]

    def _join(self, parts: list[Any]) -> Any:
        """Returns the arrays of all replicas as one global array."""
        arrays = [np.atleast_1d(np.asarray(part)) for part in parts]
        shape = self._global_shape(arrays[0].shape)
        devices = self._mesh.devices.tolist()
        local_arrays = [self._jax.device_put(x, d) for x, d in zip(arrays, devices, strict=True)]
        return self._jax.make_array_from_single_device_arrays(shape, self._divided, local_arrays)

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


class WorkerProgram(MeshProgram):
    """A program that every worker runs on its own values, and that exchanges values with others.

    All values are divided, variables included. The workers compare the programs before each call:
    one of them may have a batch of another shape.
    """

    def __init__(self, program: Program, variables: list[Any]) -> None:
        self._group = collectives.current_group()
        self._id = _fingerprint(program)
        super().__init__(program, variables, self._group.mesh)
        self._count = sum(isinstance(c.primitive, collectives.Collective) for c in self._calls)

    def _is_divided(self, number: int) -> bool:  # noqa: ARG002
        return True

    def _put(self, array: Any) -> Any:
        """Returns the global array whose part in this worker is `array`."""
        jax = self._jax
        shape = array.shape or (1,)
        with jax.enable_x64(True):
            if not isinstance(array, jax.Array) or array.device != self._group.device:
                array = jax.device_put(np.asarray(array).reshape(shape), self._group.device)
            shape = self._global_shape(shape)
            return jax.make_array_from_single_device_arrays(shape, self._divided, [array])

    def run(self, tensors: Sequence[Any], log: Any, donation: Donation | None) -> Any:
        """Returns the values of the results and the writes; `None` if workers disagree."""
        del donation  # no buffers are donated
        if not collectives.announce(log, self._id):
            return None
        log.rewind()  # the call may have run with NumPy before
        values = self._known_values(tensors, log)
        arrays = (*[self._put(values[n]) for n in self.parameters], *self.large)
        outputs = self._group.run_program(lambda: self._made(arrays, None), self._count)
        for n, array in zip(self.outputs, outputs, strict=True):
            (part,) = [shard.data for shard in array.addressable_shards]
            values[n] = part if self._specs[n].shape else np.asarray(part)[0]
        return self._outcome(values)


def _fingerprint(program: Program) -> int:
    """Returns a positive number that is the same for equal programs with equal constants."""
    checksum = zlib.crc32(str(program).encode())
    for n, x in program.constants.items():
        checksum = zlib.crc32(f"{n} {x.dtype} {x.shape}".encode(), checksum)
        if x.dtype.kind != "O":
            checksum = zlib.crc32(np.ascontiguousarray(x).tobytes(), checksum)
    return (checksum & 0x3FFFFFFF) + 1


class _ReplicatedTensors:
    """Replicated arrays of tensors, while they are alive: moving them takes longer than a step."""

    def __init__(self, replicate: Callable[[Any], Any]) -> None:
        self._replicate = replicate
        self._cache: dict[int, tuple[Any, Any, Any]] = {}

    def __getitem__(self, tensor: Tensor) -> Any:
        device = tensor._device
        if device is not None:
            return self._replicate(device)  # returns the same array if it is replicated
        key = id(tensor)
        if key not in self._cache:
            array, cache = tensor._array, self._cache
            reference = weakref.ref(tensor, lambda _: cache.pop(key, None))
            # The NumPy array is held, so that no variable writes into it.
            cache[key] = reference, array, self._replicate(array)
        return self._cache[key][2]
