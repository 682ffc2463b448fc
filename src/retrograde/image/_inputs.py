"""What the functions of tf.image make of their arguments before they compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid


def image_of(value: Any, what: str) -> Tensor:
    """`value` as a tensor whose last three axes are the height, width and channels of an image."""
    x = as_tensor(value)
    shape = x._spec.shape
    if len(shape) < 3:
        raise ValueError(
            f"{what}: `image` has shape {shape}. Expected at least three axes: height, width, "
            "channels."
        )
    if 0 in shape[-3:]:
        raise ValueError(
            f"{what}: `image` has shape {shape}. Expected a height, width and number of channels "
            "above 0."
        )
    return x


def image_or_batch(value: Any, what: str) -> Tensor:
    """`value` as a tensor of three axes, an image, or of four, a batch of them; none empty."""
    x = image_of(value, what)
    refuse_other_ranks(x, what)
    return x


def refuse_other_ranks(x: Tensor, what: str, argument: str = "image") -> None:
    """Refuses all but an image and a batch of images."""
    if x._spec.ndim not in (3, 4):
        raise ValueError(
            f"{what}: `{argument}` has shape {x._spec.shape}. Expected three axes, or four for a "
            "batch of images."
        )


def taken(value: Any, dtype: np.dtype) -> Tensor:
    """`value` as a tensor; lists and arrays become `dtype`, tensors keep their own."""
    return as_tensor(value, None if tensor_or_variable(value) is not None else dtype)


def require(holds: bool, message: str, *arguments: Any) -> None:
    """Refuses arguments of which `holds` is false.

    The error is a ValueError, or, as in TensorFlow, an InvalidArgumentError if one of `arguments`
    is a tensor.
    """
    if not holds:
        tensors = any(tensor_or_variable(argument) is not None for argument in arguments)
        raise invalid(message) if tensors else ValueError(message)
