"""Iterators over datasets."""

from __future__ import annotations

import itertools
import json
import weakref
from collections.abc import Callable
from typing import Any

from retrograde.core import namespaces, recorders
from retrograde.core.tensor import Tensor, readable
from retrograde.data._elements import normalize, spec_of_element
from retrograde.data._nodes import Node
from retrograde.data._seeds import IterationNumbers
from retrograde.data._workers import Run
from retrograde.devices.scopes import on_host
from retrograde.files.checked_json import parse_json
from retrograde.ops.conversion import as_tensor
from retrograde.ops.host_callbacks import HostCallback, call_host
from retrograde.ops.host_functions import CallbackResult, call_on_each_replay, object_array
from retrograde.values import nest
from retrograde.values.errors import (
    DataLossError,
    OutOfRangeError,
    exhausted,
    invalid,
    is_out_of_memory,
)
from retrograde.values.specs import TypeSpec


class Iterator:
    """An iterator over a dataset. Its threads stop when it is garbage-collected.

    >>> iterator = iter(tf.data.Dataset.range(2))
    >>> iterator.get_next().numpy(), next(iterator).numpy(), list(iterator)
    (np.int64(0), np.int64(1), [])
    """

    _checkpoint_name = "ITERATOR_STATE"

    def __init__(self, node: Node) -> None:
        self._node = node
        # For an iterator created inside a `tf.function`, this holds the iterator of each call.
        self._box: Tensor | None = None
        if recorders.thread.recorders.tracer is not None:
            self._box = call_host(
                HostCallback("iterator", lambda: object_array(Iterator(node)), pure=False)
            )
            return
        self._open(Run(), 0)

    def _open(self, run: Run, num_taken: int) -> None:
        """Starts iterating after the first `num_taken` elements."""
        self._run, self._taken = run, num_taken
        self._elements = self._node.open_after(run, num_taken)
        self._end = weakref.finalize(self, run.close)

    # A checkpoint has the number of elements taken and the random numbers drawn for them.

    def _checkpoint_bytes(self) -> bytes:
        iteration_states = [
            seeds.iterations_in(self._run).state() for seeds in self._node.all_seeds()
        ]
        return json.dumps({"taken": self._taken, "iterations": iteration_states}).encode()

    def _restore_function(self, value: bytes) -> Callable[[], None]:
        state = _parse_state(value)
        iteration_states, all_seeds = state["iterations"], self._node.all_seeds()
        if len(iteration_states) != len(all_seeds):
            raise invalid(
                f"The saved iterator has {len(iteration_states)} random steps, but this one has "
                f"{len(all_seeds)}. Restore it into an iterator over the same dataset."
            )
        pairs = zip(all_seeds, iteration_states, strict=True)
        iterations = {
            id(seeds): IterationNumbers.resume(iteration_state) for seeds, iteration_state in pairs
        }

        def restore() -> None:
            self._end()
            self._call_without_recorders(lambda: self._open(Run(iterations), state["taken"]))

        return restore

    @staticmethod
    def _call_without_recorders(function: Callable[[], Any]) -> Any:
        """Calls `function` on the host, without recorders: tapes do not record datasets."""
        outer = recorders.thread.recorders
        if namespaces.foreign:
            function = on_host(function)
        if not outer:
            return function()
        recorders.thread.recorders = recorders.Recorders((), outer.quietly)
        try:
            return function()
        finally:
            recorders.thread.recorders = outer

    @property
    def element_spec(self) -> Any:
        """The spec of elements."""
        return self._node.spec

    def __iter__(self) -> Any:
        if recorders.thread.recorders.tracer is not None:
            return _LoopInFunction(self)
        return self

    def __next__(self) -> Any:
        if recorders.thread.recorders.tracer is not None:
            try:
                return self._next_in_function()
            except StopIteration:
                if (
                    self._box is None
                ):  # created outside of the function, as in TensorFlow's programs
                    raise _end_of_sequence() from None
                raise
        try:
            element = self._call_without_recorders(self._elements.__next__)
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
        """Returns the next element inside a `tf.function`, in this call and in each later one."""
        box = Tensor(object_array(self)) if self._box is None else self._box
        parts, boxed = call_on_each_replay("next", _next_arrays, (box,))
        element = boxed._array.item().value
        if element is _NOTHING:
            raise StopIteration
        original = nest.leaves(element, expand_composites=True)
        leaves = [x if p is None else p for x, p in zip(original, parts, strict=True)]
        return nest.pack(element, iter(leaves), expand_composites=True)

    def get_next(self) -> Any:
        """Returns the next element. Raises `OutOfRangeError` if there is none."""
        for element in self:
            return element
        raise _end_of_sequence()

    def get_next_as_optional(self) -> Optional:
        """Returns the next element as an `Optional`, which is empty at the end."""
        element = next(iter(self), _NOTHING)
        return Optional([] if element is _NOTHING else [element], self.element_spec)


