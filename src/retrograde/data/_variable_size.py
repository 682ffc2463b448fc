"""Batches of elements of different sizes: ragged, sparse, bucketed; resampling of classes."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor, wrap
from retrograde.data._elements import (
    are_ragged,
    batched_spec,
    map_specs,
    ragged_rows,
    stack_elements,
)
from retrograde.data._padding import target_shapes
from retrograde.ops.conversion import as_tensor
from retrograde.ragged.spec import RaggedTensorSpec
from retrograde.sparse.tensor import SparseTensor, SparseTensorSpec
from retrograde.values import nest
from retrograde.values.arguments import as_int, as_text, shown
from retrograde.values.errors import DataLossError, invalid, to_list
from retrograde.values.shapes import TensorShape
from retrograde.values.specs import TensorSpec, TypeSpec

# Ragged


def stack_ragged(elements: Sequence[Any], spec: Callable[[], Any], splits: np.dtype) -> Any:
    """Stacks elements; leaves with unknown dimensions become ragged tensors."""
    flat, pack = nest.flatten_with_pack(spec())
    columns = zip(*map(nest.flatten, elements), strict=True)
    return pack(
        [
            ragged_rows(column, _ragged_depth(leaf), splits)
            if _ragged_depth(leaf)
            else stack_elements(column, lambda leaf=leaf: leaf, are_ragged(leaf))
            for leaf, column in zip(flat, columns, strict=True)
        ]
    )


def _ragged_depth(spec: TypeSpec) -> int:
    """Returns the number of axes up to the last unknown dimension."""
    if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
        return 0
    return max((axis + 1 for axis, size in enumerate(spec.shape) if size is None), default=0)


def ragged_spec(spec: Any, size: int | None, splits: np.dtype) -> Any:
    """Returns the spec of batches that `stack_ragged` creates."""

    def leaf_spec(leaf: TypeSpec) -> TypeSpec:
        depth = _ragged_depth(leaf)
        if not depth:
            return batched_spec(leaf, size)
        shape = TensorShape([size]).concatenate(leaf.shape)
        return RaggedTensorSpec(shape, leaf.dtype, depth, splits)

    return map_specs(leaf_spec, spec)


# Sparse


def stack_sparse(elements: Sequence[Any], row_shape: TensorShape) -> SparseTensor:
    """Combines tensors into a sparse tensor with one row for each; all values are explicit."""
    arrays = [_as_array(element) for element in elements]
    for array in arrays:
        if array.ndim != row_shape.rank:
            raise invalid(
                f"Input element had shape ({list(array.shape)}) that is incompatible with the row "
                f"shape ({row_shape.as_list()})."
            )
        if any(n is not None and m > n for m, n in zip(array.shape, row_shape, strict=True)):
            raise DataLossError(
                None,
                None,
                f"Input element had shape ({list(array.shape)}) that is larger than the row shape "
                f"({row_shape.as_list()}).",
            )
    largest = np.max([array.shape for array in arrays], axis=0).astype(np.int64)
    sizes = [m if n is None else n for m, n in zip(largest, row_shape, strict=True)]
    indices = [
        np.insert(np.argwhere(np.ones(array.shape)), 0, row, axis=1)
        for row, array in enumerate(arrays)
    ]
    values = np.concatenate([array.reshape(-1) for array in arrays])
    return SparseTensor(np.concatenate(indices), wrap(values), np.array([len(arrays), *sizes]))


def _as_array(element: Any) -> np.ndarray:
    if not isinstance(element, Tensor):
        raise TypeError(
            "sparse_batch: elements must be single tensors. Received: an element of type "
            f"{type(element).__name__}."
        )
    return np.asarray(element._array)


def sparse_spec(spec: Any, row_shape: TensorShape) -> SparseTensorSpec:
    """Returns the spec of batches that `stack_sparse` creates."""
    if not isinstance(spec, TensorSpec):
        raise TypeError(
            f"sparse_batch: elements must be single tensors. Received: {as_text(spec)}."
        )
    return SparseTensorSpec(TensorShape([None]).concatenate(row_shape), spec.dtype)


# Buckets


class Buckets:
    """Maps an element to a bucket by its length, and a bucket to its batch size."""

    def __init__(self, length: Callable, boundaries: Sequence[int], sizes: Sequence[int]) -> None:
        sizes, boundaries = (to_list("bucket_by_sequence_length", x) for x in (sizes, boundaries))
        if len(sizes) != len(boundaries) + 1:
            raise ValueError(
                "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
                f"`len(bucket_batch_sizes)={len(sizes)}` and "
                f"`len(bucket_boundaries)={len(boundaries)}`."
            )
        self._length = length
        self._boundaries = [as_int(end, "`bucket_boundaries`") for end in boundaries]
        self._sizes = [as_int(size, "`bucket_batch_sizes`") for size in sizes]

    def key(self, *element: Any) -> np.int64:
        """Returns the bucket of an element."""
        length = int(as_tensor(self._length(*element)))
        return np.int64(bisect.bisect_right(self._boundaries, length))

    def size(self, key: Any) -> int:
        """Returns the batch size of a bucket."""
        return self._sizes[int(key)]

    def padded_shapes(self, key: Any, shapes: Any, spec: Any) -> Any:
        """Returns the padded shapes, with the maximum length of the bucket for unknown sizes."""
        bucket = int(key)
        if bucket == len(self._boundaries):
            raise invalid(
                "When pad_to_bucket_boundary=True, elements must have length < "
                f"max(bucket_boundaries), which is {self._boundaries[-1]}."
            )
        max_length = self._boundaries[bucket] - 1
        flat, pack = nest.flatten_with_pack(spec)
        return pack(
            [
                shape
                if shape.rank is None
                else TensorShape([max_length if size is None else size for size in shape])
                for shape in target_shapes(shapes, spec, flat)
            ]
        )


# Resampling


def resample(
    elements: Any, class_of: Callable, target: np.ndarray, initial: np.ndarray | None, rng: Any
) -> Any:
    """Yields pairs of class and element, dropping elements to get the distribution `target`.

    If `initial` is `None`, it estimates the distribution of the input from the elements so far,
    starting with a count of ten for each class.
    """
    counts = np.full(len(target), 10.0)
    for element in elements:
        label = class_of(element)
        class_index = _class_index(label, len(target))
        if initial is None:
            counts[class_index] += 1
        acceptance = target / (counts / counts.sum() if initial is None else initial)
        if rng.random() * acceptance.max() < acceptance[class_index]:
            yield label, element


def _class_index(label: Any, count: int) -> int:
    if type(label) is not Tensor or label._spec.dtype.kind not in "iu" or label._spec.ndim:
        raise TypeError(f"`class_func` must return a scalar integer. Received: {shown(label)}.")
    if not 0 <= int(label._array) < count:
        raise invalid(
            f"`class_func` returned {int(label._array)}, but `target_dist` has {count} classes."
        )
    return int(label._array)


def distribution(values: Any, op_name: str, count: int | None = None) -> np.ndarray:
    """Converts a distribution to an array."""
    probabilities = np.asarray(as_tensor(values)._array, np.float64)
    if probabilities.ndim != 1 or (count is not None and len(probabilities) != count):
        expected = "a vector" if count is None else f"{count} numbers, the length of target_dist"
        raise ValueError(f"{op_name}: expected {expected}. Received: shape {probabilities.shape}.")
    return probabilities
