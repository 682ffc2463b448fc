"""tf.bitwise: bitwise operations on integers. No gradient flows."""

from __future__ import annotations

from typing import Any

from retrograde._api.lazy import from_all
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import binary, unary
from retrograde.ops import arithmetic

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]

__getattr__, __dir__ = from_all(__name__)


def bitwise_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes the bitwise AND.

    >>> tf.bitwise.bitwise_and([12], [10]).numpy()
    array([8], dtype=int32)
    """
    return binary(arithmetic.bitwise_and, x, y)


def bitwise_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes the bitwise OR."""
    return binary(arithmetic.bitwise_or, x, y)


def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Computes the bitwise XOR."""
    return binary(arithmetic.bitwise_xor, x, y)


def invert(x: Any, name: str | None = None) -> Tensor:
    """Inverts all bits.

    >>> tf.bitwise.invert([0, 5]).numpy()
    array([-1, -6], dtype=int32)
    """
    return unary(arithmetic.invert, x)


def left_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Shifts the bits of `x` left by `y`, clipped to between 0 and the number of bits minus 1.

    >>> tf.bitwise.left_shift([1, 1], [4, 40]).numpy()
    array([         16, -2147483648], dtype=int32)
    """
    return binary(arithmetic.left_shift, x, y)


def right_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Shifts the bits of `x` right by `y`; the sign is preserved."""
    return binary(arithmetic.right_shift, x, y)