class _LoopInFunction:
    """A Python loop over an iterator inside a `tf.function`. It ends with the elements."""

    def __init__(self, iterator: Iterator) -> None:
        self._iterator = iterator

    def __iter__(self) -> _LoopInFunction:
        return self

    def __next__(self) -> Any:
        return self._iterator._next_in_function()


def _end_of_sequence() -> OutOfRangeError:
    return OutOfRangeError(None, None, "End of sequence")


_NOTHING = object()


def _next_arrays(box: Any) -> CallbackResult:
    """Returns the arrays of the next element of the iterator in `box`."""
    element = next(box.item(), _NOTHING)
    if element is _NOTHING:
        return CallbackResult([], "the end", element)
    leaves = list(nest.leaves(element, expand_composites=True))
    arrays = [x._array if isinstance(x, Tensor) else None for x in leaves]
    return CallbackResult(arrays, repr(nest.pack(element, itertools.repeat(None))), element)


class Optional:
    """A value that may be missing.

    >>> tf.experimental.Optional.from_value(3).get_value().numpy()
    np.int32(3)
    >>> tf.experimental.Optional.empty(tf.TensorSpec([])).has_value().numpy()
    np.False_
    """

    def __init__(self, values: list, element_spec: Any = None) -> None:
        self._values = values
        self._element_spec = element_spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """Creates an optional with a value, a structure of tensors."""
        return Optional([normalize(value)])

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """Creates an optional without a value."""
        return Optional([], element_spec)

    @property
    def element_spec(self) -> Any:
        """The spec of the value."""
        return spec_of_element(self._values[0]) if self._values else self._element_spec

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self.element_spec)

    def has_value(self, name: str | None = None) -> Tensor:
        """Returns whether there is a value."""
        return as_tensor(bool(self._values))

    def get_value(self, name: str | None = None) -> Any:
        """Returns the value. Raises `InvalidArgumentError` if there is none."""
        if not self._values:
            raise invalid("The given optional does not have a value. Check has_value() first.")
        return self._values[0]


class OptionalSpec(TypeSpec):
    """The spec of a `tf.experimental.Optional`."""

    __slots__ = ("_element_spec",)

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    @property
    def value_type(self) -> type:
        """`tf.experimental.Optional`."""
        return Optional

    def _serialize(self) -> tuple:
        return (self._element_spec,)


class NumpyIterator:
    """An iterator over a dataset that returns NumPy arrays instead of tensors."""

    def __init__(self, iterator: Iterator) -> None:
        self._iterator = iterator

    def _trackable_children(self) -> dict[str, Any]:
        return {"_iterator": self._iterator}

    def save(self) -> Tensor:
        """Returns the state of the iterator, for `restore`."""
        return as_tensor(self._iterator._checkpoint_bytes())

    def restore(self, state: Any) -> None:
        """Continues after the element that was the last one when `save` returned `state`.

        >>> numbers = tf.data.Dataset.range(5).as_numpy_iterator()
        >>> state = numbers.save()
        >>> first = next(numbers)
        >>> numbers.restore(state)
        >>> next(numbers) == first
        np.True_
        """
        value = state.numpy() if isinstance(state, Tensor) else state
        self._iterator._restore_function(value)()

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        flat, pack = nest.flatten_with_pack(next(self._iterator))
        return pack([leaf if leaf is None else _array(leaf) for leaf in flat])


def _array(leaf: Any) -> Any:
    if isinstance(leaf, Tensor) and leaf._spec.ndim:
        return readable(leaf._array)  # read-only, as in TensorFlow
    if hasattr(leaf, "numpy"):
        return leaf.numpy()
    if hasattr(leaf, "dense_shape"):
        from retrograde.sparse import to_dense

        return to_dense(leaf).numpy()
    raise TypeError(f"as_numpy_iterator() does not support values of type {type(leaf).__name__}.")


_STATE = "the state of an iterator in a checkpoint"


def _parse_state(value: Any) -> dict[str, Any]:
    """Returns the state that `_checkpoint_bytes` wrote, after checking the type of each part."""
    state = parse_json(value, _STATE) if isinstance(value, bytes) else None
    match state:
        case {"taken": int(taken), "iterations": list(iteration_states)} if taken >= 0 and all(
            map(_is_iteration_state, iteration_states)
        ):
            return state
    raise DataLossError(None, None, f"Cannot read {_STATE}: it is corrupt or has another format.")


def _is_iteration_state(state: Any) -> bool:
    match state:
        case {"key": [a, b], "start": [c, d], "numbers": list(e), "next_number": f, **rest}:
            words = (a, b, c, d, *e, f)
            return not rest and all(type(word) is int and 0 <= word < 1 << 64 for word in words)
    return False
