"""Extraction of patches from images and volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from retrograde.core.apply import apply
from retrograde.core.tensor import Tensor
from retrograde.math._inputs import dtype_name
from retrograde.nn._windows import check_fit, check_padding, padded_windows
from retrograde.ops.conversion import as_tensor
from retrograde.ops.patches import take_patches
from retrograde.ops.shaping import reshape
from retrograde.values import dtypes
from retrograde.values.arguments import as_int, shown
from retrograde.values.errors import OpError, OutOfRangeError, UnimplementedError, invalid


def extract_patches(
    images: Any,
    sizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
    name: str | None = None,
) -> Tensor:
    """Extracts patches of `images` and flattens each along the last axis.

    A patch of `sizes` pixels, which are `rates` apart, is taken every `strides` pixels. All three
    are given as `[1, rows, columns, 1]`.

    >>> image = tf.reshape(tf.range(1.0, 10.0), [1, 3, 3, 1])
    >>> ones = [1, 1, 1, 1]
    >>> tf.image.extract_patches(image, [1, 2, 2, 1], ones, ones, "VALID")[0].numpy()
    array([[[1., 2., 4., 5.],
            [2., 3., 5., 6.]],
    <BLANKLINE>
           [[4., 5., 7., 8.],
            [5., 6., 8., 9.]]], dtype=float32)
    """
    return _patches(images, sizes, strides, rates, padding, 4, "extract_patches")


def extract_volume_patches(
    input: Any,
    ksizes: Sequence[int],
    strides: Sequence[int],
    padding: str,
    name: str | None = None,
) -> Tensor:
    """Extracts patches of volumes and flattens each along the last axis.

    `ksizes` and `strides` are given as `[1, planes, rows, columns, 1]`.
    """
    return _patches(input, ksizes, strides, [1] * 5, padding, 5, "extract_volume_patches")


def _patches(
    value: Any, sizes: Any, strides: Any, rates: Any, padding: str, ndim: int, op_name: str
) -> Tensor:
    lists = {"sizes": sizes, "strides": strides, "rates": rates}
    per_axis = [_spatial_values(value, ndim, name, op_name) for name, value in lists.items()]
    check_padding(padding, ("SAME", "VALID"), op_name)
    x = as_tensor(value)
    shape = x._spec.shape
    if x.ndim != ndim:
        raise invalid(f"{op_name}: expected a tensor with {ndim} axes. Received: shape {shape}.")
    if x._spec.dtype not in dtypes.NUMERIC:
        raise invalid(
            f"{op_name}: dtype {dtype_name(x)} is not supported. Expected a numeric dtype."
        )
    windows = padded_windows(padding, shape[1:-1], *per_axis)
    check_fit(windows, shape[1:-1], op_name)
    y = apply(take_patches, (x,), {"windows": windows})
    depth = math.prod(windows.size) * shape[-1]
    return reshape(y, shape=(*y._spec.shape[: ndim - 1], depth))


def _spatial_values(value: Any, ndim: int, name: str, op_name: str) -> tuple[int, ...]:
    """Returns the numbers for the spatial axes from a list with one number per axis."""
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"{op_name}: expected a list of integers for `{name}`. Received: {shown(value)}."
        )
    if len(value) != ndim:
        raise invalid(f"{op_name}: `{name}` has {len(value)} elements. Expected {ndim}.")
    if value[0] != 1 or value[-1] != 1:
        raise _op_error(
            UnimplementedError,
            f"{op_name}: `{name}` is {shown(list(value))}. Expected 1 for the batch and for the "
            "channels.",
        )
    if min(value) < 1:
        raise _op_error(
            OutOfRangeError,
            f"{op_name}: `{name}` is {shown(list(value))}. Expected positive numbers.",
        )
    return tuple([as_int(n, f"{op_name}: `{name}`") for n in value[1:-1]])


def _op_error(error: type[OpError], message: str) -> OpError:
    return error(None, None, message)
