"""Conversion and validation of the arguments of tf.image."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.ops.conversion import as_tensor
from retrograde.values.conversion import tensor_or_variable
from retrograde.values.errors import invalid


def as_image(value: Any, op_name: str) -> Tensor:
    """Converts `value` to a tensor with the trailing axes height, width and channels."""
    x = as_tensor(value)
    shape = x._spec.shape
    if len(shape) < 3:
        raise ValueError(
            f"{op_name}: `image` has shape {shape}. Expected at least three axes: height, width, "
            "channels."
        )
    if 0 in shape[-3:]:
        raise ValueError(
            f"{op_name}: `image` has shape {shape}. Expected a height, width and number of "
            "channels above 0."
        )
    return x


def as_image_or_batch(value: Any, op_name: str) -> Tensor:
    """Converts `value` to an image (three axes) or a batch of images (four), none of them empty."""
    x = as_image(value, op_name)
    check_image_rank(x, op_name)
    return x


def check_image_rank(x: Tensor, op_name: str, argument: str = "image") -> None:
    """Raises unless `x` has three axes (an image) or four (a batch of images)."""
    if x._spec.ndim not in (3, 4):
        raise ValueError(
            f"{op_name}: `{argument}` has shape {x._spec.shape}. Expected three axes, or four for "
            "a batch of images."
        )


def as_tensor_of(value: Any, dtype: np.dtype) -> Tensor:
    """Converts `value` to a tensor: lists and arrays to `dtype`, while tensors keep their dtype."""
    return as_tensor(value, None if tensor_or_variable(value) is not None else dtype)


def require(condition: bool, message: str, *arguments: Any) -> None:
    """Raises an error with `message` if `condition` is false.

    The error is a ValueError, or, as in TensorFlow, an InvalidArgumentError if one of `arguments`
    is a tensor.
    """
    if not condition:
        tensors = any(tensor_or_variable(argument) is not None for argument in arguments)
        raise invalid(message) if tensors else ValueError(message)
