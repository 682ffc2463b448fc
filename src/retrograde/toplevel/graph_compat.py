"""Functions that return their arguments, which only TensorFlow's graphs need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.ops import casting
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.shaping import stack


def tuple(tensors: Sequence[Any], control_inputs: Any = None, name: Any = None) -> Sequence[Any]:
    """The tensors themselves: all have been computed by the time they are here."""
    return tensors


def guarantee_const(input: Any, name: Any = None) -> Tensor:
    """The same value, as a constant: no gradient flows through it."""
    return casting.stop_gradient(as_tensor(input))


def parallel_stack(values: Sequence[Any], name: Any = "parallel_stack") -> Tensor:
    """`stack` along a new first axis. TensorFlow has it inside functions only.

    >>> tf.parallel_stack([[1, 2], [3, 4]]).numpy()
    array([[1, 2], [3, 4]], dtype=int32)
    """
    return stack(values)
