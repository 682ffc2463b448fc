"""The arguments and results of `gradient` and the other methods of a tape."""

from __future__ import annotations

import enum
import linecache
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core import indexed_slices, required
from retrograde.core.hooks import hook
from retrograde.core.indexed_slices import IndexedSlices
from retrograde.core.recorders import next_id
from retrograde.core.tensor import Tensor, wrap
from retrograde.values import nest
from retrograde.values.arguments import shown
from retrograde.values.composites import CompositeTensor
from retrograde.values.conversion import as_array, source_of, tensor_or_variable
from retrograde.values.dtypes import DType
from retrograde.values.errors import invalid
from retrograde.values.holder import Holder
from retrograde.values.shapes import broadcast


class UnconnectedGradients(enum.Enum):
    """The value that `gradient` returns for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


_first = operator.itemgetter(0)
_new = object.__new__


def flatten_arguments(structure: Any, role: str) -> tuple[list, Any]:
    """Returns the tensors and variables in `structure`, and a function that packs results."""
    if isinstance(structure, Holder):
        return [structure], _first
    leaves, pack = nest.flatten_with_pack(structure)
    if role == "watch":
        leaves = [x for leaf in leaves for x in _watched(leaf)]
    composites = {}
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, Holder):
            if isinstance(leaf, CompositeTensor):
                composites[i] = leaf
            leaves[i] = _check_leaf(leaf, role)
    return leaves, _pack_with_composites(pack, composites) if composites else pack


def _watched(leaf: Any) -> Sequence[Any]:
    return leaf._watched() if isinstance(leaf, CompositeTensor) else (leaf,)


def _pack_with_composites(pack: Any, composites: dict[int, CompositeTensor]) -> Any:
    """Returns `pack`, extended to convert the gradients of `composites` to composite tensors."""

    def pack_composites(values: list) -> Any:
        values = list(values)
        for i, leaf in composites.items():
            values[i] = None if values[i] is None else leaf._with_gradient(values[i])
        return pack(values)

    return pack_composites


def _check_leaf(leaf: Any, role: str) -> Any:
    held = source_of(leaf)
    if held is not None:
        return held
    if isinstance(leaf, CompositeTensor):
        return _followed(leaf, role)
    if role == "watch":
        raise ValueError(
            f"Passed in object {shown(leaf)} of type {type(leaf).__name__!r}, not tf.Tensor or "
            "tf.Variable. Convert it with tf.constant first, and use that tensor from then on."
        )
    raise TypeError(
        f"A {role} of gradient() must be a tensor or a variable. Received: {shown(leaf)} of type "
        f"{type(leaf).__name__!r}.{hook('advice_for')(leaf)}"
    )


def _followed(composite: CompositeTensor, role: str) -> Tensor:
    if role != "watch" and not composite._takes_gradients:
        raise ValueError(
            f"Type {type(composite).__name__} is not supported as a gradient source or gradient "
            f"target. {composite._differentiable}"
        )
    return composite._followed


def already_used_message(filename: str, line: int) -> str:
    """Returns the error message of a non-persistent tape that is used a second time."""
    code = linecache.getline(filename, line).strip()
    return (
        "A non-persistent GradientTape can only be used to compute one set of gradients (or "
        f"jacobians), and this one was used at {filename}:{line}"
        f"{': ' + code if code else ''}.\n"
        "Compute all gradients in one call, gradient(target, [source_1, source_2, ...]), or create "
        "the tape with tf.GradientTape(persistent=True)."
    )


def as_unconnected_gradients(value: Any) -> UnconnectedGradients:
    if isinstance(value, UnconnectedGradients):
        return value
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {shown(value)}. Expected 'none' or 'zero'."
        ) from None


def output_gradients_per_target(output_gradients: Any, target: Any, count: int) -> list:
    """Returns one output gradient for each target. `None` stands for ones."""
    if output_gradients is None:
        return [None] * count
    weights = nest.flatten(output_gradients)
    if count == 1 and len(weights) != 1 and not isinstance(target, (list, tuple, dict)):
        return [output_gradients]  # a list that converts to one tensor
    if len(weights) != count:
        raise ValueError(
            f"gradient() received {len(weights)} output_gradients for {count} targets. "
            "Expected one for each target, or None for ones."
        )
    return weights


def seed(target: Any, weight: Any, on_tensors: bool) -> Any:
    """Returns the initial cotangent of a target: ones, or `weight`."""
    shape, dtype = target._spec.shape, target._spec.dtype
    if weight is None:
        ones = np.ones(shape, dtype) if shape else dtype.type(1)
        return Tensor(ones) if on_tensors else ones
    if isinstance(weight, IndexedSlices):
        weight = indexed_slices.dense(weight)
    elif isinstance(weight, CompositeTensor):
        weight = _followed(weight, "output gradient")
    held = tensor_or_variable(weight)
    g = held._read() if held is not None else Tensor(as_array(weight, hint=dtype))
    if g._spec.dtype != dtype:
        raise invalid(
            f"gradient: an output gradient has dtype {g.dtype.name}, but its target has dtype "
            f"{target.dtype.name}. Use tf.cast."
        )
    if g._spec.shape != shape:
        if broadcast(g._spec.shape, shape) != shape:
            raise invalid(
                f"gradient: incompatible shapes: an output gradient has shape {g._spec.shape}, but "
                f"its target has shape {shape}."
            )
        g = required.broadcast_to(g, shape=shape)
    return g if on_tensors else g._array


def wrap_gradient(
    g: Any,
    source: Any = None,
    unconnected: UnconnectedGradients = UnconnectedGradients.NONE,
    leading_shape: tuple[int, ...] = (),
    shape: tuple[int, ...] | None = None,
) -> Any:
    """Wraps a cotangent, or a Jacobian with leading axes `leading_shape`, in a tensor."""
    if isinstance(g, (np.ndarray, np.generic)):
        tensor = _new(Tensor)  # inlined `wrap`
        tensor._array = g
        tensor._id = next_id()
        return tensor
    if g is None:
        if unconnected is UnconnectedGradients.NONE:
            return None
        shape = source._spec.shape if shape is None else shape
        return Tensor(np.zeros((*leading_shape, *shape), source._spec.dtype))
    if isinstance(g, Tensor):
        return g
    return indexed_slices.with_tensors(g) if isinstance(g, IndexedSlices) else wrap(g)


def warn_non_float(kind: str, dtype: DType) -> None:
    """Warns that a watched tensor or variable is not floating point."""
    import logging  # takes longer to import than this module

    logging.getLogger("retrograde").warning(
        "The dtype of the watched %s must be floating (e.g. tf.float32), got %r", kind, dtype
    )
