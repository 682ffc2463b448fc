"""What all parts of `Dataset` stand on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.data import _nodes
from retrograde.data._structure import call
from retrograde.data.options import Options
from retrograde.ops.arguments import integer
from retrograde.values.arguments import expect
from retrograde.values.composites import CompositeTensor


class BaseDataset(CompositeTensor):
    """A node and options. Methods make new datasets by `_made`, which `Dataset` has."""

    _instead = "Take its elements with a loop."

    def __init__(self, node: _nodes.Node, options: Options | None = None) -> None:
        self._node = node
        self._options = options or Options()

    @staticmethod
    def _made(node: _nodes.Node, options: Options | None = None) -> Any:
        raise NotImplementedError

    def _then(self, node: _nodes.Node) -> Any:
        """What follows this, with its options."""
        return self._made(node, self._options)

    def _stream(self, make: Callable, name: str, **described: Any) -> Any:
        return self._then(_nodes.Stream(self._node, make, name, **described))

    def _components(self) -> Sequence[Tensor]:
        return ()

    def _with_components(self, components: Iterator[Any]) -> BaseDataset:
        return self


def node_of(dataset: Any, what: str) -> _nodes.Node:
    """Returns the node of a dataset that `what` was given; any other object is a `TypeError`."""
    return expect(dataset, BaseDataset, what, "a tf.data.Dataset")._node


def dataset_of(map_func: Callable, element: Any) -> BaseDataset:
    """The dataset that a function of the user's returns for an element."""
    result = call(map_func, element)
    if not isinstance(result, BaseDataset):
        raise TypeError(
            "Invalid `map_func`. `map_func` must return a `tf.data.Dataset` object. Got "
            f"{type(result)}."
        )
    return result


def as_seed(seed: Any) -> int | None:
    """A seed that may be missing."""
    return None if seed is None else integer(seed, "seed", TypeError)
