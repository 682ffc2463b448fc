"""Where elements come from: rows of tensors, numbers, names of files."""

from __future__ import annotations

import glob
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde.core.tensor import Tensor, wrap
from retrograde.data import _nodes, _rows, _steps
from retrograde.data._seeds import Seeds
from retrograde.data._structure import (
    common_spec,
    element_of,
    map_specs,
    row_counts,
    row_spec,
    spec_of_element,
)
from retrograde.ops.arguments import integer
from retrograde.ops.conversion import as_tensor
from retrograde.values import dtypes
from retrograde.values.errors import invalid
from retrograde.values.specs import TensorSpec


def one(tensors: Any) -> _nodes.Node:
    """One element."""
    flat, pack = element_of(tensors)
    element = pack(flat)
    return _nodes.Made(lambda _run: [element], spec_of_element(element), 1, "Tensor")


def listed(elements: Any) -> _nodes.Node:
    """The elements of a list."""
    if not isinstance(elements, list):
        raise ValueError(f"Invalid `elements`. `elements` must be a list. Got {type(elements)}.")
    if not elements:
        raise ValueError(
            "Invalid `elements`. `elements` should not be empty. If you want an empty dataset, use "
            "`tf.data.Dataset.range(0)`."
        )
    made = [pack(flat) for flat, pack in map(element_of, elements)]
    spec = spec_of_element(made[0])
    for element in made[1:]:
        other = spec_of_element(element)
        wider = common_spec(spec, other)
        if wider is None:
            raise TypeError(f"Invalid `elements`. {other} does not fit with {spec}.")
        spec = wider
    return _nodes.Made(lambda _run: made, spec, len(made), "List")


def slices(tensors: Any) -> _nodes.Node:
    """The rows of tensors: of arrays, if there is nothing else among them."""
    flat, pack = element_of(tensors)
    counts = row_counts(flat)
    if len(counts) > 1:
        raise ValueError(
            f"Dimensions {' and '.join(map(str, sorted(counts)))} are not compatible. Expected "
            "tensors with first axes of one size."
        )
    (count,) = counts
    spec = map_specs(row_spec, spec_of_element(pack(flat)))
    if all(isinstance(leaf, Tensor) for leaf in flat):
        source = _rows.Slices([np.asarray(leaf._array) for leaf in flat], pack)
        return _nodes.Slices(source, count, spec)
    make = lambda _run: _steps.rows_together(flat, pack)  # noqa: E731
    return _nodes.Made(make, spec, count, "TensorSlice")


def numbers(args: tuple, kwargs: dict[str, Any]) -> _nodes.Node:
    """The numbers of Python's `range`."""
    if not 1 <= len(args) <= 3:
        raise ValueError(
            f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
        )
    ends = [integer(value, "range", TypeError) for value in args]
    if len(ends) == 3 and not ends[2]:
        raise invalid("range: step must be a non-zero integer. Received: 0.")
    span = range(*ends)
    dtype = dtypes.as_dtype(kwargs.get("output_type", dtypes.int64))
    source = _rows.Numbers(span.start, span.step, dtype.numpy_dtype)
    return _nodes.Slices(source, len(span), TensorSpec([], dtype), "Range")


def count_up(start: Any, step: Any, dtype: Any) -> _nodes.Node:
    """Numbers without end."""
    dtype = dtypes.as_dtype(dtype)
    first, by = integer(start, "start", TypeError), integer(step, "step", TypeError)
    source = _rows.Numbers(first, by, dtype.numpy_dtype)
    return _nodes.Slices(source, None, TensorSpec([], dtype), "Counter")


def at_random(seeds: Seeds) -> _nodes.Node:
    """Random numbers of 32 bits without end."""
    draw: Callable = lambda rng: (wrap(np.int64(rng.integers(1 << 32))) for _ in iter(int, 1))  # noqa: E731
    make = lambda run: draw(seeds.generator(run))  # noqa: E731
    return _nodes.Made(make, _nodes.INT64, _nodes.INFINITE_CARDINALITY, "Random", seeds)


def files(patterns: Any) -> list[bytes]:
    """The files that fit one of the patterns, by name."""
    texts = np.atleast_1d(np.asarray(as_tensor(patterns)._array)).tolist()
    found = sorted({path for text in texts for path in glob.glob(text)})
    if not found:
        shown = ", ".join(text.decode(errors="replace") for text in texts)
        raise invalid(f"No files matched pattern: {shown}")
    return found
