"""Functions that matter only in TensorFlow's graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.ops import casting
from retrograde.ops.conversion import as_tensor
from retrograde.toplevel.shaping import stack


def tuple(tensors: Sequence[Any], control_inputs: Any = None, name: Any = None) -> Sequence[Any]:
    """Returns the tensors unchanged: all of them are already computed."""
    return tensors


def guarantee_const(input: Any, name: Any = None) -> Tensor:
    """Returns the same value as a constant: no gradient flows through it."""
    return casting.stop_gradient(as_tensor(input))


def parallel_stack(values: Sequence[Any], name: Any = "parallel_stack") -> Tensor:
    """Stacks tensors along a new first axis. In TensorFlow it works only inside functions.

    >>> tf.parallel_stack([[1, 2], [3, 4]]).numpy()
    array([[1, 2], [3, 4]], dtype=int32)
    """
    return stack(values)
