"""Functions that look at values, such as `unique`: what they do in a call that is replayed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from retrograde.core import nest
from retrograde.core.conversion import held_by
from retrograde.core.effects import NUMPY_CALL, Host
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

    @functools.wraps(function)
    def operation(*args: Any, **kwargs: Any) -> Any:
        if thread.recorders.recording is None:
            return function(*args, **kwargs)
        return _recorded(function, (args, kwargs), open_shapes)

    return operation


def _recorded(function: Callable, given: tuple[tuple, dict], open_shapes: bool) -> Any:
    holders = [held_by(leaf) for leaf in nest.leaves(given, expand_composites=True)]
    is_tensor = [held is not None for held in holders]
    tensors = tuple([held._read() for held in holders if held is not None])
    for x in tensors:
        escape(x, NUMPY_CALL)
    # Replays bring tensors of their own; these are let go.
    leaves = (None if held_by(leaf) is not None else leaf for leaf in nest.leaves(given))
    given = nest.packed(given, leaves)

    def call(arrays: Iterable[Any]) -> tuple[Any, tuple]:
        """What `function` returns for other values, and the arrays in it."""
        values = iter(arrays)
        pairs = zip(nest.leaves(given, expand_composites=True), is_tensor, strict=True)
        leaves = [Tensor(np.asarray(next(values))) if tensor else leaf for leaf, tensor in pairs]
        with alone():
            args, kwargs = nest.packed(given, iter(leaves), expand_composites=True)
            y = function(*args, **kwargs)
        found = tuple([x._array for x in nest.leaves(y, expand_composites=True)])
        return y, ((_shapes(found), *found) if open_shapes else found)

    y, found = call([x._array for x in tensors])
    name = function.__name__.strip("_")
    host = Host(name, lambda *arrays: call(arrays)[1], pure=True, outputs=True)
    outputs = thread.recorders.recording.perform(host, tensors, found)
    if open_shapes:
        shapes, *outputs = outputs
        escape(shapes, "shape")  # and so becomes a guard
    return nest.packed(y, iter(outputs), expand_composites=True)


def _shapes(arrays: tuple) -> np.ndarray:
    """The shapes of all: for each the number of axes, then their sizes."""
    return np.array([n for array in arrays for n in (array.ndim, *array.shape)], np.int64)
