"""tf.bitwise: integers as rows of bits. No gradient flows."""

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
    """The bits that are set in both.

    >>> tf.bitwise.bitwise_and([12], [10]).numpy()
    array([8], dtype=int32)
    """
    return binary(arithmetic.bitwise_and, x, y)


def bitwise_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that are set in one or in both."""
    return binary(arithmetic.bitwise_or, x, y)


def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that are set in just one of the two."""
    return binary(arithmetic.bitwise_xor, x, y)


def invert(x: Any, name: str | None = None) -> Tensor:
    """Each bit turned round.

    >>> tf.bitwise.invert([0, 5]).numpy()
    array([-1, -6], dtype=int32)
    """
    return unary(arithmetic.invert, x)


def left_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits of `x` moved up by `y` places, by 0 at least and by all but one at most.

    >>> tf.bitwise.left_shift([1, 1], [4, 40]).numpy()
    array([         16, -2147483648], dtype=int32)
    """
    return binary(arithmetic.left_shift, x, y)


def right_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits of `x` moved down by `y` places; negative numbers stay negative."""
    return binary(arithmetic.right_shift, x, y)
