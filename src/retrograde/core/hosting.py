"""Functions that look at values, such as `unique`: what they do in a call that is replayed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from retrograde.core import nest
from retrograde.core.conversion import held_by
from retrograde.core.effects import MAKERS, NUMPY_CALL, Host, Recipe, known, name_of
from retrograde.core.recorders import alone, escape, thread
from retrograde.core.tensor import Tensor


def hosted(function: Callable | None = None, *, open_shapes: bool = False) -> Callable:
    """A function that computes with the values of tensors, in Python or by NumPy.

    In a `function` that is recorded it is one call, which replays make again, with values of their
    own. Shapes and dtypes of the results follow from those of the arguments. Where shapes follow
    from values it has `open_shapes`: a replay in which they are others is another recording. No
    gradient flows.
    """
    if function is None:
        return functools.partial(hosted, open_shapes=open_shapes)
    known(function)

    @functools.wraps(function)
    def operation(*args: Any, **kwargs: Any) -> Any:
        if thread.recorders.recording is None:
            return function(*args, **kwargs)
        return _recorded(function, (args, kwargs), open_shapes)

    return operation


def _recorded(function: Callable, given: tuple[tuple, dict], open_shapes: bool) -> Any:
    holders = [_held(leaf) for leaf in nest.leaves(given, expand_composites=True)]
    tensors = tuple([held._read() for held in holders if held is not None])
    for x in tensors:
        escape(x, NUMPY_CALL)
    # Replays bring tensors of their own; these are let go.
    leaves = (None if _held(leaf) is not None else leaf for leaf in nest.leaves(given))
    call = _Call(function, nest.packed(given, leaves), [held is not None for held in holders])
    y = call([x._array for x in tensors])
    host = _host(call, open_shapes)
    outputs = thread.recorders.recording.perform(host, tensors, _arrays_in(y, open_shapes))
    if open_shapes:
        shapes, *outputs = outputs
        escape(shapes, "shape")  # and so becomes a guard
    return nest.packed(y, iter(outputs), expand_composites=True)


def _held(leaf: Any) -> Any:
    return Tensor(leaf) if isinstance(leaf, np.ndarray) else held_by(leaf)


class _Call:
    """A call of `function` with arguments `given`; of their leaves, some stand for tensors."""

    def __init__(self, function: Callable, given: tuple[tuple, dict], is_tensor: list) -> None:
        self.function = function
        self.given = given
        self.is_tensor = is_tensor

    def __call__(self, arrays: Iterable[Any]) -> Any:
        """What it returns for the values in `arrays`."""
        values = iter(arrays)
        pairs = zip(nest.leaves(self.given, expand_composites=True), self.is_tensor, strict=True)
        leaves = [Tensor(np.asarray(next(values))) if tensor else leaf for leaf, tensor in pairs]
        with alone():
            args, kwargs = nest.packed(self.given, iter(leaves), expand_composites=True)
            return self.function(*args, **kwargs)


def _host(call: _Call, open_shapes: bool) -> Host:
    def run(*arrays: Any) -> tuple:
        return _arrays_in(call(arrays), open_shapes)

    name, values = name_of(call.function), (call.given, call.is_tensor, open_shapes)
    recipe = Recipe("hosted", name, values)
    return Host(call.function.__name__.strip("_"), run, pure=True, outputs=True, recipe=recipe)


def _made_again(function: Callable, values: tuple) -> Host:
    given, is_tensor, open_shapes = values
    return _host(_Call(function, given, is_tensor), open_shapes)


MAKERS["hosted"] = _made_again


def _arrays_in(y: Any, open_shapes: bool) -> tuple:
    """The arrays of all tensors in `y`; before them, where these are open, their shapes.

    Of each it is the number of axes, then their sizes.
    """
    arrays = tuple([x._array for x in nest.leaves(y, expand_composites=True)])
    if not open_shapes:
        return arrays
    shapes = [n for array in arrays for n in (array.ndim, *array.shape)]
    return np.array(shapes, np.int64), *arrays
