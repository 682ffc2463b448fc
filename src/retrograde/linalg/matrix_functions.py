"""Matrix functions: exponential, logarithm and square root."""

from __future__ import annotations

from typing import Any

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.linalg._inputs import squares_of
from retrograde.ops import matrix_functions


def expm(input: Any, name: str | None = None) -> Tensor:
    """Computes the exponential of square matrices.

    >>> tf.linalg.expm([[0.0, 1.0], [0.0, 0.0]]).numpy()
    array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return apply(matrix_functions.expm, (squares_of(input, "expm"),))


def logm(input: Any, name: str | None = None) -> Tensor:
    """Computes the principal logarithm of square matrices, which must be complex.

    A singular matrix gives NaN.
    """
    return apply(matrix_functions.logm, (squares_of(input, "logm"),))


def sqrtm(input: Any, name: str | None = None) -> Tensor:
    """Computes the principal square root of square matrices.

    A real matrix whose square root is complex gives NaN: cast it to complex numbers first.

    >>> tf.linalg.sqrtm([[1.0, 4.0], [0.0, 9.0]]).numpy()
    array([[1., 1.],
           [0., 3.]], dtype=float32)
    """
    return apply(matrix_functions.sqrtm, (squares_of(input, "sqrtm"),))


matrix_square_root = sqrtm
"""The name of `tf.linalg.sqrtm` at top level."""
