"""The base class of `Dataset` and functions that its parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.data import _nodes
from retrograde.data._elements import call
from retrograde.data.options import Options
from retrograde.ops.arguments import integer
from retrograde.values.arguments import expect
from retrograde.values.composites import CompositeTensor


class BaseDataset(CompositeTensor):
    """A node and options. Methods create new datasets with `Dataset._from_node`."""

    _instead = "Iterate over it to get its elements."

    def __init__(self, node: _nodes.Node, options: Options | None = None) -> None:
        self._node = node
        self._options = options or Options()

    @staticmethod
    def _from_node(node: _nodes.Node, options: Options | None = None) -> Any:
        raise NotImplementedError

    def _derive(self, node: _nodes.Node) -> Any:
        """Returns a dataset of `node` with the options of this one."""
        return self._from_node(node, self._options)

    def _transform(self, make: Callable, name: str, **options: Any) -> Any:
        return self._derive(_nodes.Transform(self._node, make, name, **options))

    def _components(self) -> Sequence[Tensor]:
        return ()

    def _with_components(self, components: Iterator[Any]) -> BaseDataset:
        return self


def node_of(dataset: Any, op_name: str) -> _nodes.Node:
    """Returns the node of a dataset argument of `op_name`. Raises `TypeError` for other objects."""
    return expect(dataset, BaseDataset, op_name, "a tf.data.Dataset")._node


def call_to_dataset(map_func: Callable, element: Any) -> BaseDataset:
    """Returns the dataset that `map_func` returns for an element."""
    result = call(map_func, element)
    if not isinstance(result, BaseDataset):
        raise TypeError(
            "Invalid `map_func`. `map_func` must return a `tf.data.Dataset` object. Got "
            f"{type(result)}."
        )
    return result


def as_seed(seed: Any) -> int | None:
    """Converts a seed, which may be `None`, to an integer."""
    return None if seed is None else integer(seed, "seed", TypeError)
