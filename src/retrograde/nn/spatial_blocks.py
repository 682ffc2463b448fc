"""Operations that move spatial blocks to the batch axis or the channels, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor
from retrograde.nn._windows import Layout
from retrograde.ops.arguments import integer, integer_array, integers
from retrograde.ops.conversion import as_tensor
from retrograde.ops.shaping import put_slice, reshape, take_slice, transpose
from retrograde.values.arguments import as_text, expect, shown
from retrograde.values.errors import invalid, to_list


def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Moves elements that are `block_shape` apart to separate batch elements.

    The axes after the first are zero-padded, by one pair of `paddings` each, and split into blocks.
    The position within a block becomes the leading part of the batch axis.

    >>> x = tf.reshape(tf.range(4.0), [1, 4, 1])
    >>> tf.space_to_batch(x, [2], [[0, 0]]).numpy().squeeze()
    array([[0., 2.],
           [1., 3.]], dtype=float32)
    """
    return _space_to_batch(input, block_shape, paddings, "space_to_batch")


def space_to_batch_nd(
    input: Any, block_shape: Any, paddings: Any, name: str | None = None
) -> Tensor:
    """Does the same as `space_to_batch`."""
    return _space_to_batch(input, block_shape, paddings, "space_to_batch_nd")


def _space_to_batch(input: Any, block_shape: Any, paddings: Any, op_name: str) -> Tensor:
    x = as_tensor(input)
    blocks = integers(block_shape, f"{op_name}: block_shape", ndim=1)
    pairs = _explicit_padding(paddings, blocks, x, "paddings", op_name)
    x = _zero_pad(x, pairs)
    batch, *rest = x._spec.shape
    space, tail = rest[: len(blocks)], rest[len(blocks) :]
    for n, b in zip(space, blocks, strict=True):
        if n % b:
            raise invalid(
                f"{op_name}: {n} elements, including paddings, cannot be split into blocks of {b}. "
                f"Received: space {space} and block_shape {shown(list(blocks))}."
            )
    counts = [n // b for n, b in zip(space, blocks, strict=True)]
    split = [n for pair in zip(counts, blocks, strict=True) for n in pair]
    outer = range(1, 1 + 2 * len(blocks), 2)
    tail_axes = range(1 + 2 * len(blocks), 1 + 2 * len(blocks) + len(tail))
    x = reshape(x, shape=(batch, *split, *tail))
    x = transpose(x, perm=(*(i + 1 for i in outer), 0, *outer, *tail_axes))
    return reshape(x, shape=(batch * math.prod(blocks), *counts, *tail))


def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """Inverts `space_to_batch`; `crops` removes the padding."""
    op_name = "batch_to_space"
    x = as_tensor(input)
    if isinstance(block_shape, int):
        block_shape = [block_shape] * 2
    blocks = integers(block_shape, f"{op_name}: block_shape", ndim=1)
    pairs = _explicit_padding(crops, blocks, x, "crops", op_name)
    count, *rest = x._spec.shape
    space, tail = rest[: len(blocks)], rest[len(blocks) :]
    if count % math.prod(blocks):
        raise invalid(
            f"{op_name}: a batch of {count} is not a multiple of the {math.prod(blocks)} elements "
            f"of a block of {shown(list(blocks))}."
        )
    batch, ndim = count // math.prod(blocks), len(blocks)
    order = [i for pair in zip(range(ndim + 1, 2 * ndim + 1), range(ndim), strict=True)
             for i in pair]  # fmt: skip
    x = reshape(x, shape=(*blocks, batch, *space, *tail))
    x = transpose(x, perm=(ndim, *order, *range(2 * ndim + 1, 2 * ndim + 1 + len(tail))))
    full = [n * b for n, b in zip(space, blocks, strict=True)]
    x = reshape(x, shape=(batch, *full, *tail))
    for n, (low, high) in zip(full, pairs, strict=True):
        if low + high > n:
            raise invalid(f"{op_name}: cannot crop {low} and {high} of {n} elements.")
    if not any(map(any, pairs)):
        return x
    kept = [(low, n - high, 1) for n, (low, high) in zip(full, pairs, strict=True)]
    return take_slice(x, where=((0, batch, 1), *kept, *((0, n, 1) for n in tail)))


def _explicit_padding(
    value: Any, blocks: Sequence[int], x: Tensor, name: str, op_name: str
) -> list[tuple[int, int]]:
    """Returns the paddings or crops as pairs, after checking them and the block shape."""
    pairs = integer_array(value, f"{op_name}: {name}")
    if pairs.shape != (len(blocks), 2) and (pairs.size or blocks):
        raise invalid(
            f"{op_name}: {name} has shape {pairs.shape}. Expected {(len(blocks), 2)}, a pair for "
            "each element of block_shape."
        )
    if x.ndim < len(blocks) + 1:
        raise invalid(
            f"{op_name}: block_shape has {len(blocks)} axes, but the tensor has shape "
            f"{x._spec.shape}. Expected {len(blocks) + 1} axes or more."
        )
    if min(blocks, default=1) < 1:
        raise invalid(f"{op_name}: block_shape must be positive. Received: {shown(list(blocks))}.")
    if pairs.size and pairs.min() < 0:
        raise invalid(f"{op_name}: {name} must not be negative. Received: {pairs.tolist()}.")
    return [tuple(pair) for pair in pairs.tolist()]


def _zero_pad(x: Tensor, pairs: Sequence[tuple[int, int]]) -> Tensor:
    """Pads the axes after the first with zeros."""
    if not any(map(any, pairs)):
        return x
    shape = x._spec.shape
    pairs = [(0, 0), *pairs, *[(0, 0)] * (x.ndim - 1 - len(pairs))]
    return put_slice(
        x,
        shape=tuple(low + n + high for n, (low, high) in zip(shape, pairs, strict=True)),
        where=tuple((low, low + n, 1) for n, (low, _) in zip(shape, pairs, strict=True)),
    )


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Computes the paddings that fill the last blocks, and the crops that undo them.

    >>> paddings, crops = tf.required_space_to_batch_paddings([5, 6], [2, 3])
    >>> paddings.numpy(), crops.numpy()
    (array([[0, 1],
           [0, 0]], dtype=int32), array([[0, 1],
           [0, 0]], dtype=int32))
    """
    op_name = "required_space_to_batch_paddings"
    space = integers(input_shape, f"{op_name}: input_shape", ndim=1)
    blocks = integers(block_shape, f"{op_name}: block_shape", ndim=1)
    count = len(blocks)
    if base_paddings is None:
        base = np.zeros((count, 2), np.int64)
    else:
        base = integer_array(base_paddings, f"{op_name}: base_paddings")
    if len(space) != count or base.shape != (count, 2):
        raise ValueError(
            f"{op_name}: input_shape, base_paddings and block_shape must have the same length, "
            f"{count}. Received: {shown(list(space))} and {base.tolist()}."
        )
    extra = -(np.array(space, np.int64) + base.sum(axis=1)) % np.array(blocks, np.int64)
    paddings, crops = base.copy(), np.zeros_like(base)
    paddings[:, 1] += extra
    crops[:, 1] = extra
    return Tensor(paddings.astype(np.int32)), Tensor(crops.astype(np.int32))


def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: str,
    op: Callable,
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Any:
    """Applies `op` between `space_to_batch` and `batch_to_space`.

    `op(input, num_spatial_dims, padding)` thus sees elements that are `dilation_rate` apart.
    """
    op_name = "with_space_to_batch"
    x = as_tensor(input)
    rates = integer_array(dilation_rate, f"{op_name}: dilation_rate")
    if rates.ndim != 1 or not rates.size:
        raise ValueError(
            f"{op_name}: dilation_rate must be a list. Received: {as_text(dilation_rate)}."
        )
    if rates.min() < 1:
        raise ValueError(f"{op_name}: dilation_rate must be positive. Received: {rates.tolist()}.")
    if data_format is not None:
        expect(data_format, str, op_name, "a data_format of type str")
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    axes = (
        list(range(first, first + len(rates)))
        if spatial_dims is None
        else to_list(op_name, spatial_dims)
    )
    if not axes or axes != sorted(set(axes)) or axes[0] < 1:
        raise ValueError(
            f"{op_name}: spatial_dims must be increasing and start at 1 or later. Received: {axes}."
        )
    if axes[-1] >= x.ndim:
        raise ValueError(
            f"{op_name}: spatial_dims {axes} are beyond the axes of shape {x._spec.shape}."
        )
    if (rates == 1).all():
        return op(x, len(rates), padding)
    base = _base_paddings(padding, filter_shape, rates, op_name)
    space = [x._spec.shape[axis] for axis in axes]
    paddings, crops = required_space_to_batch_paddings(space, rates, base)
    positions = [axis - 1 for axis in axes]
    blocks = np.ones(axes[-1], np.int64)
    wide_paddings, wide_crops = (np.zeros((axes[-1], 2), np.int64) for _ in range(2))
    blocks[positions], wide_paddings[positions], wide_crops[positions] = rates, paddings, crops
    y = op(space_to_batch(x, blocks.tolist(), wide_paddings), len(rates), "VALID")
    return batch_to_space(y, blocks.tolist(), wide_crops)


def _base_paddings(padding: str, filter_shape: Any, rates: np.ndarray, op_name: str) -> np.ndarray:
    """Returns the explicit paddings with which "VALID" replaces "SAME"."""
    if padding not in ("SAME", "VALID"):
        raise ValueError(f'{op_name}: padding is {shown(padding)}. Expected "SAME" or "VALID".')
    if padding == "VALID":
        return np.zeros((len(rates), 2), np.int64)
    if filter_shape is None:
        raise ValueError(f'{op_name}: filter_shape is needed for padding "SAME".')
    sizes = integer_array(filter_shape, f"{op_name}: filter_shape")[: len(rates)]
    total = (sizes - 1) * rates
    return np.stack([total // 2, total - total // 2], axis=1)


def space_to_depth(
    input: Any, block_size: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Moves blocks of `block_size` by `block_size` pixels to the channels.

    >>> tf.nn.space_to_depth(tf.reshape(tf.range(4.0), [1, 2, 2, 1]), 2).numpy()
    array([[[[0., 1., 2., 3.]]]], dtype=float32)
    """
    layout, x, block = _depth_arguments(input, block_size, data_format, "space_to_depth")
    batch, height, width, channels = x._spec.shape
    if height % block or width % block:
        raise invalid(
            f"space_to_depth: {height} by {width} pixels cannot be split into blocks of {block}."
        )
    rows, columns = height // block, width // block
    x = reshape(x, shape=(batch, rows, block, columns, block, channels))
    x = transpose(x, perm=(0, 1, 3, 2, 4, 5))
    return layout.from_channels_last(
        reshape(x, shape=(batch, rows, columns, block * block * channels))
    )


def depth_to_space(
    input: Any, block_size: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Inverts `space_to_depth`: moves the channels of a pixel to a block of pixels."""
    layout, x, block = _depth_arguments(input, block_size, data_format, "depth_to_space")
    batch, rows, columns, channels = x._spec.shape
    if channels % (block * block):
        raise invalid(
            f"depth_to_space: {channels} channels cannot be moved to blocks of {block} by {block} "
            f"pixels. Expected a multiple of {block * block}."
        )
    depth = channels // (block * block)
    x = reshape(x, shape=(batch, rows, columns, block, block, depth))
    x = transpose(x, perm=(0, 1, 3, 2, 4, 5))
    return layout.from_channels_last(
        reshape(x, shape=(batch, rows * block, columns * block, depth))
    )


def _depth_arguments(
    input: Any, block_size: Any, data_format: str, op_name: str
) -> tuple[Layout, Tensor, int]:
    layout = Layout.from_data_format(data_format, 2, op_name)
    x, block = as_tensor(input), integer(block_size, f"{op_name}: block_size")
    if x.ndim != 4:
        raise invalid(f"{op_name}: expected 4 axes. Received: shape {x._spec.shape}.")
    if block < 2:
        raise invalid(f"{op_name}: block_size must be at least 2. Received: {block}.")
    return layout, layout.to_channels_last(x), block
