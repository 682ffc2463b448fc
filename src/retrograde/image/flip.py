"""Flips, transposition and rotation by multiples of 90 degrees."""

from __future__ import annotations

from typing import Any

from retrograde.core.tensor import Tensor
from retrograde.image._inputs import as_image_or_batch
from retrograde.ops.casting import identity
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import reverse
from retrograde.ops.shaping import transpose as permute
from retrograde.values import dtypes
from retrograde.values.arguments import shown

_HEIGHT, _WIDTH = -3, -2


def flip_left_right(image: Any) -> Tensor:
    """Flips images horizontally."""
    return flip(as_image_or_batch(image, "flip_left_right"), _WIDTH)


def flip_up_down(image: Any) -> Tensor:
    """Flips images vertically."""
    return flip(as_image_or_batch(image, "flip_up_down"), _HEIGHT)


def flip(x: Tensor, *axes: int) -> Tensor:
    """Reverses `x` along `axes`, which are negative."""
    return reverse(x, axis=tuple(x._spec.ndim + axis for axis in axes))


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Swaps the height and width axes of images."""
    return _transpose(as_image_or_batch(image, "transpose"))


def _transpose(x: Tensor) -> Tensor:
    return permute(x, perm=(1, 0, 2) if x._spec.ndim == 3 else (0, 2, 1, 3))


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Rotates images counterclockwise by `k` times 90 degrees.

    >>> tf.image.rot90([[[1], [2]], [[3], [4]]])[..., 0].numpy()
    array([[2, 4], [1, 3]], dtype=int32)
    """
    x = as_image_or_batch(image, "rot90")
    turns = as_tensor(k, dtypes.int32.numpy_dtype)
    if turns._spec.ndim:
        raise ValueError(f"rot90: `k` must be a scalar. Received: {shown(k)}.")
    match int(turns) % 4:
        case 1:
            return _transpose(flip(x, _WIDTH))
        case 2:
            return flip(x, _HEIGHT, _WIDTH)
        case 3:
            return flip(_transpose(x), _WIDTH)
    return identity(x)
