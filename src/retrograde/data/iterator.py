"""Iterator: one pass over a dataset."""

from __future__ import annotations

import itertools
import json
import weakref
from collections.abc import Callable
from typing import Any

from retrograde.core import recorders
from retrograde.core.host_callbacks import Host, perform
from retrograde.core.tensor import Tensor
from retrograde.data._nodes import Node
from retrograde.data._seeds import Passes
from retrograde.data._workers import Run
from retrograde.files.checked_json import parse_json
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_functions import CallbackResult, call_on_each_replay, object_array
from retrograde.values import nest
from retrograde.values.errors import (
    DataLossError,
    OutOfRangeError,
    exhausted,
    invalid,
    is_out_of_memory,
)


class Iterator:
    """One pass over a dataset, from its start. When it is dropped, its threads end.

    >>> iterator = iter(tf.data.Dataset.range(2))
    >>> iterator.get_next().numpy(), next(iterator).numpy(), list(iterator)
    (np.int64(0), np.int64(1), [])
    """

    _checkpoint_name = "ITERATOR_STATE"

    def __init__(self, node: Node) -> None:
        self._node = node
        # Of an iterator that a function makes, the one of this call; each call makes its own.
        self._box: Tensor | None = None
        if recorders.thread.recorders.recording is not None:
            self._box = perform(Host("iterator", lambda: object_array(Iterator(node)), pure=False))
            return
        self._open(Run(), 0)

    def _open(self, run: Run, taken: int) -> None:
        """Begins a pass after the elements that were taken already."""
        self._run, self._taken = run, taken
        self._elements = self._node.open_after(run, taken)
        self._end = weakref.finalize(self, run.close)

    # In a checkpoint: how many elements were taken, and which random numbers were drawn for them.

    def _checkpoint_bytes(self) -> bytes:
        drawn = [seeds.passes_of(self._run).state() for seeds in self._node.all_seeds()]
        return json.dumps({"taken": self._taken, "drawn": drawn}).encode()

    def _restoring(self, value: bytes) -> Callable[[], None]:
        state = _state_in(value)
        drawn, all_seeds = state["drawn"], self._node.all_seeds()
        if len(drawn) != len(all_seeds):
            raise invalid(
                f"The iterator that was saved drew random numbers in {len(drawn)} places, this one "
                f"does so in {len(all_seeds)}. Expected an iterator over the same dataset."
            )
        pairs = zip(all_seeds, drawn, strict=True)
        passes = {id(seeds): Passes.resumed(made) for seeds, made in pairs}

        def restore() -> None:
            self._end()
            self._quietly(lambda: self._open(Run(passes), state["taken"]))

        return restore

    @staticmethod
    def _quietly(function: Callable[[], Any]) -> Any:
        """Calls `function` where no tape follows what happens inside a dataset."""
        outer = recorders.thread.recorders
        if not outer:
            return function()
        recorders.thread.recorders = recorders.Recorders((), outer.quietly)
        try:
            return function()
        finally:
            recorders.thread.recorders = outer

    @property
    def element_spec(self) -> Any:
        """What elements look like."""
        return self._node.spec

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        if recorders.thread.recorders.recording is not None:
            return self._next_in_function()
        try:
            element = self._quietly(self._elements.__next__)
        except StopIteration:
            self._run.close()
            raise
        except Exception as error:
            self._taken += 1
            if is_out_of_memory(error):
                raise exhausted(error, "dataset") from None
            raise
        self._taken += 1
        return element

    def _next_in_function(self) -> Any:
        """The next element, in this call of a function and in each one that follows."""
        box = Tensor(object_array(self)) if self._box is None else self._box
        parts, answer = call_on_each_replay("next", _element, (box,))
        element = answer._array.item().kept
        if element is _NOTHING:
            raise StopIteration
        given = nest.leaves(element, expand_composites=True)
        leaves = [x if p is None else p for x, p in zip(given, parts, strict=True)]
        return nest.pack(element, iter(leaves), expand_composites=True)

    def get_next(self) -> Any:
        """The next element; an `OutOfRangeError` if there is none."""
        for element in self:
            return element
        raise OutOfRangeError(None, None, "End of sequence")

    def get_next_as_optional(self) -> Optional:
        """The next element or nothing."""
        return Optional([element for element in (next(self, _NOTHING),) if element is not _NOTHING])


_NOTHING = object()


def _element(box: Any) -> CallbackResult:
    """The arrays of the next element of the iterator in `box`."""
    element = next(box.item(), _NOTHING)
    if element is _NOTHING:
        return CallbackResult([], "the end", element)
    leaves = list(nest.leaves(element, expand_composites=True))
    arrays = [x._array if isinstance(x, Tensor) else None for x in leaves]
    return CallbackResult(arrays, repr(nest.pack(element, itertools.repeat(None))), element)


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

    def _trackable_children(self) -> dict[str, Any]:
        return {"_iterator": self._iterator}

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


_STATE = "the state of an iterator in a checkpoint"


def _state_in(value: Any) -> dict[str, Any]:
    """Returns the state that `_checkpoint_bytes` wrote, after checking the type of each part."""
    state = parse_json(value, _STATE) if isinstance(value, bytes) else None
    match state:
        case {"taken": int(taken), "drawn": list(drawn)} if taken >= 0 and all(
            map(_is_pass, drawn)
        ):
            return state
    raise DataLossError(None, None, f"Cannot read {_STATE}: it is damaged or of another format.")


def _is_pass(state: Any) -> bool:
    match state:
        case {"key": [a, b], "start": [c, d], "numbers": list(e), "following": f, **rest}:
            words = (a, b, c, d, *e, f)
            return not rest and all(type(word) is int and 0 <= word < 1 << 64 for word in words)
    return False
