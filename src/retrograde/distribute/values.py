"""Values that replicas have: one for each, or the same for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.values import nest
from retrograde.values.composites import CompositeTensor
from retrograde.values.specs import TypeSpec, spec_of


class DistributedValues(CompositeTensor):
    """The base of values that the replicas of this process have."""

    __slots__ = ("_values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)

    @property
    def values(self) -> tuple:
        """The values, in the order of the replicas."""
        return self._values

    def _components(self) -> tuple:
        return tuple([leaf for value in self._values for leaf in _tensors(value)])

    def _with_components(self, components: Iterator[Any]) -> DistributedValues:
        made = []
        for value in self._values:
            leaves = nest.leaves(value, expand_composites=True)
            new = [next(components) if isinstance(x, Tensor) else x for x in leaves]
            made.append(nest.pack(value, iter(new), expand_composites=True))
        return type(self)(made)

    @property
    def _type_spec(self) -> PerReplicaSpec:
        return PerReplicaSpec(*map(_spec, self._values))

    def __repr__(self) -> str:
        lines = [f"  {i}: {value!r}" for i, value in enumerate(self._values)]
        inner = ",\n".join(lines)
        return f"{type(self).__name__}:{{\n{inner}\n}}"


class PerReplicaSpec(TypeSpec):
    """Describes a value for each replica: their specs."""

    __slots__ = ("_specs",)

    def __init__(self, *value_specs: Any) -> None:
        self._specs = value_specs

    @property
    def value_type(self) -> type:
        """`PerReplica`."""
        return PerReplica

    def _serialize(self) -> tuple:
        return self._specs

    def __repr__(self) -> str:
        return f"PerReplicaSpec({', '.join(map(repr, self._specs))})"


def _spec(value: Any) -> Any:
    return nest.pack(value, iter([spec_of(leaf) or leaf for leaf in nest.leaves(value)]))


def _tensors(value: Any) -> list:
    leaves = nest.leaves(value, expand_composites=True)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


class PerReplica(DistributedValues):
    """A value for each replica."""


class Mirrored(DistributedValues):
    """The same value for all replicas."""


def value_of_replica(structure: Any, replica: int) -> Any:
    """Returns `structure` with only the values of one replica."""

    def select(leaf: Any) -> Any:
        return leaf.values[replica] if isinstance(leaf, DistributedValues) else leaf

    return nest.pack(structure, iter([select(leaf) for leaf in nest.leaves(structure)]))


def combine_replicas(structures: Sequence[Any]) -> Any:
    """Returns one structure with a `PerReplica` for the leaves of several, one of each replica."""
    first = structures[0]
    if len(structures) == 1:
        return first
    leaves = [list(nest.leaves(structure)) for structure in structures]
    rows = zip(*leaves, strict=True)
    return nest.pack(first, iter([_regroup(row) for row in rows]))


def _regroup(row: tuple) -> Any:
    if all(value is row[0] for value in row):
        return row[0]
    return PerReplica(row)


def local_results(value: Any) -> tuple:
    """Returns the values of the replicas of this process."""
    return value.values if isinstance(value, DistributedValues) else (value,)


def map_local(f: Callable, value: Any) -> Any:
    """Returns `f` of each local value, distributed as `value` is."""
    if isinstance(value, DistributedValues):
        return type(value)([f(x) for x in value.values])
    return f(value)
