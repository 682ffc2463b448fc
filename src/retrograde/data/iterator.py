"""Iterator: one pass over a dataset."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from retrograde.core import nest, recorders
from retrograde.core.effects import Answer, Host, boxed, fresh, perform
from retrograde.core.errors import OutOfRangeError, invalid
from retrograde.core.tensor import Tensor
from retrograde.data._nodes import Node
from retrograde.data._workers import Run
from retrograde.ops.conversion import as_tensor


class Iterator:
    """One pass over a dataset, from its start. When it is dropped, its threads end.

    >>> iterator = iter(tf.data.Dataset.range(2))
    >>> iterator.get_next().numpy(), next(iterator).numpy(), list(iterator)
    (np.int64(0), np.int64(1), [])
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        # Of an iterator that a function makes, the one of this call; each call makes its own.
        self._box: Tensor | None = None
        if recorders.thread.recorders.recording is not None:
            self._box = perform(Host("iterator", lambda: boxed(Iterator(node)), pure=False))
            return
        self._run = Run()
        self._elements = node.open(self._run)
        weakref.finalize(self, self._run.close)

    @property
    def element_spec(self) -> Any:
        """What elements look like."""
        return self._node.spec

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        outer = recorders.thread.recorders
        if outer.recording is not None:
            return self._next_in_function()
        if outer:  # no tape follows what happens inside a dataset
            recorders.thread.recorders = recorders.Recorders((), outer.quietly)
        try:
            return next(self._elements)
        except StopIteration:
            self._run.close()
            raise
        finally:
            recorders.thread.recorders = outer

    def _next_in_function(self) -> Any:
        """The next element, in this call of a function and in each one that follows."""
        box = Tensor(boxed(self)) if self._box is None else self._box
        parts, answer = fresh("next", _element, (box,))
        element = answer._array.item().kept
        if element is _NOTHING:
            raise StopIteration
        given = nest.leaves(element, expand_composites=True)
        leaves = [x if p is None else p for x, p in zip(given, parts, strict=True)]
        return nest.packed(element, iter(leaves), expand_composites=True)

    def get_next(self) -> Any:
        """The next element; an `OutOfRangeError` if there is none."""
        for element in self:
            return element
        raise OutOfRangeError(None, None, "End of sequence")

    def get_next_as_optional(self) -> Optional:
        """The next element or nothing."""
        return Optional([element for element in (next(self, _NOTHING),) if element is not _NOTHING])


_NOTHING = object()


def _element(box: Any) -> Answer:
    """The arrays of the next element of the iterator in `box`."""
    element = next(box.item(), _NOTHING)
    if element is _NOTHING:
        return Answer([], "the end", element)
    leaves = list(nest.leaves(element, expand_composites=True))
    arrays = [x._array if isinstance(x, Tensor) else None for x in leaves]
    return Answer(arrays, repr(nest.packed(element, itertools.repeat(None))), element)


class Optional:
    """A value, or none."""

    def __init__(self, values: list) -> None:
        self._values = values

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is a value."""
        return as_tensor(bool(self._values))

    def get_value(self, name: str | None = None) -> Any:
        """The value; an `InvalidArgumentError` if there is none."""
        if not self._values:
            raise invalid("The given optional does not have a value. Ask has_value() first.")
        return self._values[0]


class NumpyIterator:
    """One pass over a dataset, with NumPy arrays in place of tensors."""

    def __init__(self, iterator: Iterator) -> None:
        self._iterator = iterator

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        flat, pack = nest.flatten_with_pack(next(self._iterator))
        return pack([leaf if leaf is None else _array(leaf) for leaf in flat])


def _array(leaf: Any) -> Any:
    if hasattr(leaf, "numpy"):
        return leaf.numpy()
    if hasattr(leaf, "dense_shape"):
        from retrograde.sparse import to_dense

        return to_dense(leaf).numpy()
    raise TypeError(f"as_numpy_iterator() does not support values of type {type(leaf).__name__}.")
