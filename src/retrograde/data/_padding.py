"""Pads elements of different sizes to one size and stacks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor, wrap
from retrograde.data._elements import NoneTensorSpec, batched_spec
from retrograde.ops.conversion import as_tensor
from retrograde.values import nest
from retrograde.values.arguments import shown
from retrograde.values.errors import DataLossError
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TensorSpec


def pad_and_stack(elements: Sequence[Any], shapes: Any, values: Any) -> Any:
    """Pads elements to `shapes`, or to the largest element, and stacks them."""
    flat, pack = nest.flatten_with_pack(elements[0])
    columns = zip(*map(nest.flatten, elements), strict=True)
    target, padding_values = (
        _target_shapes(shapes, elements[0], len(flat)),
        _padding_values(values, len(flat)),
    )
    return pack(list(map(_pad_leaf, columns, target, padding_values)))


def _target_shapes(shapes: Any, structure: Any, count: int) -> list:
    """Returns the target shape of each leaf, or `None`."""
    if shapes is None:
        return [None] * count
    return list(_shapes(shapes, structure))


def _shapes(shapes: Any, structure: Any) -> Any:
    if not nest.is_nested(structure):
        yield _shape(shapes.numpy() if isinstance(shapes, Tensor) else shapes)
        return
    parts, inner = (nest.children(x) if nest.is_nested(x) else [] for x in (shapes, structure))
    if len(parts) != len(inner) or isinstance(shapes, dict) != isinstance(structure, dict):
        raise TypeError(
            f"`padded_shapes` must have the structure of the elements. Received: {shown(shapes)}."
        )
    for part, part_structure in zip(parts, inner, strict=True):
        yield from _shapes(part, part_structure)


def _shape(shape: Any) -> TensorShape:
    sizes = shape
    if isinstance(shape, np.ndarray) and shape.dtype.kind not in "iu":
        raise TypeError(
            "`padded_shapes` must contain shapes or integer vectors. Received: a tensor of "
            f"{shape.dtype}."
        )
    if isinstance(shape, (list, tuple, np.ndarray)):
        sizes = [None if np.ndim(size) == 0 and size == -1 else size for size in shape]
    try:
        return TensorShape(sizes)
    except TypeError:
        raise ValueError(
            f"`padded_shapes` must contain shapes. Received: {shown(shape)}."
        ) from None


def _padding_values(values: Any, count: int) -> list:
    """Returns the padding value of each leaf. A single value applies to all leaves."""
    flat = nest.flatten(values)
    return flat * count if len(flat) == 1 else flat


def _pad_leaf(leaves: Sequence[Any], target: TensorShape | None, fill: Any) -> Any:
    if leaves[0] is None:
        return None
    if not isinstance(leaves[0], Tensor):
        raise TypeError(
            "`padded_batch` is only supported for datasets of tensors. Received: elements of type "
            f"{type(leaves[0]).__name__}."
        )
    arrays = [np.asarray(leaf._array) for leaf in leaves]
    rank, dtype = arrays[0].ndim, arrays[0].dtype
    target = TensorShape([None] * rank) if target is None or target.rank is None else target
    if any(array.ndim != target.rank for array in arrays):
        raise ValueError(
            f"The padded shape {target} is not compatible with the shape {leaves[0].shape} of the "
            "corresponding input component."
        )
    largest = np.max([array.shape for array in arrays], axis=0, initial=0).astype(int)
    sizes = [big if size is None else size for big, size in zip(largest, target, strict=True)]
    if any(big > size for big, size in zip(largest, sizes, strict=True)):
        raise DataLossError(
            None,
            None,
            f"Attempted to pad to a smaller size than the input element. The padded shape is "
            f"{tuple(sizes)}, but elements have sizes up to {tuple(largest.tolist())}.",
        )
    result = np.full([len(arrays), *sizes], _fill(fill, dtype, leaves[0]), dtype)
    for row, array in enumerate(arrays):
        result[(row, *map(slice, array.shape))] = array
    return wrap(result)


def _fill(fill: Any, dtype: np.dtype, leaf: Tensor) -> Any:
    if fill is None:
        return b"" if dtype.kind == "O" else np.zeros((), dtype)
    value = as_tensor(fill)
    if value._spec.dtype != dtype:
        raise TypeError(
            f"Invalid `padding_values`. `padding_values` values type {value.dtype!r} does not "
            f"match type {leaf.dtype!r} of the corresponding input component."
        )
    return np.asarray(value._array).item() if dtype.kind == "O" else value._array


def target_shapes(shapes: Any, spec: Any, leaves: Sequence[Any]) -> list[TensorShape]:
    """Returns the target shape of each leaf of a spec, by default the shape of the elements."""
    if shapes is None:
        return [getattr(leaf, "shape", TensorShape(None)) for leaf in leaves]  # None has no shape
    return list(_shapes(shapes, spec))


def check_padded_shapes(spec: Any, shapes: Any) -> None:
    """Raises an error if elements of `spec` cannot be padded to `shapes`."""
    flat = nest.flatten(spec)
    for leaf, target in zip(flat, target_shapes(shapes, spec, flat), strict=True):
        if isinstance(leaf, NoneTensorSpec):
            continue
        if not isinstance(leaf, TensorSpec):
            raise TypeError(
                "`padded_batch` is only supported for datasets of tensors. Received: elements of "
                f"type {leaf.value_type.__name__}."
            )
        if shapes is None and leaf.shape.rank is None:
            raise ValueError(
                "`padded_batch` needs `padded_shapes` if components have an unknown rank. "
                f"Received: elements of {leaf!r}."
            )
        if not _can_pad(leaf.shape, target):
            raise ValueError(
                f"The padded shape {target} is not compatible with the shape {leaf.shape} of the "
                "corresponding input component."
            )


def _can_pad(shape: TensorShape, target: TensorShape) -> bool:
    if shape.rank is None or target.rank is None:
        return True
    if shape.rank != target.rank:
        return False
    pairs = zip(shape, target, strict=True)
    return all(size is None or padded is None or size <= padded for size, padded in pairs)


def padded_spec(spec: Any, shapes: Any, size: int | None) -> Any:
    """Returns the spec of padded batches of `size` elements."""
    flat, pack = nest.flatten_with_pack(spec)
    target = target_shapes(shapes, spec, flat)
    leaves = [
        leaf if isinstance(leaf, NoneTensorSpec) else TensorSpec(shape, leaf.dtype)
        for shape, leaf in zip(target, flat, strict=True)
    ]
    return pack([batched_spec(leaf, size) for leaf in leaves])
