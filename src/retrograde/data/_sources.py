"""Source nodes: tensors, rows of tensors, ranges, random numbers, file names."""

from __future__ import annotations

import glob
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor, wrap
from retrograde.data import _nodes, _row_indices, _transforms
from retrograde.data._elements import (
    common_spec,
    flatten_element,
    map_specs,
    row_counts,
    row_spec,
    spec_of_element,
)
from retrograde.data._seeds import Seeds
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes
from retrograde.values.errors import invalid
from retrograde.values.specs import TensorSpec


def from_tensors(tensors: Any) -> _nodes.Node:
    """Returns a node with one element."""
    flat, pack = flatten_element(tensors)
    element = pack(flat)
    return _nodes.FunctionSource(lambda _run: [element], spec_of_element(element), 1, "Tensor")


def from_list(elements: Any) -> _nodes.Node:
    """Returns a node with the elements of a list."""
    if not isinstance(elements, list):
        raise ValueError(f"Invalid `elements`. `elements` must be a list. Got {type(elements)}.")
    if not elements:
        raise ValueError(
            "Invalid `elements`. `elements` should not be empty. If you want an empty dataset, use "
            "`tf.data.Dataset.range(0)`."
        )
    normalized = [pack(flat) for flat, pack in map(flatten_element, elements)]
    spec = spec_of_element(normalized[0])
    for element in normalized[1:]:
        other = spec_of_element(element)
        wider = common_spec(spec, other)
        if wider is None:
            raise TypeError(f"Invalid `elements`. {other} is not compatible with {spec}.")
        spec = wider
    return _nodes.FunctionSource(lambda _run: normalized, spec, len(normalized), "List")


def from_slices(tensors: Any) -> _nodes.Node:
    """Returns a node with the rows of tensors."""
    flat, pack = flatten_element(tensors)
    counts = row_counts(flat)
    if len(counts) > 1:
        raise ValueError(
            f"Dimensions {' and '.join(map(str, sorted(counts)))} are not compatible. All "
            "tensors must have the same first dimension."
        )
    (count,) = counts
    spec = map_specs(row_spec, spec_of_element(pack(flat)))
    if all(isinstance(leaf, Tensor) for leaf in flat):
        source = _row_indices.ArraySource([np.asarray(leaf._array) for leaf in flat], pack)
        return _nodes.Slices(source, count, spec)
    make = lambda _run: _transforms.zip_rows(flat, pack)  # noqa: E731
    return _nodes.FunctionSource(make, spec, count, "TensorSlice")


def from_range(args: tuple, kwargs: dict[str, Any]) -> _nodes.Node:
    """Returns a node with the numbers of Python's `range`."""
    if not 1 <= len(args) <= 3:
        raise ValueError(
            f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
        )
    ends = [integer(value, "range", TypeError) for value in args]
    if len(ends) == 3 and not ends[2]:
        raise invalid("range: step must be a non-zero integer. Received: 0.")
    values = range(*ends)
    dtype = dtypes.as_dtype(kwargs.get("output_type", dtypes.int64))
    source = _row_indices.RangeSource(values.start, values.step, dtype.numpy_dtype)
    return _nodes.Slices(source, len(values), TensorSpec([], dtype), "Range")


def counter_source(start: Any, step: Any, dtype: Any) -> _nodes.Node:
    """Returns a node that counts forever."""
    dtype = dtypes.as_dtype(dtype)
    first, increment = integer(start, "start", TypeError), integer(step, "step", TypeError)
    source = _row_indices.RangeSource(first, increment, dtype.numpy_dtype)
    return _nodes.Slices(source, None, TensorSpec([], dtype), "Counter")


def random_numbers(seeds: Seeds) -> _nodes.Node:
    """Returns a node with an infinite sequence of 32-bit random numbers."""
    draw: Callable = lambda rng: (wrap(np.int64(rng.integers(1 << 32))) for _ in iter(int, 1))  # noqa: E731
    make = lambda run: draw(seeds.generator(run))  # noqa: E731
    return _nodes.FunctionSource(make, _nodes.INT64, _nodes.INFINITE_CARDINALITY, "Random", seeds)


def match_files(patterns: Any) -> list[bytes]:
    """Returns the sorted names of files that match one of the patterns."""
    texts = np.atleast_1d(np.asarray(as_tensor(patterns)._array)).tolist()
    paths = sorted({path for text in texts for path in glob.glob(text)})
    if not paths:
        shown = ", ".join(text.decode(errors="replace") for text in texts)
        raise invalid(f"No files matched pattern: {shown}")
    return paths
